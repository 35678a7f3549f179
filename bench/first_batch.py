"""Time from the start of the process to the first committed batch: `penstock run` ÷ a hand-written script.

Both are whole processes over a small topic, with the same jars in the cache and the same settings. Once with the
class archive that `penstock setup` makes, and once without, as after `pip install`. A hand-written script could
use such an archive too, but hardly any does: Spark's documentation does not speak of it.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from bench.harness import Comparison
from penstock.engine import class_archive
from penstock.engine import run as engine
from penstock.spec.load import load

NEEDS_TOPIC = True
TARGET = 1.15
PATIENCE_S = 120.0
_POLL_S = 0.005
_PIPELINE = """\
name: first_batch
source:
  kafka: {{servers: "{servers}", topic: small, start: earliest}}
steps:
  - parse:
      format: json
      schema: event_id string not null, user_id string not null, event_time timestamp not null, data string
sink:
  delta: {{path: table}}
trigger: {{every: 1 second}}
checkpoint: checkpoint
"""


def comparisons() -> list[Comparison]:
    folder = Path(os.environ["BENCH_FOLDER"], "first_batch")
    numbers = itertools.count()

    def side(command: list[str], variables: Mapping[str, str]) -> Callable[[], float]:
        def measured() -> float:
            own = folder / str(next(numbers))
            _write(own)
            took = _until_first_commit([sys.executable, *command], own, variables)
            shutil.rmtree(own)
            return took

        return measured

    pipeline = load(_write(folder / "setup"))
    jars = engine.class_path(pipeline)
    engine.prepare(pipeline)
    # spark.jars.packages would resolve anew at each start, so jars on the class path are the harder rival.
    script = [str(Path(__file__).with_name("_hand_written_job.py")), os.environ["KAFKA"], ":".join(map(str, jars[:-1]))]
    run = ["-m", "penstock", "run", "pipeline.yml"]
    return [
        Comparison(
            name=f"first committed batch, {shown}",
            unit="s",
            ours=side(run, variables),
            theirs=side(script, {}),
            target=TARGET,
            more_is_better=False,
        )
        for shown, variables in (("after setup", {}), ("no class archive", {class_archive.SWITCH: "off"}))
    ]


def _until_first_commit(command: list[str], folder: Path, variables: Mapping[str, str]) -> float:
    committed = folder / "checkpoint" / "commits" / "0"
    with (folder / "output").open("wb") as output:
        began = time.perf_counter()
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        while not committed.exists():
            if process.poll() is not None or time.perf_counter() - began > PATIENCE_S:
                raise RuntimeError(f"no batch was committed: {(folder / 'output').read_text()[-2000:]}")
            time.sleep(_POLL_S)
        return time.perf_counter() - began
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _write(folder: Path) -> Path:
    folder.mkdir(parents=True)
    file = folder / "pipeline.yml"
    file.write_text(_PIPELINE.format(servers=os.environ["KAFKA"]), encoding="utf-8")
    return file
