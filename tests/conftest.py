"""What the tests share: one Spark session, one Kafka broker, and pipelines written in a few words."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from penstock.spec.load import load
from penstock.spec.pipeline import Pipeline, Trigger

# A deadline measures the machine, not the law.
settings.register_profile("house", deadline=None, max_examples=60)
settings.load_profile("house")


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A real Kafka broker."""
    from penstock.cluster.kafka import KafkaBroker

    with KafkaBroker(tmp_path_factory.mktemp("kafka")) as running:
        yield running


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One session for all tests, made by the engine itself with the jars of every source and sink."""
    from penstock.engine import jars, jvm_classes, session
    from penstock.engine.java import find_java
    from penstock.lakes import ICEBERG_EXTENSIONS

    folder = tmp_path_factory.mktemp("session")
    file = folder / "all.yml"
    file.write_text(
        "name: tests\n"
        "source: {rate: {}}\n"
        f"sink: {{delta: {{path: {folder}/delta}}}}\n"
        f"checkpoint: {folder}/checkpoint\n"
        "spark:\n"
        "  spark.sql.shuffle.partitions: 2\n"
        f"  spark.sql.extensions: io.delta.sql.DeltaSparkSessionExtension,{ICEBERG_EXTENSIONS}\n"
        f"  spark.sql.warehouse.dir: {folder}/warehouse\n"
    )
    groups = ("kafka", "delta", "iceberg", "sqlite", "avro")
    made = session.start(
        load(file),
        jars=(*jars.fetch(groups), jvm_classes.build()),
        log=folder / "spark.log",
        java=find_java(),
    )
    yield made
    session.stop(made)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a pipeline file into the test's folder."""

    def write_file(text: str, name: str = "pipeline.yml") -> Path:
        file = tmp_path / name
        file.write_text(text)
        return file

    return write_file


@pytest.fixture
def pipeline(write: Callable[..., Path]) -> Callable[..., Pipeline]:
    """Load a pipeline from source, steps and sink as YAML; the rest has defaults."""

    def made(
        source: str, sink: str, *, steps: str = "[]", variables: dict[str, str] | None = None, **keys: str
    ) -> Pipeline:
        keys = {"name": "test", "checkpoint": "ck", "require": "at-most-once", **keys}
        rest = "".join(f"{key}: {value}\n" for key, value in keys.items())
        file = write(f"source: {source}\nsink: {sink}\nsteps: {steps}\n{rest}")
        return load(file, variables={**os.environ, **(variables or {})})

    return made


@pytest.fixture
def run(spark: Any) -> Callable[..., Any]:
    """Run a pipeline to the end in the shared session, as `penstock run` does in its own."""
    from penstock.engine.run import Options, run_in

    def run_once(given: Pipeline, *, trigger: str | Trigger = "available_now", stop: Any = None, **options: Any) -> Any:
        for part in given.parts:
            for key, value in part.settings.items():
                if key.startswith("spark.sql.catalog.") and key != "spark.sql.catalog.spark_catalog":
                    spark.conf.set(key, value)
        when = Trigger(trigger) if isinstance(trigger, str) else trigger
        return run_in(spark, given, Options(trigger=when, **options), stop=stop)

    return run_once
