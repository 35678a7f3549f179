"""Ending a query at a batch boundary, and hearing the signals that ask for it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class StopRequest:
    """Asked once: finish the batch under way. Asked twice: stop at once."""

    def __init__(self) -> None:
        self.gently = threading.Event()
        self.at_once = threading.Event()

    def ask(self) -> None:
        """Ask, or insist."""
        (self.at_once if self.gently.is_set() else self.gently).set()

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Let SIGTERM and Ctrl-C ask, for as long as the block lasts."""

        def handle(_number: int, _frame: FrameType | None) -> None:
            self.ask()

        before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def end_after_batch(query: Any) -> bool:
    """Let a query end by itself after its batch; False while the batch is still being planned (ask again).

    `stop()` would interrupt the batch. Marking the query as terminated makes its loop end after the batch
    instead (MicroBatchExecution.executeOneBatch), but a batch that is still being planned is interrupted
    even so (SPARK-57963), so we wait until its jobs run or nothing is under way.
    """
    if not query.isActive:
        return True
    if not query.status["isTriggerActive"]:
        query.stop()
        return True
    if _has_running_job(query):
        query._jsq.streamingQuery().state().set(_terminated(query))
        return True
    return False


def _has_running_job(query: Any) -> bool:
    tracker = query._jsq.sparkSession().sparkContext().statusTracker()
    active = set(tracker.getActiveJobIds())
    return any(job in active for job in tracker.getJobIdsForGroup(query.runId))


def _terminated(query: Any) -> Any:
    """Spark's own mark for a query that has ended (StreamExecution's states are not public)."""
    loader = query._jsq.getClass().getClassLoader()
    state = loader.loadClass("org.apache.spark.sql.execution.streaming.runtime.TERMINATED$")
    return state.getField("MODULE$").get(None)
