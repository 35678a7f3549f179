"""Create and delete Kafka topics, and wait until it is so."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.errors import ServiceError, require

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient


def create_topic(bootstrap: str, *, name: str, partitions: int = 1, timeout_s: float = 30.0) -> None:
    """Create a topic and wait until each of its partitions has a leader."""
    admin = admin_client(bootstrap)
    from confluent_kafka.cimpl import NewTopic

    new = NewTopic(name, num_partitions=partitions, replication_factor=1)
    _finish(admin.create_topics([new], request_timeout=timeout_s)[name], what=f"topic {name} can't be created")

    def is_led() -> bool:
        topic = admin.list_topics(topic=name, timeout=timeout_s).topics.get(name)
        found = [] if topic is None or topic.error is not None else list(topic.partitions.values())
        return len(found) == partitions and all(each.leader >= 0 for each in found)

    _until(is_led, what=f"topic {name} has no leader", timeout_s=timeout_s)


def delete_topic(bootstrap: str, *, name: str, timeout_s: float = 30.0) -> None:
    """Delete a topic and wait until the broker no longer lists it."""
    admin = admin_client(bootstrap)
    _finish(admin.delete_topics([name], request_timeout=timeout_s)[name], what=f"topic {name} can't be deleted")
    _until(
        lambda: name not in admin.list_topics(timeout=timeout_s).topics,
        what=f"topic {name} is still listed",
        timeout_s=timeout_s,
    )


def admin_client(bootstrap: str) -> AdminClient:
    """Return a client for the broker at this address; it connects when it is first used."""
    require("confluent_kafka", extra="kafka", needed_for="talking to Kafka")
    from confluent_kafka.admin import AdminClient

    # log_level 0: what goes wrong is raised; librdkafka would write it to our standard error as well.
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, "reconnect.backoff.max.ms": 200})


def answers(admin: AdminClient) -> bool:
    """Whether the broker answers a metadata request; an open port alone says little."""
    from confluent_kafka import KafkaException

    try:
        return bool(admin.list_topics(timeout=1.0).brokers)
    except KafkaException:
        return False


def _finish(future: Any, *, what: str) -> None:
    from confluent_kafka import KafkaException

    try:
        future.result()
    except KafkaException as error:
        raise ServiceError(what, why=str(error.args[0].str()), fix="check the name and the broker") from error


def _until(holds: Callable[[], bool], *, what: str, timeout_s: float) -> None:
    end = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() > end:
            raise ServiceError(what, why=f"waited {timeout_s:.0f} s", fix="check the broker's log")
        time.sleep(0.02)
