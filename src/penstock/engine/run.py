"""`penstock run`, without the printing: every check, then the session, then the supervised query."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

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
from penstock.storage import is_local, local_path

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
    starting: Callable[[], None] | None = None,
) -> Summary:
    """Check everything that can be checked without a JVM, then run the pipeline."""
    trigger = options.trigger or pipeline.trigger
    pipeline = replace(pipeline, trigger=trigger)
    demand(pipeline)
    java = find_java()
    pipeline.source.preflight()
    pipeline.sink.preflight()
    check_checkpoint(pipeline)
    paths = class_path(pipeline, fetching=fetching)
    folder = state_folder(pipeline, options.state)
    stop = StopRequest()
    fence = Fence.claim(pipeline.checkpoint, pipeline=pipeline.name, take_over=options.take_over)
    try:
        events = EventLog(folder / "events" / f"{fence.epoch:08d}.jsonl")
        if starting:
            starting()
        spark = session.start(
            pipeline, jars=paths, log=folder / "spark.log", java=java, extra=fence_settings(pipeline, fence)
        )
        with stop.on_signals():
            try:
                return Run(
                    pipeline,
                    spark,
                    fence,
                    trigger=trigger,
                    events=events,
                    stop=stop,
                    reports=reports,
                    max_restarts=options.max_restarts,
                ).run()
            finally:
                events.close()
                spark.stop()
    finally:
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
        spark.stop()


def fence_settings(pipeline: Pipeline, fence: Fence) -> dict[str, str]:
    """What tells Spark's checkpoint writes which file means that this run was replaced."""
    own = {
        "spark.penstock.fence.successor": fence.successor,
        "spark.penstock.fence.checkpoint": pipeline.checkpoint,
    }
    if _MANAGER not in pipeline.spark:
        own[_MANAGER] = "penstock.FencedCheckpoints"
    return own


def check_checkpoint(pipeline: Pipeline) -> None:
    """Raise if the checkpoint is something that Spark could not start from."""
    from penstock.checkpoint import offsets
    from penstock.storage import open_store

    if is_local(pipeline.checkpoint):
        path = local_path(pipeline.checkpoint)
        if path.exists() and not path.is_dir():
            raise StorageError(
                f"checkpoint {path} is a file", why="a checkpoint is a folder", fix="choose another path"
            )
        if not path.exists():
            _check_parent(path)
            return
    store = open_store(pipeline.checkpoint)
    planned = offsets.batches(store, "offsets")
    if planned:
        # The last file decides where the next start begins, so a torn one is told before a JVM is started.
        offsets.read(store, planned[-1])
        metadata = store.get("metadata")
        if metadata is None or not _has_id(metadata):
            raise StorageError(
                f"{store.path('metadata')}: the query's id is {'gone' if metadata is None else 'not readable'}",
                why="without it Spark would take this for a new query, and the sink would not know its batches",
                fix="restore the file `metadata` from a copy; don't delete the checkpoint",
            )


def _check_parent(path: Path) -> None:
    """Raise if a folder that is not there yet could not be made."""
    parent = next(folder for folder in path.parents if folder.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise StorageError(
            f"checkpoint {path} can't be created",
            why=f"{parent} is {'not writable for this user' if parent.is_dir() else 'a file, not a folder'}",
            fix="choose a path whose parent is a folder that this user may write",
        )


def _has_id(metadata: bytes) -> bool:
    try:
        return bool(json.loads(metadata)["id"])
    except (ValueError, KeyError, TypeError):
        return False


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


__all__ = ["Options", "Reports", "check_checkpoint", "dry_run", "open_session", "prepare", "run", "state_folder"]
