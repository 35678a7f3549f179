"""A real broker with a topic of well-formed events, made once for all comparisons that want it."""

from __future__ import annotations

import itertools
import multiprocessing
import os
from collections.abc import Iterator
from pathlib import Path

from penstock import sample
from penstock.cluster.kafka import KafkaBroker
from penstock.cluster.kafka_topics import create_topic

TOPIC_EVENTS = 2_000_000
QUICK_EVENTS = 100_000
SMALL_EVENTS = 1_000
PARTITIONS = 4


class Topic:
    """Started when it is first asked for."""

    def __init__(self, folder: Path, *, events: int) -> None:
        self.events = events
        self._broker = KafkaBroker(folder / "kafka")
        self._is_filled = False

    def variables(self) -> dict[str, str]:
        """What a comparison's process needs to know of it."""
        if not self._is_filled:
            self._broker.start()
            for name, events in (("events", self.events), ("small", SMALL_EVENTS)):
                create_topic(self._broker.bootstrap, name=name, partitions=PARTITIONS)
                _fill(self._broker.bootstrap, name=name, events=events)
            self._is_filled = True
        return {"KAFKA": self._broker.bootstrap, "BENCH_EVENTS": str(self.events)}

    def close(self) -> None:
        self._broker.stop()


def _fill(bootstrap: str, *, name: str, events: int) -> None:
    """In as many processes as there are partitions to fill, or processors to do it."""
    share = events // PARTITIONS
    tasks = [(bootstrap, name, partition, share) for partition in range(PARTITIONS)]
    # Spawned, not forked: the broker's client has threads.
    with multiprocessing.get_context("spawn").Pool(min(PARTITIONS, os.cpu_count() or 1)) as pool:
        pool.starmap(_fill_partition, tasks)


def _fill_partition(bootstrap: str, name: str, partition: int, count: int) -> None:
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 50,
            "batch.size": 1_000_000,
            "enable.idempotence": True,
            "log_level": 0,
        }
    )
    for value in itertools.islice(_well_formed(partition), count):
        while True:
            try:
                producer.produce(name, value, partition=partition)
                break
            except BufferError:
                producer.poll(0.1)
    left = producer.flush(120)
    if left:
        raise RuntimeError(f"{left} events were not taken by the broker")


def _well_formed(partition: int) -> Iterator[bytes]:
    numbers = itertools.count(partition, PARTITIONS)
    return (event.value for event in map(sample.event, numbers) if not event.malformed)
