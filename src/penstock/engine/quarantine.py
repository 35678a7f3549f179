"""The quarantine: every malformed row, and late rows where the file asks for them, kept once with the reason.

The query itself only counts such rows, which costs next to nothing. A batch that has some is read again, off to
the side, by a small query of its own: it gets a checkpoint in which exactly that batch is planned and not done,
so Spark replays exactly its range. Each batch has a folder of its own, which is written anew if it has to be
done again, and what was looked through is written down after it is done; so a crash at any point neither loses
nor doubles a row.

    data/quarantine/orders/malformed/query=<id>/batch=42/*.json    one JSON object a line:
    data/quarantine/orders/late/query=<id>/batch=42/*.json         kind, reason, position, record

The query's id stands for the checkpoint: batch 42 of another checkpoint is another batch.
"""

from __future__ import annotations

import json
import logging
import queue
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from penstock.checkpoint import offsets
from penstock.engine.events import Batch
from penstock.engine.failures import explain_failure
from penstock.engine.fence import beside
from penstock.engine.late import LateRule
from penstock.errors import PenstockError, RunError
from penstock.steps import Aside
from penstock.storage import Store, open_store

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

log = logging.getLogger("penstock.quarantine")
SCHEMA = "kind string, reason string, position string, record string"
_POSITION_COLUMNS = ("topic", "partition", "offset")


@dataclass(frozen=True, slots=True)
class Looked:
    """How many rows of a kind were found when a batch was looked through again."""

    batch: int
    kind: str
    rows: int
    example: str = ""


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
        self.query = ""
        self.through = -1
        self._queue: queue.Queue[Batch | None] = queue.Queue()
        self._thread = threading.Thread(target=self._work, name="penstock-quarantine", daemon=True)

    @property
    def needed(self) -> bool:
        return bool(self.asides) or self.late is not None

    def start(self, query: str) -> None:
        """Begin with what an earlier run of this query finished and did not get to, then take new batches."""
        if self.needed:
            self.query = query
            self.through = self._read_through()
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
        self._guarded(self._catch_up)
        while (item := self._queue.get()) is not None:
            if item.batch > self.through:
                self._guarded(lambda item=item: self._take(item))  # type: ignore[misc]

    def _catch_up(self) -> None:
        for batch in offsets.batches(self.checkpoint, "commits"):
            if batch > self.through:
                # How many rows it put aside was in an event that the crash took with it, so all kinds are looked for.
                self._look(batch, malformed=True, late=True)
                self._write_through(batch)

    def _take(self, item: Batch) -> None:
        self._look(item.batch, malformed=bool(item.put_aside), late=bool(item.late))
        self._write_through(item.batch)

    def _guarded(self, work: Callable[[], None]) -> None:
        """Do it unless something failed before; a failure is kept for the thread that watches the query."""
        if self.error:
            return
        try:
            work()
        except PenstockError as error:
            self.error = error
        except Exception as error:
            self.error = RunError(
                "malformed or late rows could not be quarantined",
                why=" ".join(str(error).split())[:300],
                fix="start again: they are looked for once more before new batches",
            )

    def _look(self, batch: int, *, malformed: bool, late: bool) -> None:
        """Read one batch again and write what was put aside."""
        for number, aside in enumerate(self.asides if malformed else ()):
            name = "malformed" if number == 0 else f"malformed-{number + 1}"
            self._replay(batch, name, lambda aside=aside: _malformed(aside))  # type: ignore[misc]
        if self.late and late:
            before = offsets.read(self.checkpoint, batch - 1) if batch else None
            if before and before.watermark_ms > 0:
                rule, watermark_ms = self.late, before.watermark_ms
                self._replay(batch, "late", lambda: _late(rule, watermark_ms))

    def _replay(self, batch: int, name: str, frame: Callable[[], DataFrame]) -> None:
        """Run one batch of the main query again as a query that only writes what was put aside."""
        from pyspark.errors import PySparkException
        from pyspark.sql import functions as F

        side = open_store(f"{beside(self.checkpoint.uri)}/{name}/{self.query}")
        if side.get(f"commits/{batch}") is not None:
            return
        self._plan(side, batch)
        self.guard()
        counted = frame().observe(
            "penstock_quarantine", F.count(F.lit(1)).alias("rows"), F.max("reason").alias("example")
        )
        folder = f"{self.path}/{name}/query={self.query}/batch={batch}"

        def write(rows: DataFrame, _batch: int) -> None:
            rows.write.mode("overwrite").json(folder)

        query = (
            counted.writeStream.foreachBatch(write).option("checkpointLocation", side.uri).trigger(once=True).start()
        )
        try:
            query.awaitTermination()
        except PySparkException as error:
            raise explain_failure(str(error), batch=batch) from None
        progress: Any = query.lastProgress
        observed = json.loads(progress.json).get("observedMetrics", {}) if progress else {}
        found = observed.get("penstock_quarantine", {})
        looked = Looked(batch, name.partition("-")[0], int(found.get("rows", 0)), str(found.get("example") or ""))
        log.info("batch %s: %s %s rows kept", batch, looked.rows, looked.kind)
        self.done(looked)

    def _plan(self, side: Store, batch: int) -> None:
        """Make a side checkpoint say that exactly this batch is planned and not done."""
        wanted = {batch: self.checkpoint.get(f"offsets/{batch}")}
        if batch > 0:
            wanted[batch - 1] = self.checkpoint.get(f"offsets/{batch - 1}")
        gone = [number for number, data in wanted.items() if data is None]
        if gone:
            raise RunError(
                f"batch {batch}: its malformed or late rows can't be found again",
                why=f"{self.checkpoint.path(f'offsets/{gone[0]}')} is gone, so its range is not known",
                fix="raise spark.sql.streaming.minBatchesToRetain, so that the quarantine can keep up",
            )
        if side.get("metadata") is None:
            side.put("metadata", json.dumps({"id": str(uuid.uuid4())}).encode())
        for name in self.checkpoint.list("sources/"):
            # Initial positions never change, and the file source's log only grows. Spark's checksum files stay
            # behind: they would have to be replaced together with what they check.
            data = self.checkpoint.get(name)
            if data is not None and "/." not in name:
                side.put(name, data)
        for stale in (*side.list("offsets/"), *side.list("commits/")):
            side.delete(stale)
        for number, data in wanted.items():
            side.put(f"offsets/{number}", data or b"")
        if batch > 0:
            side.put(f"commits/{batch - 1}", b'v1\n{"nextBatchWatermarkMs":0}')

    def _read_through(self) -> int:
        """The last batch of this query that was looked through."""
        noted = json.loads(self.notes.get("quarantine.json") or b"{}")
        if noted.get("query") == self.query:
            return int(noted["through"])
        # Nothing is noted of this query. Of one that has run for long without a quarantine, only what is still
        # known is looked through; a new one begins with its first batch.
        first = next(iter(offsets.batches(self.checkpoint, "commits")), 0)
        return first if first > 0 else -1

    def _write_through(self, batch: int) -> None:
        self.through = batch
        self.notes.put("quarantine.json", json.dumps({"query": self.query, "through": batch}).encode())


