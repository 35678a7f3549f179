"""A small pipeline, played in a JVM of its own so that its classes can be archived; see `class_archive`.

Run as `python -m penstock.engine.rehearsal` with the task as JSON on standard input. It goes the way of a real
run (fence, parse, state, quarantine, the lake's commit), over made-up files. Kafka's classes are loaded without
a broker: a consumer that finds nobody loads most of them, and the rest are named.
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock import sample
from penstock.engine import session
from penstock.engine.ivy import pyspark_jars
from penstock.engine.java import Java
from penstock.engine.run import Options, run_in
from penstock.spec.load import load
from penstock.spec.pipeline import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EVENTS = 400
_PIPELINE = """\
name: rehearsal
source:
  files: {path: in}
steps:
  - parse:
      format: json
      schema: event_id string not null, user_id string not null, event_time timestamp not null, data string
  - watermark: {column: event_time, delay: 10 minutes}
  - sql: >
      select window(event_time, '1 hour').start as hour, user_id, count(*) as events
      from input group by window(event_time, '1 hour'), user_id
mode: append
trigger: available_now
checkpoint: checkpoint
require: at-least-once
"""
_SINKS = {
    "delta": "delta: {path: table}",
    "iceberg": "iceberg: {table: t.t, catalog: {type: hadoop, warehouse: table}}",
}
_PARQUET = "parquet: {path: table}"
_KAFKA_PACKAGES = ("org/apache/spark/", "org/apache/kafka/common/record/", "org/apache/kafka/clients/consumer/")


def main() -> None:
    """Play, then wait until the JVM has written its archive and ended."""
    task = json.load(sys.stdin)
    folder, groups = Path(task["folder"]), list(task["groups"])
    java = Java(path=Path(task["java"]), version=0, text="")
    # PySpark's own come by themselves, and the whole must be the very path that the archive is for.
    own = [jar for jar in map(Path, task["path"]) if jar.parent != pyspark_jars()]
    _write_input(folder / "in")
    pipeline = _pipeline(folder, groups=groups)
    spark = session.start(
        pipeline,
        jars=own,
        log=folder / "spark.log",
        java=java,
        jvm_options=[f"-XX:ArchiveClassesAtExit={task['into']}"],
    )
    gateway: Any = spark.sparkContext._gateway
    run_in(spark, pipeline, Options(max_restarts=0))
    pipeline.sink.read_back(spark).count()
    if "kafka" in groups:
        _load_kafka(spark, own)
    spark.stop()
    gateway.proc.stdin.close()
    sys.exit(1 if gateway.proc.wait() else 0)


def _pipeline(folder: Path, *, groups: list[str]) -> Pipeline:
    sink = next((text for group, text in _SINKS.items() if group in groups), _PARQUET)
    file = folder / "rehearsal.yml"
    file.write_text(_PIPELINE + f"sink:\n  {sink}\n", encoding="utf-8")
    return load(file, variables={})


def _write_input(folder: Path) -> None:
    folder.mkdir()
    # Times far apart, so that windows close.
    events = (sample.event(number, step_ms=100_000) for number in range(_EVENTS))
    (folder / "events.json").write_bytes(b"\n".join(event.value for event in events))


def _load_kafka(spark: SparkSession, jars: list[Path]) -> None:
    from py4j.protocol import Py4JError

    jvm: Any = spark._jvm
    bytes_reader = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
    settings = jvm.java.util.HashMap()
    settings.put("bootstrap.servers", "127.0.0.1:9")
    settings.put("group.id", "rehearsal")
    settings.put("key.deserializer", bytes_reader)
    settings.put("value.deserializer", bytes_reader)
    consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(settings)
    consumer.subscribe(jvm.java.util.Collections.singletonList("rehearsal"))
    with suppress(Py4JError):
        consumer.poll(jvm.java.time.Duration.ofMillis(200))
    consumer.close(jvm.java.time.Duration.ofMillis(0))
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    for name in _kafka_classes(jars):
        # Some need an optional jar that is not here.
        with suppress(Py4JError):
            jvm.java.lang.Class.forName(name, False, loader)


def _kafka_classes(jars: list[Path]) -> Iterator[str]:
    for jar in jars:
        if "kafka" in jar.name:
            with zipfile.ZipFile(jar) as archive:
                for entry in archive.namelist():
                    if entry.startswith(_KAFKA_PACKAGES) and entry.endswith(".class"):
                        yield entry.removesuffix(".class").replace("/", ".")


if __name__ == "__main__":
    main()
