"""The demo: a real broker, a real job, a real SIGKILL in mid-batch, and a count of every record.

Nothing is taken on trust: the events are known by their number, and the verdict compares what was sent with
what the table and the quarantine hold, as multisets.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock import sample
from penstock.checkpoint import offsets
from penstock.cluster.kafka import KafkaBroker
from penstock.cluster.kafka_topics import create_topic
from penstock.engine import events as event_log
from penstock.engine import quarantine, session
from penstock.engine.run import open_session, state_folder
from penstock.errors import RunError, UnknownResult, UsageError
from penstock.spec.load import load
from penstock.spec.pipeline import Pipeline
from penstock.storage import open_store

TOPIC = "events"
PARTITIONS = 3
MARKER = ".penstock-demo"
CLOSING_USER = "closing"
# The batch to kill in: the first ones still pay for warming up, and something must be left to read after it.
KILL_IN_BATCH = 3
PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True)
class Killed:
    """Proof of the kill: the batch that was planned and not committed when the process was gone."""

    pid: int
    batch: int
    signal: int


@dataclass(frozen=True, slots=True)
class Sums:
    """What was sent, and what became of it."""

    sent: int
    on_time: int
    late: int
    quarantined: int
    counted: int
    lost: int
    duplicated: int

    @property
    def exact(self) -> bool:
        whole = self.sent == self.on_time + self.late + self.quarantined
        return whole and self.counted == self.on_time and not self.lost and not self.duplicated


def prepare(folder: Path) -> Path:
    """An empty folder with the example in it; the leftovers of an earlier demo are removed, nothing else."""
    if folder.exists() and any(folder.iterdir()) and not (folder / MARKER).exists():
        raise UsageError(
            f"{folder} is not empty, and not from an earlier demo",
            why="the demo begins with an empty folder",
            fix="choose another with --folder",
        )
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / MARKER).touch()
    file = folder / "hourly_counts.yml"
    shutil.copy(example("hourly_counts.yml"), file)
    return file


def example(name: str) -> Path:
    """An example pipeline: in the package, or beside it in a checkout."""
    here = Path(__file__).parent
    for folder in (here / "examples", here.parent.parent / "examples"):
        if (folder / name).exists():
            return folder / name
    raise UsageError(f"the example {name} is not there", fix="reinstall penstock")


def start_broker(folder: Path) -> KafkaBroker:
    """A broker with an empty topic."""
    broker = KafkaBroker(folder / "kafka")
    broker.start()
    create_topic(broker.bootstrap, name=TOPIC, partitions=PARTITIONS)
    return broker


def produce(bootstrap: str, numbers: Iterable[int]) -> int:
    """Send the events of these numbers, each to the partition of its user; returns how many were acknowledged."""
    made = map(sample.event, numbers)
    return send(bootstrap, ((event.user_id.encode(), event.value) for event in made))


def produce_closing(bootstrap: str, *, after: int) -> str:
    """Send one event dated two days after event `after`, so that every window before it closes; returns its time."""
    moment = sample.event(after).time_ns + 2 * 86_400 * 1_000_000_000
    value = f'{{"event_id": "closing", "user_id": "{CLOSING_USER}", "event_time": "{sample.iso(moment)}"}}'
    send(bootstrap, [(CLOSING_USER.encode(), value.encode())])
    return sample.iso(moment)[:19]


def send(bootstrap: str, records: Iterable[tuple[bytes, bytes]], *, topic: str = TOPIC) -> int:
    """Send records and wait; returns how many were acknowledged."""
    from confluent_kafka import Producer

    acknowledged = 0

    def delivered(error: Any, _message: Any) -> None:
        nonlocal acknowledged
        if error is None:
            acknowledged += 1

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "linger.ms": 20,
            "queue.buffering.max.messages": 50_000,
            "log_level": 0,
        }
    )
    for key, value in records:
        while True:
            try:
                producer.produce(topic, key=key, value=value, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    producer.flush(60)
    return acknowledged


class Job:
    """`penstock run` as a process of its own, in a process group of its own."""

    def __init__(self, pipeline: Pipeline, *, environment: dict[str, str]) -> None:
        self.pipeline = pipeline
        self.output = pipeline.folder / "job.log"
        with self.output.open("ab") as sink:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "penstock", "run", str(pipeline.file)],
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def kill_in_batch(self, batch: int) -> Killed:
        """SIGKILL the whole process group while a batch runs, and check afterwards that it was so."""
        store = open_store(self.pipeline.checkpoint)
        for _ in self._wait(f"batch {batch} to be planned"):
            planned = offsets.batches(store, "offsets")
            if planned and planned[-1] >= batch and not _committed(store, planned[-1]):
                break
        os.killpg(self.process.pid, signal.SIGKILL)
        code = self.process.wait(PATIENCE_S)
        last = offsets.batches(store, "offsets")[-1]
        if _committed(store, last):
            raise UnknownResult(
                f"the kill came after batch {last} was committed",
                why="nothing was in mid-batch",
                fix="run the demo again",
            )
        return Killed(self.process.pid, last, -code)

    def wait_until(self, what: str, done: Callable[[dict[str, Any]], bool]) -> None:
        """Wait for a batch event of this job that satisfies `done`."""
        folder = state_folder(self.pipeline) / "events"
        for _ in self._wait(what):
            files = sorted(folder.glob("*.jsonl"))
            for event in reversed(list(event_log.read(files[-1])) if files else []):
                if event["event"] == "batch" and done(event):
                    return

    def stop(self) -> int:
        """SIGTERM: finish the batch under way, then end."""
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(PATIENCE_S)

    def abandon(self) -> None:
        """Leave nothing running."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def _wait(self, what: str) -> Iterator[None]:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RunError(
                    f"the job ended (exit {self.process.returncode}) while the demo waited for {what}",
                    why=_tail(self.output),
                    fix=f"read {self.output}",
                )
            yield
            time.sleep(0.02)
        raise UnknownResult(f"waited {PATIENCE_S:.0f} s for {what}", why=_tail(self.output), fix=f"read {self.output}")


