"""Progress events: from Spark's JSON to lines on disk and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from penstock.engine import events
from penstock.engine.events import Batch, EventLog

PROGRESS: dict[str, Any] = {
    "id": "1b5f",
    "batchId": 7,
    "numInputRows": 30000,
    "processedRowsPerSecond": 12345.678,
    "durationMs": {"addBatch": 900, "triggerExecution": 1000},
    "eventTime": {
        "min": "2026-01-01T00:00:00.000Z",
        "max": "2026-01-01T01:00:00.000Z",
        "watermark": "2026-01-01T00:40:00.000Z",
    },
    "stateOperators": [{"numRowsDroppedByWatermark": 3}, {"numRowsDroppedByWatermark": 4}],
    "sources": [
        {"endOffset": {"events": {"0": 10, "1": 5}}, "latestOffset": {"events": {"0": 30, "1": 5, "2": 7}}},
        {"endOffset": 12, "latestOffset": 12},
    ],
    "observedMetrics": {"penstock_parse_0": {"rows": 30000, "put_aside": 2}},
}


def test_a_batch_says_what_spark_reported() -> None:
    batch = Batch.from_progress(PROGRESS)
    assert (batch.batch, batch.rows, batch.rows_per_s, batch.duration_ms) == (7, 30000, 12345.7, 1000)
    assert (batch.late, batch.put_aside, batch.lag) == (7, 2, 27)
    assert batch.watermark == "2026-01-01T00:40:00.000Z"


def test_a_bare_progress_has_no_lag_and_no_watermark() -> None:
    for empty in ({}, {"durationMs": None, "observedMetrics": None, "sources": None, "eventTime": None}):
        batch = Batch.from_progress({"batchId": 0, **empty})
        assert (batch.rows, batch.late, batch.put_aside, batch.lag, batch.watermark) == (0, 0, 0, None, None)


def test_a_metric_without_a_value_counts_nothing() -> None:
    assert Batch.from_progress({"batchId": 0, "observedMetrics": {"p": {"put_aside": None}}}).put_aside == 0


def test_what_was_written_is_read_back_with_its_moment(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "runs" / "events" / "1.jsonl")
    log.write("started", run="r", path=tmp_path)
    log.batch(Batch.from_progress(PROGRESS))
    log.close()
    started, batch = events.read(log.file)
    assert (started["event"], started["path"]) == ("started", str(tmp_path))
    assert started["at"].endswith("+00:00")
    assert (batch["event"], batch["batch"], batch["lag"]) == ("batch", 7, 27)
    assert batch["spark"]["id"] == "1b5f"


def test_each_line_is_on_disk_when_write_returns(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "1.jsonl")
    log.write("started")
    assert [event["event"] for event in events.read(log.file)] == ["started"]
    log.close()


def test_a_second_log_of_the_same_file_appends(tmp_path: Path) -> None:
    for name in ("started", "ended"):
        log = EventLog(tmp_path / "1.jsonl")
        log.write(name)
        log.close()
    assert [event["event"] for event in events.read(tmp_path / "1.jsonl")] == ["started", "ended"]


@given(cut=st.integers(0, 200))
def test_a_torn_last_line_is_left_out(tmp_path_factory: Any, cut: int) -> None:
    file = tmp_path_factory.mktemp("events") / "1.jsonl"
    whole = '{"event": "a"}\n{"event": "b", "note": "line\\nbreak"}\n'
    file.write_text(whole[:cut])
    assert [event["event"] for event in events.read(file)] == ["a", "b"][: whole[:cut].count("\n")]
