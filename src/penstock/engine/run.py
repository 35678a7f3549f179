"""`penstock run`, without the printing: every check, then the session, then the supervised query."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.checkpoint import preflight
from penstock.engine import build as building
from penstock.engine import class_archive, jars, jvm_classes, launch, session
from penstock.engine.events import EventLog
from penstock.engine.fence import Fence
from penstock.engine.java import find_java
from penstock.engine.stopping import StopRequest
from penstock.engine.supervise import MAX_RESTARTS, Reports, Run, Summary
from penstock.errors import StorageError
from penstock.spec.explain import demand
from penstock.spec.pipeline import Pipeline, Trigger

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line adds to the file."""

    trigger: Trigger | None = None
    take_over: bool = False
    max_restarts: int = MAX_RESTARTS
    state: Path | None = None


def state_folder(pipeline: Pipeline, given: Path | None = None) -> Path:
    """Where a run keeps its events and logs: `.penstock/<name>` beside the file."""
    return (given or pipeline.folder / ".penstock") / pipeline.name


def run(
    pipeline: Pipeline,
    options: Options,
    *,
    reports: Reports,
    fetching: Callable[[jars.Progress], None] | None = None,
) -> Summary:
    """Check everything that can be checked without a JVM, then run the pipeline."""
    pipeline = replace(pipeline, trigger=options.trigger or pipeline.trigger)
    demand(pipeline)
    java = find_java()
    pipeline.source.preflight()
    pipeline.sink.preflight()
    preflight.check(pipeline.checkpoint)
    paths = class_path(pipeline, fetching=fetching)
    folder = state_folder(pipeline, options.state)
    fence = Fence.claim(pipeline.checkpoint, pipeline=pipeline.name, take_over=options.take_over)
    try:
        spark = session.start(pipeline, jars=paths, log=folder / "spark.log", java=java)
        stop = StopRequest()
        with stop.on_signals():
            try:
                return _supervise(pipeline, spark, fence, options, reports=reports, stop=stop)
            finally:
                session.stop(spark)
    finally:
        _release(fence)


def run_in(
    spark: SparkSession,
    pipeline: Pipeline,
    options: Options | None = None,
    *,
    reports: Reports | None = None,
    stop: StopRequest | None = None,
) -> Summary:
    """Run a pipeline in a session that is there already, which must have the pipeline's jars."""
    options = options or Options()
    pipeline = replace(pipeline, trigger=options.trigger or pipeline.trigger)
    demand(pipeline)
    preflight.check(pipeline.checkpoint)
    fence = Fence.claim(pipeline.checkpoint, pipeline=pipeline.name, take_over=options.take_over)
    try:
        return _supervise(pipeline, spark, fence, options, reports=reports or Reports(), stop=stop or StopRequest())
    finally:
        _release(fence)


def _supervise(
    pipeline: Pipeline, spark: SparkSession, fence: Fence, options: Options, *, reports: Reports, stop: StopRequest
) -> Summary:
    settings = _fence_settings(pipeline, fence)
    for key, value in settings.items():
        spark.conf.set(key, value)
    events = EventLog(state_folder(pipeline, options.state) / "events" / f"{fence.epoch:08d}.jsonl")
    try:
        return Run(
            pipeline,
            spark,
            fence,
            events=events,
            stop=stop,
            reports=reports,
            max_restarts=options.max_restarts,
        ).run()
    finally:
        events.close()
        for key in settings:
            spark.conf.unset(key)


def _release(fence: Fence) -> None:
    # The run's own outcome matters more; the next run sees that this process is gone.
    with suppress(StorageError):
        fence.release()


def dry_run(
    pipeline: Pipeline, *, state: Path | None = None, fetching: Callable[[jars.Progress], None] | None = None
) -> str:
    """The plan that Spark would run; nothing is started or written except under the state folder."""
    demand(pipeline)
    java = find_java()
    pipeline.source.preflight()
    pipeline.sink.preflight()
    paths = class_path(pipeline, fetching=fetching)
    spark = session.start(pipeline, jars=paths, log=state_folder(pipeline, state) / "spark.log", java=java)
    try:
        return building.plan(pipeline, building.build(pipeline, spark))
    finally:
        session.stop(spark)


def _fence_settings(pipeline: Pipeline, fence: Fence) -> dict[str, str]:
    """What tells Spark's checkpoint writes which file means that this run was replaced."""
    own = {
        "spark.penstock.fence.successor": fence.successor,
        "spark.penstock.fence.checkpoint": pipeline.checkpoint,
    }
    if _MANAGER not in pipeline.spark:
        own[_MANAGER] = "penstock.FencedCheckpoints"
    return own


def open_session(pipeline: Pipeline, *, log: Path) -> SparkSession:
    """A session with the pipeline's jars, for reading its sink back."""
    java = find_java()
    return session.start(pipeline, jars=class_path(pipeline), log=log, java=java)


def class_path(pipeline: Pipeline, *, fetching: Callable[[jars.Progress], None] | None = None) -> tuple[Path, ...]:
    """The jars of every session of this pipeline; always the same, since a class archive holds for one path."""
    return (*jars.fetch(pipeline.jars, progress=fetching), jvm_classes.build())


def prepare(pipeline: Pipeline, *, fetching: Callable[[jars.Progress], None] | None = None) -> Path | None:
    """Do beforehand what a first run would do, and make the class archive; its path, or None without one."""
    java = find_java()
    conf = session.with_jars(session.settings(pipeline), class_path(pipeline, fetching=fetching))
    if not launch.is_possible(conf):
        return None
    return class_archive.make(java, launch.class_path(conf), groups=pipeline.jars)


__all__ = ["Options", "Reports", "dry_run", "open_session", "prepare", "run", "run_in", "state_folder"]