def read_back(spark: SparkSession, path: str) -> DataFrame:
    """Everything in a quarantine, with the query and the number of the batch that each row came in."""
    whole = f"{SCHEMA}, query string, batch bigint"
    frame = spark.createDataFrame([], whole)
    for name in sorted({entry.partition("/")[0] for entry in open_store(path).list()}):
        frame = frame.unionByName(spark.read.schema(whole).json(f"{path}/{name}"))
    return frame


def _malformed(aside: Aside) -> DataFrame:
    from pyspark.sql import functions as F

    positions = [name for name in _POSITION_COLUMNS if name in aside.rows.columns]
    position = F.to_json(F.struct(*positions)) if positions else F.lit(None).cast("string")
    return _shaped(aside.rows.where(aside.bad), "malformed", aside.reason, position, aside.record)


def _late(rule: LateRule, watermark_ms: int) -> DataFrame:
    from pyspark.sql import functions as F

    rows = rule.dropped(watermark_ms)
    ended = F.expr(f"date_format({rule.deadline}, \"yyyy-MM-dd'T'HH:mm:ss'Z'\")")
    watermark = datetime.fromtimestamp(watermark_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    reason = F.concat(F.lit("late: its time was up at "), ended, F.lit(f", the watermark was {watermark}"))
    columns = [F.col(f"`{name}`") for name in rows.columns if not name.startswith("window")]
    return _shaped(rows, "late", reason, F.lit(None).cast("string"), F.to_json(F.struct(*columns)))


def _shaped(frame: DataFrame, kind: str, reason: Column, position: Column, record: Column) -> DataFrame:
    from pyspark.sql import functions as F

    return frame.select(
        F.lit(kind).alias("kind"),
        reason.alias("reason"),
        position.alias("position"),
        record.alias("record"),
    )
