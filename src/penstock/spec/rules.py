"""Combinations that Spark would refuse at run time, refused when the file is read."""

from __future__ import annotations

from penstock.errors import SpecError
from penstock.spec.pipeline import Pipeline


def check(pipeline: Pipeline) -> None:
    """Raise SpecError for the first combination that can't run."""
    for rule in (
        _places,
        _mode_of_sink,
        _mode_of_steps,
        _watermark,
        _parse,
        _continuous,
        _real_time,
        _async_progress,
    ):
        rule(pipeline)


def _error(pipeline: Pipeline, what: str, *path: str | int, why: str, fix: str) -> SpecError:
    return SpecError(what, file=str(pipeline.file), line=pipeline.line(*path), why=why, fix=fix)


def _places(pipeline: Pipeline) -> None:
    taken = [pipeline.checkpoint, getattr(pipeline.sink, "path", None), getattr(pipeline.source, "path", None)]
    if pipeline.checkpoint in taken[1:] or pipeline.quarantine in taken:
        key = "checkpoint" if pipeline.checkpoint in taken[1:] else "quarantine"
        raise _error(
            pipeline,
            f"{key} is a folder that the pipeline uses for something else",
            key,
            why="source, sink, checkpoint and quarantine would overwrite each other's files",
            fix=f"give the {key} a folder of its own",
        )
    if taken[1] and taken[1] == taken[2]:
        raise _error(
            pipeline,
            "the sink writes where the source reads",
            "sink",
            why="the pipeline would read its own results again and again",
            fix="give the sink a folder of its own",
        )
    for key in getattr(pipeline.sink, "options", {}):
        if key.lower() == "checkpointlocation":
            raise _error(
                pipeline,
                f"the option {key} would move the checkpoint",
                "sink",
                pipeline.sink.kind(),
                "options",
                key,
                why="the fence and the guarantee hold for the checkpoint that the file names",
                fix="remove the option and set checkpoint: instead",
            )


def _mode_of_sink(pipeline: Pipeline) -> None:
    sink = pipeline.sink
    if pipeline.mode not in sink.modes:
        raise _error(
            pipeline,
            f"sink {sink.kind()} does not take mode {pipeline.mode}",
            "mode",
            why=f"it can do: {', '.join(sink.modes)}",
            fix=f"set mode: {sink.modes[0]}, or use another sink",
        )


def _mode_of_steps(pipeline: Pipeline) -> None:
    if pipeline.mode == "complete" and not pipeline.aggregates and not pipeline.step("python"):
        raise _error(
            pipeline,
            "mode complete needs an aggregation",
            "mode",
            why="without one the complete result is the whole input, which Spark does not keep",
            fix="set mode: append, or group in a sql step",
        )
    if pipeline.mode == "append" and pipeline.aggregates and not pipeline.step("watermark"):
        raise _error(
            pipeline,
            "mode append with an aggregation needs a watermark",
            "mode",
            why="a group is only appended once no more rows can join it, and without a watermark that is never",
            fix="add a watermark step before the aggregation, or set mode: update or complete",
        )


def _watermark(pipeline: Pipeline) -> None:
    kinds = [step.kind() for step in pipeline.steps]
    if kinds.count("watermark") > 1:
        raise _error(
            pipeline,
            "there are two watermark steps",
            "steps",
            kinds.index("watermark", kinds.index("watermark") + 1),
            why="a stream has one watermark, and two delays for it contradict each other",
            fix="keep one of them",
        )
    if "watermark" in kinds:
        at = kinds.index("watermark")
        for number, step in enumerate(pipeline.steps[:at]):
            if step.aggregates:
                raise _error(
                    pipeline,
                    "the watermark comes after the aggregation",
                    "steps",
                    at,
                    why="it only bounds the state of what follows it",
                    fix=f"move it before step {number + 1}",
                )


def _parse(pipeline: Pipeline) -> None:
    state_at = next((number for number, step in enumerate(pipeline.steps) if step.keeps_state), None)
    for number, step in enumerate(pipeline.steps):
        if step.kind() == "parse" and state_at is not None and number > state_at:
            raise _error(
                pipeline,
                "the parse step comes after a step that keeps state",
                "steps",
                number,
                why="malformed rows are found again by reading the batch once more, which state does not allow",
                fix=f"move it before step {state_at + 1}",
            )


def _continuous(pipeline: Pipeline) -> None:
    if pipeline.trigger.kind == "continuous":
        _special(pipeline, "continuous", source=pipeline.source.continuous, sink=pipeline.sink.continuous)
        for number, step in enumerate(pipeline.steps):
            if not step.map_like:
                raise _error(
                    pipeline,
                    f"trigger continuous does not take a {step.kind()} step",
                    "steps",
                    number,
                    why="continuous processing only selects and filters: no state, no watermark, no counting",
                    fix="use trigger: {every: 1 second}, or real_time where source and sink allow it",
                )


def _real_time(pipeline: Pipeline) -> None:
    if pipeline.trigger.kind == "real_time":
        _special(pipeline, "real_time", source=pipeline.source.real_time, sink=pipeline.sink.real_time)
        if pipeline.mode != "update":
            raise _error(
                pipeline,
                f"trigger real_time does not take mode {pipeline.mode}",
                "mode",
                why="Spark's real-time mode emits rows before a batch is complete, which is what update means",
                fix="set mode: update",
            )
        for number, step in enumerate(pipeline.steps):
            if step.keeps_state:
                raise _error(
                    pipeline,
                    f"trigger real_time does not take this {step.kind()} step",
                    "steps",
                    number,
                    why="Spark 4.1 allows only stateless operators in real-time mode",
                    fix="use trigger: {every: 1 second}",
                )


def _special(pipeline: Pipeline, kind: str, *, source: bool, sink: bool) -> None:
    for part, allowed, place in ((pipeline.source, source, "source"), (pipeline.sink, sink, "sink")):
        if not allowed:
            raise _error(
                pipeline,
                f"trigger {kind} does not work with {place} {part.kind()}",
                "trigger",
                why=f"Spark's {part.kind()} {place} does not do it",
                fix="use trigger: {every: 1 second}",
            )


def _async_progress(pipeline: Pipeline) -> None:
    if asks_for_async_progress(pipeline) and not pipeline.sink.async_progress:
        raise _error(
            pipeline,
            f"asynchronous progress tracking does not work with sink {pipeline.sink.kind()}",
            "sink",
            why="Spark only takes it for its Kafka sink, and never for a stateful query",
            fix="remove asyncProgressTrackingEnabled",
        )


def asks_for_async_progress(pipeline: Pipeline) -> bool:
    """Whether an option asks Spark to write offsets and commits behind the batch."""
    options = {
        **getattr(pipeline.source, "options", {}),
        **getattr(pipeline.sink, "options", {}),
        **pipeline.spark,
    }
    return any(
        key.lower().endswith("asyncprogresstrackingenabled") and value.lower() == "true"
        for key, value in options.items()
    )
