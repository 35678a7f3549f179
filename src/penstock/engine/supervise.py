"""Runs a pipeline until it ends: claims the fence, starts the query, restarts it after passing faults."""

from __future__ import annotations

import json
import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.engine import build as building
from penstock.engine.events import Batch, EventLog
from penstock.engine.failures import explain_failure
from penstock.engine.fence import Fence
from penstock.engine.late import LateRule, late_rule
from penstock.engine.quarantine import Looked, Quarantine
from penstock.engine.stopping import StopRequest, end_after_batch
from penstock.engine.watermark_advice import Lateness, advise
from penstock.errors import PenstockError, RunError
from penstock.finding import Finding
from penstock.spec.pipeline import Pipeline
from penstock.steps import Built

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryListener
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger("penstock.run")
POLL_S = 0.05
LISTENER_TIMEOUT_S = 30.0
# So many rows and not one that could be read: the file does not fit the topic, and going on helps nobody.
UNREADABLE_ROWS = 1_000
FENCE_POLL_S = 1.0
MAX_RESTARTS = 10
BACKOFF_S = (1.0, 60.0)


@dataclass(slots=True)
class Summary:
    """What a run did."""

    epoch: int
    batches: int = 0
    rows: int = 0
    malformed: int = 0
    put_aside: int = 0
    example: str = ""
    late: int = 0
    late_is_exact: bool = True
    restarts: int = 0
    stopped: bool = False
    findings: list[Finding] = field(default_factory=list)
    events: Path = Path()


@dataclass(frozen=True, slots=True)
class Reports:
    """Where a run tells what happens; each may be called from another thread."""

    batch: Callable[[Batch], None] = lambda _batch: None
    restarting: Callable[[PenstockError, float], None] = lambda _error, _wait_s: None
    stopping: Callable[[], None] = lambda: None


