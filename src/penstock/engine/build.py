"""From a pipeline to the DataFrame and stream writer that Spark will run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from penstock.engine.failures import analysis_message
from penstock.errors import SpecError, UsageError
from penstock.spec.pipeline import Pipeline, Trigger
from penstock.steps import Built

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter


def build(pipeline: Pipeline, spark: SparkSession) -> Built:
    """Source and steps as one streaming DataFrame, checked by Spark's analyser."""
    from pyspark.errors import PySparkException

    if str(pipeline.folder) not in sys.path:
        sys.path.insert(0, str(pipeline.folder))
    place: tuple[str | int, ...] = ("source",)
    try:
        built = Built(pipeline.source.read(spark))
        for index, step in enumerate(pipeline.steps):
            place = ("steps", index, step.kind())
            built = step.apply(built, index=index)
        place = ("mode",)
        _check(pipeline, built)
    except PySparkException as error:
        raise SpecError(
            f"{_name(pipeline, place)}: {analysis_message(error)}",
            file=str(pipeline.file),
            line=pipeline.line(*place),
            why="Spark can't analyse this part of the pipeline",
            fix="correct it and look at the plan with `penstock run --dry-run`",
        ) from None
    except UsageError as error:
        raise SpecError(
            error.what, file=str(pipeline.file), line=pipeline.line(*place), why=error.why, fix=error.fix
        ) from None
    return built


def plan(pipeline: Pipeline, built: Built) -> str:
    """The plan that Spark would run, as text."""
    execution: Any = built.frame._jdf.queryExecution()
    return str(execution.toString())


def writer(pipeline: Pipeline, built: Built, trigger: Trigger) -> DataStreamWriter:
    """A stream writer that only has to be started."""
    prepare = getattr(pipeline.sink, "create_if_absent", None)
    if prepare:
        prepare(built.frame)
    out = built.frame.writeStream.queryName(pipeline.name).outputMode(pipeline.mode)
    out = out.option("checkpointLocation", pipeline.checkpoint)
    return pipeline.sink.attach(_trigger(out, trigger))


def _trigger(out: DataStreamWriter, trigger: Trigger) -> DataStreamWriter:
    match trigger.kind:
        case "once":
            return out.trigger(once=True)
        case "available_now":
            return out.trigger(availableNow=True)
        case "continuous":
            return out.trigger(continuous=trigger.interval)
        case "real_time":
            return _real_time(out, trigger.interval)
        case _:
            return out.trigger(processingTime=trigger.interval)


def _real_time(out: DataStreamWriter, interval: str) -> DataStreamWriter:
    # PySpark 4.1 has the trigger only on the JVM's side.
    jvm: Any = out._spark._jvm
    out._jwrite = out._jwrite.trigger(jvm.org.apache.spark.sql.streaming.Trigger.RealTime(interval))
    return out


def _check(pipeline: Pipeline, built: Built) -> None:
    """Spark's own verdict on the combination, before anything is written."""
    jvm: Any = built.frame.sparkSession._jvm
    analyzed = built.frame._jdf.queryExecution().analyzed()
    modes = jvm.org.apache.spark.sql.streaming.OutputMode
    mode = {"append": modes.Append, "update": modes.Update, "complete": modes.Complete}[pipeline.mode]()
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    if pipeline.trigger.kind == "continuous":
        checker.checkForContinuous(analyzed, mode)
    else:
        checker.checkForStreaming(analyzed, mode)


def _name(pipeline: Pipeline, place: tuple[str | int, ...]) -> str:
    match place:
        case ("source",):
            return f"source {pipeline.source.kind()}"
        case ("steps", int(index), str(kind)):
            return f"step {index + 1} {kind}"
        case _:
            return f"mode {pipeline.mode}"
