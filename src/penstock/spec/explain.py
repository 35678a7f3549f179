"""The end-to-end guarantee of a pipeline: what each part gives, which one limits it, what would raise it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from penstock.errors import GuaranteeError
from penstock.finding import Finding, Severity
from penstock.guarantee import Guarantee, Level, Share, at_least, at_most, exactly, weakest
from penstock.spec.pipeline import Pipeline
from penstock.spec.rules import asks_for_async_progress
from penstock.storage import is_local, local_path

_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_FENCED = "penstock.FencedCheckpoints"
_VOLATILE_FILE_SYSTEMS = ("tmpfs", "ramfs", "devtmpfs")
_CLEANED_FOLDERS = ("/tmp", "/var/tmp", "/private/tmp")  # noqa: S108 - names to look for, not to write to


@dataclass(frozen=True, slots=True)
class Explanation:
    """The guarantee, part by part."""

    level: Level
    shares: tuple[Share, ...]
    notes: tuple[Finding, ...]

    @property
    def limit(self) -> Share:
        return weakest(self.shares)


def explain(pipeline: Pipeline) -> Explanation:
    """Compute the guarantee from the file alone."""
    shares = [Share(f"source {pipeline.source.kind()}", pipeline.source.guarantee)]
    for number, step in enumerate(pipeline.steps):
        shares.append(Share(f"step {number + 1} {step.kind()}", _step(pipeline, number)))
    shares.append(Share(f"sink {pipeline.sink.kind()}", pipeline.sink.guarantee))
    shares.append(Share("checkpoint", _checkpoint(pipeline)))
    shares.append(Share(f"trigger {pipeline.trigger}", _trigger(pipeline)))
    shares.extend(_settings(pipeline))
    return Explanation(weakest(shares).guarantee.level, tuple(shares), tuple(_notes(pipeline)))


def demand(pipeline: Pipeline) -> Explanation:
    """The explanation, or GuaranteeError if the pipeline gives less than it requires."""
    explanation = explain(pipeline)
    if explanation.level < pipeline.require:
        limit = explanation.limit
        raise GuaranteeError(
            f"pipeline {pipeline.name} gives {explanation.level.label}, but requires {pipeline.require.label}",
            why=f"{limit.part}: {limit.guarantee.because}",
            fix=f"{limit.guarantee.raise_by}, or set require: {explanation.level.label}",
        )
    return explanation


def _step(pipeline: Pipeline, number: int) -> Guarantee:
    step = pipeline.steps[number]
    doubt = step.nondeterminism
    if not doubt:
        return exactly("the same input gives the same rows")
    later_state = any(later.keeps_state for later in pipeline.steps[number:])
    if later_state:
        return at_least(
            f"{doubt}, and a replay feeds it into state that the sink has partly seen already",
            raise_by="make the step deterministic (for a Python function, say so with deterministic: true)",
        )
    if pipeline.sink.needs_determinism:
        return at_least(
            f"{doubt}, and sink {pipeline.sink.kind()} needs the same rows from a replay",
            raise_by="make the step deterministic (for a Python function, say so with deterministic: true)",
        )
    return exactly(f"{doubt}, but sink {pipeline.sink.kind()} takes a batch whole or not at all")


def _checkpoint(pipeline: Pipeline) -> Guarantee:
    doubt = _dies(pipeline)
    if not doubt:
        place = "on local disk" if is_local(pipeline.checkpoint) else "in an object store"
        return exactly(f"offsets are written before a batch and commits after it, {place}")
    if pipeline.source.start_if_lost == "skips":
        return at_most(
            f"{doubt}; without it the source starts at the newest record and what came between is lost",
            raise_by="put the checkpoint on storage that outlives the machine",
        )
    return at_least(
        f"{doubt}; without it everything is read again",
        raise_by="put the checkpoint on storage that outlives the machine",
    )


def _dies(pipeline: Pipeline) -> str:
    """Why the checkpoint may be gone after a crash, or an empty string."""
    if not is_local(pipeline.checkpoint):
        return ""
    path = local_path(pipeline.checkpoint)
    master = pipeline.spark.get("spark.master", "local")
    if not master.startswith("local"):
        return f"{path} is on the local disk of one machine of a cluster ({master})"
    kind = _file_system(path)
    if kind in _VOLATILE_FILE_SYSTEMS:
        return f"{path} is in memory ({kind}) and gone with the machine"
    for folder in _CLEANED_FOLDERS:
        # A whole project under /tmp is somebody trying things out: its checkpoint lives as long as the rest.
        if path.is_relative_to(folder) and not pipeline.file.is_relative_to(folder):
            return f"{path} is in {folder}, which the system empties"
    return ""


def _file_system(path: Path) -> str:
    """The kind of file system that holds a path, where the system says so."""
    try:
        mounts = Path("/proc/mounts").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    best, kind = "", ""
    for line in mounts:
        _, point, found, *_ = line.split(" ")
        point = point.replace("\\040", " ")
        if path.is_relative_to(point) and len(point) >= len(best):
            best, kind = point, found
    return kind


def _trigger(pipeline: Pipeline) -> Guarantee:
    if pipeline.trigger.kind == "continuous":
        return at_least(
            "continuous processing writes rows before the epoch they belong to is committed",
            raise_by="use trigger: {every: …}",
        )
    if pipeline.trigger.kind == "real_time":
        return at_least(
            "real-time mode hands rows to the sink before the batch's offsets are written",
            raise_by="use trigger: {every: …}",
        )
    return exactly("a batch's range is fixed before it runs")


def _settings(pipeline: Pipeline) -> list[Share]:
    shares = []
    if asks_for_async_progress(pipeline):
        shares.append(
            Share(
                "setting asyncProgressTrackingEnabled",
                at_least(
                    "offsets and commits are written behind the batch, so a crash repeats several batches",
                    raise_by="remove asyncProgressTrackingEnabled",
                ),
            )
        )
    if pipeline.spark.get("spark.speculation", "false").lower() == "true":
        if pipeline.sink.needs_single_attempts:
            share = at_least(
                f"speculation runs a task twice at once, and sink {pipeline.sink.kind()} shows both",
                raise_by="remove spark.speculation",
            )
        else:
            share = exactly(f"sink {pipeline.sink.kind()} only shows the attempt that the driver committed")
        shares.append(Share("setting spark.speculation", share))
    manager = pipeline.spark.get(_MANAGER, "")
    if manager.endswith("AbortableStreamBasedCheckpointFileManager"):
        shares.append(
            Share(
                "setting checkpointFileManagerClass",
                at_most(
                    "this manager only warns when a write of the offset log fails; a later crash then loses the batch",
                    raise_by="remove spark.sql.streaming.checkpointFileManagerClass",
                ),
            )
        )
    return shares


def _notes(pipeline: Pipeline) -> list[Finding]:
    notes = []
    dedupe = pipeline.step("dedupe")
    if dedupe and not pipeline.step("watermark"):
        notes.append(
            Finding(
                "state_unbounded",
                Severity.WARNING,
                f"{pipeline.file.name}:{pipeline.line('steps')}",
                "dedupe without a watermark remembers every key for ever",
                "the state grows until it no longer fits",
                "add a watermark step before it",
            )
        )
    if pipeline.aggregates and not pipeline.step("watermark"):
        notes.append(
            Finding(
                "state_unbounded",
                Severity.WARNING,
                f"{pipeline.file.name}:{pipeline.line('steps')}",
                "the aggregation has no watermark, so it keeps every group for ever",
                "the state grows until it no longer fits",
                "add a watermark step, and group by a window",
            )
        )
    if pipeline.source.kind() == "files" and getattr(pipeline.source, "format", "") in ("json", "csv"):
        notes.append(
            Finding(
                "values_nulled",
                Severity.WARNING,
                f"{pipeline.file.name}:{pipeline.line('source')}",
                "what can't be read in the files becomes null without a word",
                "Spark's json and csv file sources have no place for malformed records",
                "use format: text and a parse step, which puts them into the quarantine",
            )
        )
    if pipeline.spark.get(_MANAGER, _FENCED) != _FENCED:
        notes.append(
            Finding(
                "fence_weakened",
                Severity.WARNING,
                f"{pipeline.file.name}:{pipeline.line('spark', _MANAGER)}",
                f"checkpoint writes go through {pipeline.spark[_MANAGER]}",
                "it does not look at the fence, so a run that was replaced while it slept may write once more",
                f"remove {_MANAGER}",
            )
        )
    if is_local(pipeline.checkpoint) and _file_system(local_path(pipeline.checkpoint)) == "overlay":
        notes.append(
            Finding(
                "checkpoint_in_container",
                Severity.NOTE,
                pipeline.checkpoint,
                "the checkpoint is in a container's own layer",
                "it is gone when the container is removed",
                "mount a volume, or use an object store",
            )
        )
    return notes