class Run:
    """One run of one pipeline in one session."""

    def __init__(
        self,
        pipeline: Pipeline,
        spark: SparkSession,
        fence: Fence,
        *,
        events: EventLog,
        stop: StopRequest,
        reports: Reports,
        max_restarts: int = MAX_RESTARTS,
    ) -> None:
        self.pipeline = pipeline
        self.spark = spark
        self.fence = fence
        self.events = events
        self.stop = stop
        self.reports = reports
        self.max_restarts = max_restarts
        self.summary = Summary(epoch=fence.epoch, events=events.file)
        self.lateness = Lateness()
        self.quarantine: Quarantine | None = None
        self._query_id = ""
        self._told_all = threading.Event()
        self._progressed = False

    def run(self) -> Summary:
        """Run until the query ends by itself, is asked to stop, or fails for good."""
        listener = _listener(self._on_progress, self._on_terminated)
        self.spark.streams.addListener(listener)
        try:
            self._attempts()
            if self.quarantine and not self.stop.at_once.is_set():
                self.quarantine.finish()
            if self._all_malformed():
                raise self._unreadable()
        except PenstockError as error:
            self.events.write("failed", what=error.what, why=error.why, fix=error.fix)
            raise
        finally:
            self.spark.streams.removeListener(listener)
        self.summary.findings = self._findings()
        self.events.write("ended", **{k: getattr(self.summary, k) for k in ("batches", "rows", "malformed", "late")})
        return self.summary

    def _attempts(self) -> None:
        failures = 0
        while True:
            self._progressed = False
            error = self._once()
            if error is None:
                return
            if not error.retryable:
                raise error
            failures = 1 if self._progressed else failures + 1
            if failures > self.max_restarts:
                raise error
            wait_s = min(BACKOFF_S[1], BACKOFF_S[0] * 2 ** (failures - 1)) * random.uniform(0.75, 1.25)  # noqa: S311
            self.summary.restarts += 1
            self.events.write("restarting", what=error.what, why=error.why, wait_s=round(wait_s, 1))
            self.reports.restarting(error, wait_s)
            if self.stop.gently.wait(wait_s):
                self.summary.stopped = True
                return

    def _once(self) -> PenstockError | None:
        """Start the query and wait for its end; the error if it failed."""
        from pyspark.errors import PySparkException

        built = building.build(self.pipeline, self.spark)
        if self.quarantine is None:
            self.quarantine = self._open_quarantine(built)
        self._told_all.clear()
        try:
            query = building.writer(self.pipeline, built, self.pipeline.trigger).start()
        except PySparkException as error:
            return explain_failure(str(error))
        if not self._query_id:
            self.quarantine.start(str(query.id))
        self._query_id = str(query.id)
        self.events.write("started", query=self._query_id, run=str(query.runId), epoch=self.fence.epoch)
        try:
            self._watch(query)
        finally:
            if query.isActive:
                query.stop()
            # Spark tells of batches on another thread; that the query has ended comes last.
            self._told_all.wait(LISTENER_TIMEOUT_S)
        failed = query.exception()
        if failed is None:
            return None
        if "PENSTOCK_FENCED" in str(failed):
            self.fence.check()
        return explain_failure(str(failed), batch=_last_batch(query))

    def _watch(self, query: StreamingQuery) -> None:
        asked = told = False
        next_check = time.monotonic() + FENCE_POLL_S
        while query.isActive:
            if self.stop.at_once.wait(POLL_S):
                self.summary.stopped = True
                query.stop()
                return
            if self.stop.gently.is_set() and not asked:
                if not told:
                    self.reports.stopping()
                    told = True
                self.summary.stopped = True
                asked = end_after_batch(query)
            if self.quarantine and self.quarantine.error:
                raise self.quarantine.error
            if self.summary.malformed >= UNREADABLE_ROWS and self._all_malformed():
                raise self._unreadable()
            if time.monotonic() >= next_check:
                # Spark's own writes are fenced in the JVM; this only makes a replaced run that is idle end soon.
                self.fence.check()
                next_check = time.monotonic() + FENCE_POLL_S

    def _open_quarantine(self, built: Built) -> Quarantine:
        step: Any = self.pipeline.step("watermark")
        rule: LateRule | None = late_rule(built.frame) if step and step.late == "keep" else None
        self.summary.late_is_exact = rule is not None
        return Quarantine(
            self.pipeline.checkpoint,
            self.pipeline.quarantine,
            asides=built.asides,
            late=rule,
            guard=self.fence.check,
            done=self._on_quarantined,
        )

    def _on_progress(self, progress: dict[str, Any]) -> None:
        if progress.get("id") != self._query_id or "batchId" not in progress:
            return
        batch = Batch.from_progress(progress)
        if not _ran(progress):
            return
        self._progressed = True
        self.summary.batches += 1
        self.summary.rows += batch.rows
        self.summary.put_aside += batch.put_aside
        if not self.summary.late_is_exact:
            self.summary.late += batch.late
        self.lateness.add(batch)
        self.events.batch(batch)
        if self.quarantine:
            self.quarantine.add(batch)
        self.reports.batch(batch)

    def _on_terminated(self, query_id: str) -> None:
        if query_id == self._query_id:
            self._told_all.set()

    def _on_quarantined(self, looked: Looked) -> None:
        if looked.kind == "late":
            self.summary.late += looked.rows
        else:
            self.summary.malformed += looked.rows
            self.summary.example = self.summary.example or looked.example
        self.events.write("quarantined", batch=looked.batch, kind=looked.kind, rows=looked.rows)

    def _all_malformed(self) -> bool:
        return 0 < self.summary.rows == self.summary.put_aside

    def _unreadable(self) -> RunError:
        return RunError(
            f"every one of the {self.summary.rows:,} records read so far is malformed",
            why=f"format or schema of the parse step does not fit what the source holds: {self.summary.example}",
            fix=f"look at {self.pipeline.quarantine}, where they all are, and correct the parse step",
        )

    def _findings(self) -> list[Finding]:
        step: Any = self.pipeline.step("watermark")
        if not step:
            return []
        at = next(n for n, s in enumerate(self.pipeline.steps) if s is step)
        where = f"{self.pipeline.file.name}:{self.pipeline.line('steps', at)}"
        found = advise(self.lateness, delay=step.delay, where=where)
        return [found] if found else []


def _ran(progress: dict[str, Any]) -> bool:
    """Whether a progress event tells of a batch; Spark also sends one now and then while it is idle."""
    return "addBatch" in (progress.get("durationMs") or {}) or bool(progress.get("numInputRows"))


def _last_batch(query: StreamingQuery) -> int | None:
    last: Any = query.lastProgress
    return int(last.batchId) + 1 if last else None


def _listener(
    on_progress: Callable[[dict[str, Any]], None], on_terminated: Callable[[str], None]
) -> StreamingQueryListener:
    from pyspark.sql.streaming.listener import StreamingQueryListener

    class Listener(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
            pass

        def onQueryProgress(self, event: Any) -> None:  # noqa: N802
            try:
                on_progress(json.loads(event.progress.json))
            except Exception:
                log.exception("a progress event could not be taken")

        def onQueryIdle(self, event: Any) -> None:  # noqa: N802
            pass

        def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
            on_terminated(str(event.id))

    return Listener()
