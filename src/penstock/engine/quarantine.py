"""The quarantine: every malformed row, and late rows where the file asks for them, kept once with the reason.

The query itself only counts such rows, which costs next to nothing. A batch that has some is read again, off to
the side, by a small query of its own: it gets a checkpoint in which exactly that batch is planned and not done,
so Spark replays exactly its range. The file sink takes each batch number once, and what was looked through is
written down after it is done; so a crash at any point neither loses nor doubles a row.
"""

from __future__ import annotations

import json
import logging
import queue
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.checkpoint import offsets
from penstock.engine.events import Batch
from penstock.engine.failures import explain_failure
from penstock.engine.fence import beside
from penstock.engine.late import LateRule
from penstock.errors import PenstockError, RunError
from penstock.steps import Aside
from penstock.storage import open_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger("penstock.quarantine")
_POSITION_COLUMNS = ("topic", "partition", "offset")


@dataclass(frozen=True, slots=True)
class Looked:
    """The result of looking through one batch again."""

    batch: int
    malformed: int
    late: int


class Quarantine:
    """Looks through flagged batches, one after the other, beside the running query."""

    def __init__(
        self,
        checkpoint: str,
        path: str,
        *,
        asides: list[Aside],
        late: LateRule | None,
        guard: Callable[[], None],
        done: Callable[[Looked], None],
    ) -> None:
        self.checkpoint = open_store(checkpoint)
        self.path = path
        self.asides = asides
        self.late = late
        self.guard = guard
        self.done = done
        self.error: PenstockError | None = None
        self.notes = open_store(beside(checkpoint))
        self.side = open_store(f"{beside(checkpoint)}/quarantine")
        self.through = self._read_through()
        self._queue: queue.Queue[Batch | None] = queue.Queue()
        self._thread = threading.Thread(target=self._work, name="penstock-quarantine", daemon=True)

    @property
    def needed(self) -> bool:
        return bool(self.asides) or self.late is not None

    def start(self) -> None:
        """Look through what an earlier run finished and did not get to, then wait for batches."""
        if not self.needed:
            return
        committed = offsets.batches(self.checkpoint, "commits")
        if committed and self.through is None and committed[0] == 0:
            self.through = -1
        for batch in committed:
            if self.through is not None and batch > self.through:
                self._look(batch)
        if committed and (self.through is None or self.through < committed[-1]):
            self._write_through(committed[-1])
        self._thread.start()

    def add(self, batch: Batch) -> None:
        """Take a finished batch; returns at once."""
        if self.needed:
            self._queue.put(batch)

    def finish(self) -> None:
        """Wait until every batch that was handed over is done."""
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()
        if self.error:
            raise self.error

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            if self.error:
                continue
            try:
                if self.through is not None and item.batch <= self.through:
                    continue
                if item.put_aside or (self.late and item.late):
                    self._look(item.batch)
                self._write_through(item.batch)
            except PenstockError as error:
                self.error = error
            except Exception as error:
                self.error = RunError(
                    f"batch {item.batch}: its malformed or late rows could not be quarantined",
                    why=str(error).splitlines()[0][:300],
                    fix="start again: they are looked for once more before new batches",
                )

    def _look(self, batch: int) -> None:
        """Read one batch again and write what it put aside."""
        if not self._plan(batch):
            return
        frame = self._frame(batch)
        if frame is None:
            return
        from pyspark.errors import PySparkException

        self.guard()
        query = (
            frame.writeStream.format("json")
            .option("checkpointLocation", self.side.uri)
            .option("path", self.path)
            .trigger(once=True)
            .start()
        )
        try:
            query.awaitTermination()
        except PySparkException as error:
            raise explain_failure(str(error), batch=batch) from None
        progress: Any = query.lastProgress
        counts = (
            (json.loads(progress.json) if progress else {}).get("observedMetrics", {}).get("penstock_quarantine", {})
        )
        self.done(Looked(batch, int(counts.get("malformed", 0)), int(counts.get("late", 0))))
        log.info("batch %s: %s malformed, %s late", batch, counts.get("malformed"), counts.get("late"))

    def _plan(self, batch: int) -> bool:
        """Make the side checkpoint say that exactly this batch is planned and not done; False if it is done."""
        if self.side.get(f"commits/{batch}") is not None:
            return False
        wanted = self.checkpoint.get(f"offsets/{batch}")
        if wanted is None:
            raise RunError(
                f"batch {batch}: its malformed or late rows can't be found again",
                why=f"{self.checkpoint.path(f'offsets/{batch}')} is gone, so its range is not known",
                fix="raise spark.sql.streaming.minBatchesToRetain, so that the quarantine can keep up",
            )
        if self.side.get("metadata") is None:
            self.side.put("metadata", json.dumps({"id": str(uuid.uuid4())}).encode())
        for name in self.checkpoint.list("sources/"):
            # Initial positions never change, and the file source's log only grows.
            data = self.checkpoint.get(name)
            if data is not None and "/." not in name:
                self.side.put(name, data)
        for log_name in ("offsets", "commits"):
            for stale in self.side.list(f"{log_name}/"):
                self.side.delete(stale)
        if batch > 0:
            before = self.checkpoint.get(f"offsets/{batch - 1}")
            if before is None:
                raise RunError(f"batch {batch}: offsets/{batch - 1} is gone, so where it began is not known")
            self.side.put(f"offsets/{batch - 1}", before)
            self.side.put(f"commits/{batch - 1}", b'v1\n{"nextBatchWatermarkMs":0}')
        self.side.put(f"offsets/{batch}", wanted)
        return True

    def _frame(self, batch: int) -> DataFrame | None:
        from pyspark.sql import functions as F

        frames = []
        for aside in self.asides:
            positions = [c for c in _POSITION_COLUMNS if c in aside.rows.columns]
            position = F.struct(*positions) if positions else F.lit(None).cast("struct<none:string>")
            bad = aside.rows.where(aside.bad)
            frames.append(_shaped(bad, batch, "malformed", aside.reason, F.to_json(position), aside.record))
        before = offsets.read(self.checkpoint, batch - 1) if batch else None
        if self.late and before and before.watermark_ms > 0:
            rows = self.late.dropped(before.watermark_ms)
            reason = F.concat(
                F.lit("late: its window ended at "),
                F.expr(f"date_format({self.late.deadline}, \"yyyy-MM-dd'T'HH:mm:ss'Z'\")"),
                F.lit(f", the watermark was {_iso(before.watermark_ms)}"),
            )
            columns = [c for c in rows.columns if not c.startswith("window")]
            record = F.to_json(F.struct(*[F.col(f"`{c}`") for c in columns]))
            frames.append(_shaped(rows, batch, "late", reason, F.lit(None).cast("string"), record))
        if not frames:
            return None
        whole = frames[0]
        for frame in frames[1:]:
            whole = whole.unionByName(frame)
        kind = F.col("kind")
        return whole.observe(
            "penstock_quarantine",
            F.count_if(kind == "malformed").alias("malformed"),
            F.count_if(kind == "late").alias("late"),
        )

    def _read_through(self) -> int | None:
        data = self.notes.get("quarantine.json")
        return None if data is None else int(json.loads(data)["through"])

    def _write_through(self, batch: int) -> None:
        self.through = batch
        self.notes.put("quarantine.json", json.dumps({"through": batch}).encode())


def _shaped(frame: DataFrame, batch: int, kind: str, reason: object, position: object, record: object) -> DataFrame:
    from pyspark.sql import functions as F

    return frame.select(
        F.lit(batch).cast("bigint").alias("batch"),
        F.lit(kind).alias("kind"),
        reason.alias("reason"),  # type: ignore[attr-defined]
        position.alias("position"),  # type: ignore[attr-defined]
        record.alias("record"),  # type: ignore[attr-defined]
    )


def _iso(moment_ms: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(moment_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
