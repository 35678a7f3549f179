"""What the Kafka source tells of its topics without Spark, from a real broker."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.cluster.kafka_topics import create_topic, delete_topic
from penstock.demo import send
from penstock.errors import ServiceError
from penstock.sources.kafka import Kafka

pytestmark = pytest.mark.spark


def test_positions_are_earliest_and_latest_of_each_partition(broker: Any) -> None:
    create_topic(broker.bootstrap, name="positions", partitions=2)
    send(broker.bootstrap, [(b"k", b"v")] * 5, topic="positions")
    positions = Kafka(servers=broker.bootstrap, topic="positions").positions()
    assert sorted(positions) == ["positions-0", "positions-1"]
    assert sorted(positions.values()) == [(0, 0), (0, 5)]


def test_a_recreated_topic_has_another_identity(broker: Any) -> None:
    source = Kafka(servers=broker.bootstrap, topic="recreated")
    create_topic(broker.bootstrap, name="recreated", partitions=1)
    first = source.identity()
    assert source.identity() == first
    delete_topic(broker.bootstrap, name="recreated")
    create_topic(broker.bootstrap, name="recreated", partitions=1)
    second = source.identity()
    assert second["cluster_id"] == first["cluster_id"]
    assert second["topics"] != first["topics"]


def test_preflight_knows_a_topic_that_is_there_and_one_that_is_not(broker: Any) -> None:
    create_topic(broker.bootstrap, name="there", partitions=1)
    Kafka(servers=broker.bootstrap, topic="there").preflight()
    with pytest.raises(ServiceError, match="topic their is not there") as caught:
        Kafka(servers=broker.bootstrap, topic="their").preflight()
    assert "did you mean 'there'?" in caught.value.fix