def settle(pipeline: Pipeline, count: int) -> Sums:
    """Read table and quarantine back and compare them with the `count` events that were sent."""
    from pyspark.sql import functions as F

    spark = open_session(pipeline, log=state_folder(pipeline) / "read_back.log")
    try:
        table = pipeline.sink.read_back(spark).where(F.col("user_id") != CLOSING_USER)
        counted = Counter(
            {(row["hour"].timestamp(), row["user_id"]): row["events"] for row in _summed(table).collect()}
        )
        aside = quarantine.read_back(spark, pipeline.quarantine).collect()
    finally:
        session.stop(spark)
    return compare(
        count,
        counted=counted,
        malformed=Counter(row["record"] for row in aside if row["kind"] == "malformed"),
        late=Counter(_event_id(row["record"]) for row in aside if row["kind"] == "late"),
    )


def compare(count: int, *, counted: Counter[tuple[float, str]], malformed: Counter[str], late: Counter[str]) -> Sums:
    """The sums for events 0..count-1, from what was found; pure, so that planted faults can be shown to it."""
    expected: Counter[tuple[float, str]] = Counter()
    spoiled: Counter[str] = Counter()
    known_late: Counter[str] = Counter()
    for number in range(count):
        event = sample.event(number)
        if event.malformed:
            spoiled[event.value.decode()] += 1
        elif event.behind and event.event_id in late:
            known_late[event.event_id] += 1
        else:
            expected[(event.hour.timestamp(), event.user_id)] += 1
    pairs: list[tuple[Counter[Any], Counter[Any]]] = [(expected, counted), (spoiled, malformed), (known_late, late)]
    return Sums(
        sent=count,
        on_time=expected.total(),
        late=known_late.total(),
        quarantined=spoiled.total(),
        counted=counted.total(),
        lost=sum((wanted - found).total() for wanted, found in pairs),
        duplicated=sum((found - wanted).total() for wanted, found in pairs),
    )


def _summed(table: Any) -> Any:
    """Two rows for one hour and user would be a fault; their sum shows it as a duplicate."""
    from pyspark.sql import functions as F

    return table.groupBy("hour", "user_id").agg(F.sum("events").alias("events"))


def _event_id(record: str) -> str:
    import json

    return str(json.loads(record)["event_id"])


def _committed(store: Any, batch: int) -> bool:
    return store.get(f"commits/{batch}") is not None


def _tail(file: Path) -> str:
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines() if file.exists() else []
    return " | ".join(lines[-4:])


def load_example(file: Path, *, bootstrap: str) -> Pipeline:
    """The example with its broker's address."""
    return load(file, variables={**os.environ, "KAFKA": bootstrap})
