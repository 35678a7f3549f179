"""Penstock's parts in a plain PySpark program: no pipeline file, no `penstock run`, no network, no extra jars.

    python examples/plain_pyspark.py [FOLDER]

Made-up events are parsed and written to Parquet, read back and counted. Run it again, or kill it in the middle
and run it again: the counts stay the same, because the checkpoint and Parquet's list of batches agree.

What `penstock run` adds is not here: the fence against a second run, the quarantine, restarts. The parse step
still leaves malformed rows out and counts them, but nobody keeps them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import penstock
from penstock.sample import event
from penstock.sinks.parquet import Parquet
from penstock.steps import Built
from penstock.steps.parse import Parse

EVENTS = 10_000


def main(folder: Path) -> int:
    # Workers must run the same Python as this program.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("plain_pyspark")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    sink = Parquet(path=str(folder / "events"))
    try:
        query = start(spark, sink, checkpoint=folder / "checkpoint")
        # `availableNow` would end after one batch: Spark 4.1 can't ask a Python source for more. So the query runs
        # with an ordinary trigger until nothing is left to read.
        query.processAllAvailable()
        query.stop()
        rows = sink.read_back(spark)
        return report(rows.count(), rows.select("event_id").distinct().count())
    finally:
        spark.stop()


def start(spark: SparkSession, sink: Parquet, *, checkpoint: Path) -> StreamingQuery:
    """events -> parse -> Parquet."""
    penstock.register(spark)
    events = spark.readStream.format("penstock_events").option("total", EVENTS).option("per_batch", 2_500).load()
    parse = Parse(format="json", schema="event_id string not null, user_id string not null, event_time timestamp")
    parsed = parse.apply(Built(events), index=0).frame
    writer = parsed.writeStream.option("checkpointLocation", str(checkpoint)).trigger(processingTime="0 seconds")
    return sink.attach(writer).start()


def report(rows: int, distinct: int) -> int:
    """Compare with the truth, which is known from the events' numbers."""
    malformed = sum(event(number).malformed for number in range(EVENTS))
    print(f"sent        {EVENTS:>7,}")
    print(f"malformed   {malformed:>7,}")
    print(f"in the table{rows:>7,}")
    print(f"lost        {EVENTS - malformed - distinct:>7,}")
    print(f"duplicated  {rows - distinct:>7,}")
    return 0 if rows == distinct == EVENTS - malformed else 1


if __name__ == "__main__":
    default = Path(__file__).parent / "data" / "plain_pyspark"
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else default))
