"""A driver's JVM of our own: it starts, keeps secrets, hears no Ctrl-C, dies with us, and takes any archive.

Each session runs in a process of its own (this file as a program), since a process has one JVM for good.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.engine import class_archive, jvm_classes, launch, session
from penstock.engine.cache import write_stamp
from penstock.engine.ivy import pyspark_jars
from penstock.engine.java import find_java
from penstock.spec.load import load
from penstock.spec.pipeline import Pipeline

pytestmark = pytest.mark.spark
PIPELINE = """\
name: launched
source: {rate: {}}
sink: {noop: {}}
checkpoint: checkpoint
require: at-most-once
"""


def written(folder: Path) -> Pipeline:
    file = folder / "launched.yml"
    file.write_text(PIPELINE)
    return load(file)


def path_of(pipeline: Pipeline, *, cache: Path) -> tuple[Path, ...]:
    own = jvm_classes.build(cache=cache)
    return launch.class_path(session.with_jars(session.settings(pipeline), [own]))


@contextmanager
def started(folder: Path, **variables: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A process with a session, and the pid of its JVM; it answers each line with the count of 1,000 rows."""
    process = subprocess.Popen(
        [sys.executable, __file__, str(folder / "launched.yml")],
        env={**os.environ, **variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    assert process.stdout is not None
    try:
        first = process.stdout.readline()
        assert first, (folder / "spark.log").read_text()[-2000:]
        yield process, int(first)
    finally:
        process.kill()
        process.communicate()


def answer(process: subprocess.Popen[str]) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("count\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


def test_secrets_stay_off_the_command_line_and_the_jvm_lives_as_long_as_we_do(tmp_path: Path) -> None:
    written(tmp_path)
    with started(tmp_path) as (process, jvm):
        assert b"hush" not in Path(f"/proc/{jvm}/cmdline").read_bytes()
        assert b"hush" not in Path(f"/proc/{jvm}/environ").read_bytes()
        os.kill(jvm, signal.SIGINT)  # what a terminal does on Ctrl-C
        assert json.loads(answer(process)) == {"rows": 1000, "secret": "hush"}
        process.kill()
        process.wait()
        end = time.monotonic() + 30
        while Path(f"/proc/{jvm}").exists() and _state(jvm) != "Z":
            assert time.monotonic() < end, "the JVM outlived its driver"
            time.sleep(0.05)


def test_a_damaged_archive_does_no_harm(tmp_path: Path) -> None:
    pipeline = written(tmp_path)
    cache = tmp_path / "cache"
    place = class_archive._place(find_java(), path_of(pipeline, cache=cache), cache=cache)
    assert place is not None
    place.parent.mkdir(parents=True)
    place.write_bytes(b"not an archive " * 10_000)
    write_stamp(place, sha256="0" * 64)
    with started(tmp_path, PENSTOCK_CACHE=str(cache)) as (process, jvm):
        assert f"-XX:SharedArchiveFile={place}".encode() in Path(f"/proc/{jvm}/cmdline").read_bytes()
        assert json.loads(answer(process))["rows"] == 1000


def test_a_rehearsal_makes_an_archive_that_the_next_session_uses(tmp_path: Path) -> None:
    pipeline = written(tmp_path)
    cache = tmp_path / "cache"
    made = class_archive.make(find_java(), path_of(pipeline, cache=cache), groups=pipeline.jars, cache=cache)
    assert made is not None
    assert sorted(file.name for file in made.parent.iterdir()) == [made.name, f"{made.name}.stamp"]
    with started(tmp_path, PENSTOCK_CACHE=str(cache)) as (process, jvm):
        assert str(made) in Path(f"/proc/{jvm}/maps").read_text()
        assert json.loads(answer(process))["rows"] == 1000


def test_the_jvm_gets_the_options_that_sparks_launcher_would_give_it() -> None:
    conf = {"spark.master": "local[2]", "spark.driver.memory": "2g"}
    java = find_java()
    pairs = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    launcher = [str(java.path), "-cp", str(pyspark_jars() / "*"), "org.apache.spark.launcher.Main"]
    said = subprocess.run(
        [*launcher, "org.apache.spark.deploy.SparkSubmit", *pairs, "pyspark-shell"],
        env={
            **os.environ,
            "SPARK_HOME": str(pyspark_jars().parent),
            "JAVA_HOME": str(java.home),
            "SPARK_SCALA_VERSION": "2.13",
        },
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    theirs = [part for part in said.replace("\n", "\0").split("\0") if part]
    theirs = theirs[theirs.index("-cp") + 2 : theirs.index("org.apache.spark.deploy.SparkSubmit")]
    ours = launch.command(conf, java=java.path)
    ours = [part for part in ours[1 : ours.index("-cp")] if not part.startswith("-Xlog")]
    assert ours == theirs


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "Z"


def _serve(file: Path) -> None:
    pipeline = load(file)
    spark = session.start(
        pipeline,
        jars=[jvm_classes.build()],
        log=file.with_name("spark.log"),
        java=find_java(),
        extra={"spark.hadoop.fs.s3a.secret.key": "hush"},
    )
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    context: Any = spark.sparkContext
    print(context._gateway.proc.pid, flush=True)
    for _ in sys.stdin:
        secret = context._jsc.hadoopConfiguration().get("fs.s3a.secret.key")
        print(json.dumps({"rows": spark.range(1000).count(), "secret": secret}), flush=True)


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
