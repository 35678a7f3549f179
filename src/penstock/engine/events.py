"""What happened in a run, one JSON object a line, on disk: batches, restarts, findings, the end.

`observe`, `doctor` and `drill` read these files and nothing else of a run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO


@dataclass(frozen=True, slots=True)
class Batch:
    """One finished micro-batch, as Spark reports it."""

    batch: int
    rows: int
    rows_per_s: float
    duration_ms: int
    lag: int | None
    watermark: str | None
    late: int
    put_aside: int
    min_event_time: str | None
    max_event_time: str | None
    spark: dict[str, Any] = field(repr=False, compare=False)

    @classmethod
    def from_progress(cls, progress: dict[str, Any]) -> Batch:
        """From Spark's progress JSON."""
        event_time = progress.get("eventTime") or {}
        operators = progress.get("stateOperators") or []
        observed = progress.get("observedMetrics") or {}
        return cls(
            batch=progress["batchId"],
            rows=progress.get("numInputRows", 0),
            rows_per_s=round(progress.get("processedRowsPerSecond") or 0.0, 1),
            duration_ms=(progress.get("durationMs") or {}).get("triggerExecution", progress.get("batchDuration", 0)),
            lag=_lag(progress.get("sources") or []),
            watermark=event_time.get("watermark"),
            late=sum(operator.get("numRowsDroppedByWatermark", 0) for operator in operators),
            put_aside=sum(metric.get("put_aside") or 0 for metric in observed.values()),
            min_event_time=event_time.get("min"),
            max_event_time=event_time.get("max"),
            spark=progress,
        )


class EventLog:
    """Appends events to one file; each line is whole once it is written."""

    def __init__(self, file: Path) -> None:
        self.file = file
        file.parent.mkdir(parents=True, exist_ok=True)
        self._stream: TextIO = file.open("a", encoding="utf-8", buffering=1)

    def write(self, event: str, **fields: Any) -> None:
        """Append one event."""
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._stream.write(json.dumps({"event": event, "at": at, **fields}, default=str) + "\n")

    def batch(self, batch: Batch) -> None:
        self.write("batch", **asdict(batch))

    def close(self) -> None:
        self._stream.close()


def read(file: Path) -> Iterator[dict[str, Any]]:
    """The events of a file; a torn last line of a killed run is left out."""
    with file.open(encoding="utf-8") as stream:
        for line in stream:
            if line.endswith("\n"):
                yield json.loads(line)


def _lag(sources: list[dict[str, Any]]) -> int | None:
    """How many records Kafka holds that the batch did not read; None where the source does not say."""
    total: int | None = None
    for source in sources:
        latest, end = source.get("latestOffset"), source.get("endOffset")
        if not isinstance(latest, dict) or not isinstance(end, dict):
            continue
        for topic, partitions in latest.items():
            if isinstance(partitions, dict):
                read_to = end.get(topic, {})
                total = (total or 0) + sum(max(0, at - read_to.get(p, 0)) for p, at in partitions.items())
    return total
