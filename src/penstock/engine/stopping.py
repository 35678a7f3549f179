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
    tracker = query._jsq.sparkSession().sparkContext().statusTracker()
    if len(tracker.getJobIdsForGroup(query.runId)) and _has_running_job(tracker, query.runId):
        execution = query._jsq.streamingQuery() if hasattr(query._jsq, "streamingQuery") else query._jsq
        terminated = _terminated(query)
        execution.state().set(terminated)
        return True
    return False


def _has_running_job(tracker: Any, group: str) -> bool:
    active = set(tracker.getActiveJobIds())
    return any(job in active for job in tracker.getJobIdsForGroup(group))


def _terminated(query: Any) -> Any:
    jvm = query._jsq  # any Java object leads to its class loader's classes
    loader = jvm.getClass().getClassLoader()
    return (
        loader.loadClass("org.apache.spark.sql.execution.streaming.runtime.TERMINATED$").getField("MODULE$").get(None)
    )
