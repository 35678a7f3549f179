"""A real broker: what is written stays, across a stop and across a crash."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from penstock.cluster.kafka import KafkaBroker, create_topic, delete_topic
from penstock.errors import ServiceError

pytestmark = pytest.mark.spark


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[KafkaBroker]:
    broker = KafkaBroker(tmp_path / "kafka")
    yield broker
    broker.kill()


def produce(bootstrap: str, *, topic: str, values: list[str]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(20) == 0


def consume(bootstrap: str, *, topic: str, count: int, group: str = "g") -> list[str]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        return [(message.value() or b"").decode() for message in consumer.consume(count, timeout=20)]
    finally:
        consumer.close()


def cluster_id(bootstrap: str) -> str:
    return str(AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=10).cluster_id)


def test_data_ports_and_cluster_id_survive_a_stop_and_a_kill(broker: KafkaBroker) -> None:
    broker.start()
    assert broker.is_alive
    create_topic(broker.bootstrap, name="events", partitions=2)
    produce(broker.bootstrap, topic="events", values=["a", "b", "c"])
    assert sorted(consume(broker.bootstrap, topic="events", count=3)) == ["a", "b", "c"]
    before = cluster_id(broker.bootstrap), broker.bootstrap
    broker.stop()
    assert not broker.is_alive
    assert not (broker.folder / "broker.pid").exists()

    with KafkaBroker(broker.folder) as again:
        assert (cluster_id(again.bootstrap), again.bootstrap) == before
        produce(again.bootstrap, topic="events", values=["d"])
        again.kill()
        assert not again.is_alive
        again.start()
        assert cluster_id(again.bootstrap) == before[0]
        found = consume(again.bootstrap, topic="events", count=4, group="all")
        assert sorted(found) == ["a", "b", "c", "d"]


def test_a_topic_can_be_made_anew_at_once(broker: KafkaBroker) -> None:
    broker.start()
    create_topic(broker.bootstrap, name="t", partitions=3)
    with pytest.raises(ServiceError, match="can't be created"):
        create_topic(broker.bootstrap, name="t")
    delete_topic(broker.bootstrap, name="t")
    create_topic(broker.bootstrap, name="t")
    with pytest.raises(ServiceError, match="can't be deleted"):
        delete_topic(broker.bootstrap, name="absent")

    second = KafkaBroker(broker.folder)
    with pytest.raises(ServiceError, match="already runs"):
        second.start()
    with socket.socket() as probe:
        probe.settimeout(2)
        outside = socket.gethostbyname(socket.gethostname())
        if not outside.startswith("127."):
            assert probe.connect_ex((outside, broker.port)) != 0


def test_a_broker_that_dies_at_the_start_is_told_with_its_log(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        broker = KafkaBroker(tmp_path / "kafka", port=taken.getsockname()[1])
        with pytest.raises(ServiceError, match="died while starting") as caught:
            broker.start()
    assert "Address already in use" in caught.value.why
    assert not broker.is_alive


def test_a_broker_dies_with_the_process_that_started_it_and_not_by_ctrl_c(tmp_path: Path) -> None:
    code = (
        "import sys, time, pathlib; from penstock.cluster.kafka import KafkaBroker\n"
        "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "b = KafkaBroker(pathlib.Path(sys.argv[1])); b.start(); print(b.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "k")], stdout=subprocess.PIPE, process_group=0
    )
    try:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        os.killpg(parent.pid, signal.SIGINT)  # what a terminal does on Ctrl-C
        time.sleep(0.5)
        os.kill(pid, 0)
    finally:
        parent.kill()
        parent.communicate()
    end = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists() and _state(pid) != "Z":
        assert time.monotonic() < end, "the broker outlived its parent"
        time.sleep(0.05)


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "Z"
