"""A pipeline file against the same job written by hand, in one warm session.

Both sides run as fresh queries, each with a new checkpoint and a new table, in the same session with the same
settings, after an unmeasured run of each; rows are divided by the time from before the query is built until all
of it is over. Starting processes and JVMs is measured in `first_batch`, not here. Penstock's side is the whole of
a run: fence, fenced checkpoint writes, listener, events on disk, quarantine. By hand there are two:

- the same job, which also keeps malformed records out of the table, with the filter that everybody writes (Spark
  pushes it below the projection and then evaluates from_json twice, which few people notice)
- the leanest, from_json and nothing else, which writes malformed records as rows of nulls; less is done, so it has
  no target
"""

from __future__ import annotations

import itertools
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bench.harness import Comparison
from penstock.engine import run as engine
from penstock.spec.load import load

TARGET = 0.98
BATCHES = 4
FIELDS = ("event_id string", "user_id string", "event_time timestamp", "data string")
_PIPELINE = """\
name: bench_{sink}
source:
  kafka: {{servers: "{servers}", topic: events, start: earliest, max_records_per_batch: {per_batch}}}
steps:
  - parse: {{format: json, schema: "{schema}"}}
sink:
  {sink}: {{path: table}}
trigger: available_now
checkpoint: checkpoint
quarantine: quarantine
"""


def compare(sink: str) -> list[Comparison]:
    """The comparisons for one sink."""
    servers, events = os.environ["KAFKA"], int(os.environ["BENCH_EVENTS"])
    folder = Path(os.environ["BENCH_FOLDER"], sink)
    pipeline_text = _PIPELINE.format(
        sink=sink,
        servers=servers,
        per_batch=events // BATCHES,
        schema=", ".join(field if field.startswith("data") else f"{field} not null" for field in FIELDS),
    )
    first = _write(folder / "session", pipeline_text)
    spark = engine.open_session(load(first), log=folder / "spark.log")
    numbers = itertools.count()

    def timed(job: Callable[[Path], object]) -> float:
        own = folder / str(next(numbers))
        file = _write(own, pipeline_text)
        began = time.perf_counter()
        job(file)
        took = time.perf_counter() - began
        table = spark.read.format(sink).load(str(own / "table"))
        if table.count() != events:
            raise RuntimeError(f"{table.count()} of {events} rows are in {own}")
        shutil.rmtree(own)
        return events / took

    def comparison(label: str, *, lean: bool, target: float | None) -> Comparison:
        def by_hand(file: Path) -> None:
            hand_written(file.parent, spark, sink, servers, events // BATCHES, lean=lean)

        return Comparison(
            name=f"Kafka to {sink.title()}, {events / 1e6:g}M events, {label}",
            unit="rows/s",
            ours=lambda: timed(lambda file: engine.run_in(spark, load(file), engine.Options(max_restarts=0))),
            theirs=lambda: timed(by_hand),
            target=target,
            more_is_better=True,
        )

    return [
        comparison("same job", lean=False, target=TARGET),
        comparison("leanest by hand", lean=True, target=None),
    ]


def hand_written(folder: Path, spark: SparkSession, sink: str, servers: str, per_batch: int, *, lean: bool) -> None:
    """The job in plain PySpark."""
    raw = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", "events")
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", per_batch)
        .load()
    )
    rows = raw.select(F.from_json(F.col("value").cast("string"), ", ".join(FIELDS)).alias("event")).select("event.*")
    if not lean:
        rows = rows.where("event_id is not null and user_id is not null and event_time is not null")
    query = (
        rows.writeStream.format(sink)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .option("path", str(folder / "table"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def _write(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True)
    file = folder / "pipeline.yml"
    file.write_text(text, encoding="utf-8")
    return file
