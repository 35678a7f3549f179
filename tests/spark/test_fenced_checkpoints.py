"""A run whose successor has started writes no offsets/N any more: real Spark, in a JVM of its own.

The job runs as a process of its own (this file as a program), since the class has to be on the class path
when the JVM starts and must not leak into the session that other tests share.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.engine.jvm_classes import build

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@pytest.mark.spark
def test_a_successor_stops_the_log_and_spares_other_checkpoints(tmp_path: Path) -> None:
    jar = build(cache=tmp_path / "cache")
    env = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, __file__, str(jar), str(tmp_path)],
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    seen = json.loads(done.stdout.splitlines()[-1])

    assert seen["before"]["error"] is None
    assert seen["before"]["offsets"] == ["0", "1"]
    assert seen["before"]["commits"] == ["0", "1"]

    assert "PENSTOCK_FENCED" in seen["fenced"]["error"]
    assert seen["fenced"]["offsets"] == seen["before"]["offsets"]
    assert seen["fenced"]["commits"] == seen["before"]["commits"]

    assert seen["other"]["error"] is None
    assert seen["other"]["commits"] == ["0"]

    assert "PENSTOCK_FENCED" in seen["midway"]["error"]
    assert seen["midway"]["offsets"] == ["0"]
    assert seen["midway"]["commits"] == []
    assert seen["midway"]["temporary"] == []

    assert "PENSTOCK_FENCED" in seen["frozen"]["error"]
    assert seen["frozen"]["left"] == []


def _job(jar: str, folder: Path) -> None:
    from pyspark.sql import SparkSession

    ck = folder / "ck"
    successor = folder / "run-2"
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.driver.extraClassPath", jar)
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.sql.streaming.checkpointFileManagerClass", "penstock.FencedCheckpoints")
        .config("spark.penstock.fence.successor", str(successor))
        .config("spark.penstock.fence.checkpoint", ck.as_uri())
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")

    def names(path: Path) -> list[str]:
        return sorted(each.name for each in path.glob("*"))

    def run(at: Path, *, in_batch: Callable[[DataFrame, int], None] | None = None) -> dict[str, object]:
        source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
        writer = source.writeStream.option("checkpointLocation", str(at))
        writer = writer.foreachBatch(in_batch) if in_batch else writer.format("noop")
        error = None
        try:
            query = writer.trigger(once=True).start()
            query.awaitTermination(60)
            query.stop()
        except Exception as raised:
            error = str(raised)
        return {
            "error": error,
            "offsets": [name for name in names(at / "offsets") if not name.startswith(".")],
            "commits": [name for name in names(at / "commits") if not name.startswith(".")],
            "temporary": [name for sub in ("offsets", "commits") for name in names(at / sub) if ".tmp" in name],
        }

    seen: dict[str, dict[str, object]] = {}
    run(ck)
    seen["before"] = run(ck)
    successor.touch()
    seen["fenced"] = run(ck)
    seen["other"] = run(folder / "other")

    # The successor comes while the batch runs: the sink has its rows, and the commit must not be written.
    successor.unlink()
    spark.conf.set("spark.penstock.fence.checkpoint", str(folder / "midway"))

    def take_over(frame: DataFrame, number: int) -> None:
        frame.count()
        successor.touch()

    seen["midway"] = run(folder / "midway", in_batch=take_over)

    # A driver is frozen while it writes the file, and wakes when its successor has started.
    successor.unlink()
    at = folder / "midway" / "offsets"
    jvm: Any = spark._jvm
    manager = jvm.penstock.FencedCheckpoints(
        jvm.org.apache.hadoop.fs.Path(str(at)), spark._jsparkSession.sessionState().newHadoopConf()
    )
    before = names(at)
    stream = manager.createAtomic(jvm.org.apache.hadoop.fs.Path(f"{at}/7"), False)
    stream.write(118)
    successor.touch()
    error = None
    try:
        stream.close()
    except Exception as raised:
        error = str(raised)
    seen["frozen"] = {"error": error, "left": sorted(set(names(at)) - set(before))}
    spark.stop()
    print(json.dumps(seen))


if __name__ == "__main__":
    _job(sys.argv[1], Path(sys.argv[2]))
