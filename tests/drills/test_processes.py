"""Real processes, real signals: what a user does at a terminal, and what happens to a job at night."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock import sample

pytestmark = pytest.mark.drill

ROOT = Path(__file__).parents[2]
PIPELINE = """
name: copy
source: {files: {path: in}}
steps:
  - parse: {format: json, schema: 'event_id string not null, event_time timestamp'}
sink: {parquet: {path: out}}
trigger: {every: 300 milliseconds}
checkpoint: ck
"""


def penstock(*args: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run one command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "penstock", *args],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a command in a process group of its own; whatever is left of it is killed in the end."""
    started: list[subprocess.Popen[str]] = []

    def begin(*args: str) -> subprocess.Popen[str]:
        log = (tmp_path / f"{len(started)}.log").open("w")
        process = subprocess.Popen(
            [sys.executable, "-m", "penstock", *args],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def put(folder: Path, name: str, numbers: range) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f".{name}").write_bytes(b"".join(sample.event(n).value + b"\n" for n in numbers))
    (folder / f".{name}").rename(folder / name)


def until(done: Callable[[], bool], process: subprocess.Popen[str] | None = None, timeout_s: float = 120) -> None:
    deadline = time.monotonic() + timeout_s
    while not done():
        assert time.monotonic() < deadline, "it did not happen in time"
        assert process is None or process.poll() is None, f"the process ended with {process.returncode}"
        time.sleep(0.05)


def committed(folder: Path) -> set[str]:
    return {file.name for file in (folder / "ck" / "commits").glob("[0-9]*")}


def test_the_demo_counts_every_record_once_across_a_sigkill(tmp_path: Path) -> None:
    done = penstock("demo", "--folder", "demo", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    killed = re.search(r"signal 9 .* in batch (\d+): offsets/\1 is written, commits/\1 is not", done.stdout)
    assert killed, done.stdout
    sums = {
        name: int(value.replace(",", "")) for name, value in re.findall(r"^  ([a-z ]+?) +([\d,]+)$", done.stdout, re.M)
    }
    assert sums["sent"] == 200_000 == sums["on time"] + sums["late"] + sums["quarantined"]
    assert sums["counted"] == sums["on time"]
    assert sums["lost"] == sums["duplicated"] == 0
    assert min(sums["late"], sums["quarantined"]) > 0, "a demo without late and malformed events shows less"


def test_a_frozen_driver_that_was_replaced_stops_before_it_writes(
    tmp_path: Path, start: Callable[..., subprocess.Popen[str]], spark: Any
) -> None:
    (tmp_path / "copy.yml").write_text(PIPELINE)
    put(tmp_path / "in", "1.jsonl", range(100))
    zombie = start("run", "copy.yml")
    until(lambda: "0" in committed(tmp_path), zombie)
    os.killpg(zombie.pid, signal.SIGSTOP)

    refused = penstock("run", "copy.yml", "--available-now", cwd=tmp_path)
    assert refused.returncode == 1
    assert f"is held by process {zombie.pid} " in refused.stderr
    assert "frozen by a signal" in refused.stderr
    assert "--take-over" in refused.stderr

    put(tmp_path / "in", "2.jsonl", range(100, 200))
    taken = penstock("run", "copy.yml", "--available-now", "--take-over", cwd=tmp_path)
    assert taken.returncode == 0, taken.stderr
    before = committed(tmp_path)

    put(tmp_path / "in", "3.jsonl", range(200, 300))
    os.killpg(zombie.pid, signal.SIGCONT)
    assert zombie.wait(120) == 1
    assert "was replaced" in (tmp_path / "0.log").read_text()
    assert committed(tmp_path) == before, "the zombie has written nothing"

    last = penstock("run", "copy.yml", "--available-now", cwd=tmp_path)
    assert last.returncode == 0, last.stderr
    rows = Counter(row["event_id"] for row in spark.read.parquet(str(tmp_path / "out")).collect())
    assert rows == Counter(e.event_id for e in map(sample.event, range(300)) if not _unreadable(e))


def test_a_second_signal_stops_at_once(tmp_path: Path, start: Callable[..., subprocess.Popen[str]]) -> None:
    (tmp_path / "steps.py").write_text(
        "import time\n"
        "def slow(df):\n"
        "    def wait(rows):\n"
        "        for batch in rows:\n"
        "            time.sleep(600)\n"
        "            yield batch\n"
        "    return df.mapInPandas(wait, df.schema)\n"
    )
    (tmp_path / "copy.yml").write_text(PIPELINE.replace("sink:", "  - python: {function: 'steps:slow'}\nsink:"))
    put(tmp_path / "in", "1.jsonl", range(100))
    process = start("run", "copy.yml")
    until((tmp_path / "ck" / "offsets" / "0").exists, process)
    process.terminate()
    until(lambda: "finishing the batch" in (tmp_path / "0.log").read_text(), process)
    process.terminate()
    assert process.wait(60) == 0
    assert not committed(tmp_path)
    assert "stopped as asked" in (tmp_path / "0.log").read_text()


def test_a_new_project_runs_and_its_plan_can_be_seen_first(tmp_path: Path) -> None:
    assert penstock("init", "shop", cwd=tmp_path).returncode == 0
    project = tmp_path / "shop"
    seen = penstock("run", "pipeline.yml", "--dry-run", cwd=project)
    assert seen.returncode == 0, seen.stderr
    assert "Aggregate" in seen.stdout
    assert not (project / "data").exists(), "a dry run writes nothing"
    done = penstock("run", "pipeline.yml", "--available-now", "--json", cwd=project)
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert events[-1]["event"] == "ended"
    assert events[-1]["rows"] == 5_000
    assert list((project / "data" / "hourly_counts" / "_delta_log").glob("*.json"))


def test_a_function_of_the_users_module_is_found_in_the_workers(tmp_path: Path) -> None:
    """A function at the top of a module travels by name, so the workers must find the module too."""
    (tmp_path / "own.py").write_text(
        "from pyspark.sql.functions import udf\n"
        "def shout(text):\n"
        "    return text.upper()\n"
        "def step(df):\n"
        "    return df.select(udf(shout)('event_id').alias('event_id'))\n"
    )
    (tmp_path / "copy.yml").write_text(PIPELINE.replace("sink:", "  - python: 'own:step'\nsink:"))
    put(tmp_path / "in", "1.jsonl", range(50))
    done = penstock("run", "copy.yml", "--available-now", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_plain_pyspark_example_runs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "plain_pyspark.py"), str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"lost\D+0\b", done.stdout), done.stdout
    assert re.search(r"duplicated\D+0\b", done.stdout), done.stdout


def test_a_missing_topic_is_told_before_a_jvm_is_started(tmp_path: Path, broker: Any) -> None:
    from penstock.cluster.kafka_topics import create_topic

    create_topic(broker.bootstrap, name="orders", partitions=1)
    text = PIPELINE.replace("{files: {path: in}}", f"{{kafka: {{servers: '{broker.bootstrap}', topic: order}}}}")
    (tmp_path / "copy.yml").write_text(text)
    done = penstock("run", "copy.yml", cwd=tmp_path)
    assert done.returncode == 2
    assert "topic order is not there" in done.stderr
    assert "did you mean 'orders'?" in done.stderr
    assert not (tmp_path / "ck").exists()


def _unreadable(event: sample.Event) -> bool:
    """Whether this drill's schema can't read the event; it does not ask for the user."""
    return event.malformed and (b'"user_id"' in event.value or not event.value.startswith(b"{"))
