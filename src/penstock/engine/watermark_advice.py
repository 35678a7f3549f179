"""Whether the watermark fits the lateness that a run really saw."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from penstock.durations import describe, milliseconds
from penstock.engine.events import Batch
from penstock.finding import Finding, Severity

# Below these a run is too short to judge by.
MIN_BATCHES = 5
MIN_ROWS = 1_000
TOO_LONG = 20
TOO_MANY_LATE = 0.001


@dataclass(slots=True)
class Lateness:
    """The worst lateness seen: how far a batch's oldest row lay behind the newest row of the batches before it.

    That distance is what a watermark's delay is measured against.
    """

    worst_ms: float = 0.0
    rows: int = 0
    batches: int = 0
    late: int = 0
    _newest: datetime | None = field(default=None, repr=False)

    def add(self, batch: Batch) -> None:
        """Take one finished batch into account."""
        if not batch.rows or batch.min_event_time is None or batch.max_event_time is None:
            return
        oldest, newest = datetime.fromisoformat(batch.min_event_time), datetime.fromisoformat(batch.max_event_time)
        if self._newest is not None:
            self.worst_ms = max(self.worst_ms, (self._newest - oldest).total_seconds() * 1000)
            self.batches += 1
        self._newest = max(newest, self._newest) if self._newest else newest
        self.rows += batch.rows
        self.late += batch.late


def advise(seen: Lateness, *, delay: str, where: str) -> Finding | None:
    """A finding if the delay is far too short or far too long for what was seen; None if it fits or can't be told."""
    if seen.batches < MIN_BATCHES or seen.rows < MIN_ROWS:
        return None
    delay_ms = milliseconds(delay)
    if seen.late > TOO_MANY_LATE * seen.rows and seen.worst_ms > delay_ms:
        return Finding(
            "watermark_too_short",
            Severity.WARNING,
            where,
            f"records came up to {describe(seen.worst_ms)} late, the watermark waits {describe(delay_ms)}",
            f"{seen.late:,} of {seen.rows:,} rows or groups were dropped as late",
            f"set delay: {_rounded(seen.worst_ms)} if they matter; it holds state for that long",
        )
    if not seen.late and delay_ms > TOO_LONG * max(seen.worst_ms, 1_000):
        return Finding(
            "watermark_too_long",
            Severity.NOTE,
            where,
            f"no record came more than {describe(seen.worst_ms)} late, the watermark waits {describe(delay_ms)}",
            "results appear and state is freed that much later than they could be",
            f"set delay: {_rounded(max(seen.worst_ms * 2, 1_000))} if this run is typical",
        )
    return None


def _rounded(length_ms: float) -> str:
    """The next whole unit above a length, as it would be written in a file."""
    for unit, size in (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1_000)):
        if length_ms >= size:
            count = int(-(-length_ms // size))
            return f"{count} {unit}{'s' if count != 1 else ''}"
    return "1 second"
