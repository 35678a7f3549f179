"""Combinations that Spark would refuse at run time, refused when the file is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.errors import SpecError
from penstock.spec.load import load

WATERMARK = "  - watermark: {column: t, delay: 1 minute}\n"
COUNT = "  - sql: select k, count(*) as n from input group by k\n"


def rate(sink: str, *, steps: str = "", **keys: str) -> str:
    lines = [f"{key}: {value}\n" for key, value in keys.items()]
    body = f"steps:\n{steps}" if steps else ""
    return f"name: t\nsource: rate\nsink:\n  {sink}\ncheckpoint: ck\n{body}{''.join(lines)}"


REFUSED = {
    "mode_of_sink": (rate("delta: {path: out}", mode="update"), 6, "does not take mode update"),
    "complete_without_aggregation": (rate("console:", mode="complete"), 6, "needs an aggregation"),
    "append_without_watermark": (rate("console:", steps=COUNT, mode="append"), 8, "needs a watermark"),
    "two_watermarks": (rate("console:", steps=WATERMARK + WATERMARK), 8, "two watermark steps"),
    "watermark_after_aggregation": (rate("console:", steps=COUNT + WATERMARK), 8, "after the aggregation"),
    "continuous_with_watermark": (
        rate("console:", steps=WATERMARK, trigger="{continuous: 1 second}"),
        7,
        "does not take a watermark step",
    ),
    "continuous_with_count": (
        rate("console:", steps=COUNT, mode="update", trigger="{continuous: 1 second}"),
        7,
        "does not take a sql step",
    ),
    "continuous_with_delta": (
        rate("delta: {path: out}", trigger="{continuous: 1 second}"),
        6,
        "does not work with sink delta",
    ),
    "real_time_with_rate": (rate("console:", mode="update", trigger="{real_time: 5 minutes}"), 7, "source rate"),
    "async_progress": (
        rate("delta: {path: out, options: {asyncProgressTrackingEnabled: true}}"),
        3,
        "asynchronous progress",
    ),
    "checkpoint_is_sink": (rate("delta: {path: ck}"), 5, "checkpoint is a folder"),
    "quarantine_is_sink": (rate("delta: {path: out}", quarantine="out"), 6, "quarantine is a folder"),
    "quarantine_is_checkpoint": (rate("delta: {path: out}", quarantine="./ck"), 6, "quarantine is a folder"),
    "sink_is_source": (
        rate("delta: {path: out}").replace("source: rate", "source: {files: {path: ./out}}"),
        3,
        "the sink writes where the source reads",
    ),
    "moved_checkpoint": (rate("delta: {path: out, options: {CheckpointLocation: x}}"), 4, "would move the checkpoint"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_combination_that_can_t_run_is_refused(write: Callable[..., Path], case: str) -> None:
    text, line, what = REFUSED[case]
    with pytest.raises(SpecError) as caught:
        load(write(text=text))
    assert what in caught.value.what
    assert caught.value.line == line
    assert caught.value.why
    assert caught.value.fix


def test_real_time_is_refused_for_delta(write: Callable[..., Path]) -> None:
    with pytest.raises(SpecError, match="real_time does not work with sink delta"):
        load(write(add="trigger: {real_time: 5 minutes}\n"))


@pytest.mark.parametrize(
    ("steps", "mode", "what"),
    [("", "append", "does not take mode append"), ("  - dedupe: id\n", "update", "this dedupe step")],
)
def test_real_time_takes_only_stateless_updates(write: Callable[..., Path], steps: str, mode: str, what: str) -> None:
    add = f"mode: {mode}\ntrigger: {{real_time: 5 minutes}}\n" + (f"steps:\n{steps}" if steps else "")
    with pytest.raises(SpecError, match=what):
        load(write("delta: {path: out}", "console:", add=add))


@pytest.mark.parametrize(
    "text",
    [
        rate("console:", steps=WATERMARK + COUNT),
        rate("console:", steps=COUNT, mode="complete"),
        rate("console:", steps=COUNT, mode="update"),
        rate("console:", steps="  - sql: select a from input\n", trigger="{continuous: 1 second}"),
        rate("console:", steps="  - python: m:f\n", mode="complete"),
        rate("delta: {path: out/_checkpoints/..}"),
    ],
)
def test_a_combination_that_runs_is_taken(write: Callable[..., Path], text: str) -> None:
    assert load(write(text=text))


def test_real_time_from_kafka_is_taken(write: Callable[..., Path]) -> None:
    add = "mode: update\ntrigger: {real_time: 5 minutes}\n"
    assert load(write("delta: {path: out}", "console:", add=add)).trigger.kind == "real_time"
