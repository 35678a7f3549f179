"""Whether the watermark fits what a run saw."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from penstock.durations import milliseconds
from penstock.engine.events import Batch
from penstock.engine.watermark_advice import MIN_BATCHES, MIN_ROWS, Lateness, advise
from penstock.finding import Finding, Severity

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def run(*, behind_s: float, late: int = 0, batches: int = 10, rows: int = 1000, delay: str) -> Finding | None:
    """A run whose every batch begins `behind_s` before the end of the one before it."""
    seen = Lateness()
    for number in range(batches):
        newest = NOON + timedelta(minutes=number)
        oldest = newest - timedelta(minutes=1) - timedelta(seconds=behind_s)
        progress = {
            "batchId": number,
            "numInputRows": rows,
            "eventTime": {"min": oldest.isoformat(), "max": newest.isoformat()},
            "stateOperators": [{"numRowsDroppedByWatermark": late if number else 0}],
        }
        seen.add(Batch.from_progress(progress))
        seen.add(Batch.from_progress({"batchId": number, "numInputRows": 0}))
    return advise(seen, delay=delay, where="orders.yml:7")


def test_a_watermark_far_too_short_is_pointed_out() -> None:
    found = run(behind_s=1800, late=50, delay="1 minute")
    assert found is not None
    assert (found.rule, found.severity, found.where) == ("watermark_too_short", Severity.WARNING, "orders.yml:7")
    assert "30 minutes late" in found.what
    assert "450 of 10,000" in found.why
    assert "delay: 30 minutes" in found.fix


def test_a_watermark_far_too_long_is_pointed_out() -> None:
    found = run(behind_s=10, delay="1 day")
    assert found is not None
    assert found.rule == "watermark_too_long"
    assert "delay: 20 seconds" in found.fix


@pytest.mark.parametrize(
    ("behind_s", "late", "delay"), [(50, 0, "1 minute"), (300, 1, "1 minute"), (-60, 0, "10 seconds")]
)
def test_a_watermark_that_fits_is_left_alone(behind_s: float, late: int, delay: str) -> None:
    assert run(behind_s=behind_s, late=late, delay=delay) is None


@pytest.mark.parametrize(("batches", "rows"), [(MIN_BATCHES, MIN_ROWS), (100, 1), (0, 0), (1, 10**6)])
def test_a_run_too_short_to_judge_by_gives_no_advice(batches: int, rows: int) -> None:
    assert run(behind_s=10, delay="1 day", batches=batches, rows=rows) is None


@pytest.mark.parametrize("behind_s", [0.2, 3, 59.5, 61, 5000, 200_000])
def test_the_advised_delay_can_be_written_in_a_file_and_covers_what_was_seen(behind_s: float) -> None:
    found = run(behind_s=behind_s, late=900, delay="0 seconds")
    assert found is not None
    delay = found.fix.partition("delay: ")[2].partition(" if")[0]
    assert milliseconds(delay) >= behind_s * 1000
