"""The settings of a one-node Kafka broker on this machine."""

from __future__ import annotations

import base64
import re
import socket
import uuid
from pathlib import Path

HOST = "127.0.0.1"


def render(*, data: Path, port: int, controller_port: int) -> str:
    """Return the server.properties of a broker that is its own controller."""
    client = f"{HOST}:{port}"
    voter = f"{HOST}:{controller_port}"
    lines = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@{voter}",
        "listeners": f"PLAINTEXT://{client},CONTROLLER://{voter}",
        "advertised.listeners": f"PLAINTEXT://{client}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": data,
        # One node can hold one copy; the defaults of 3 would leave transactions and groups waiting.
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 1,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "group.initial.rebalance.delay.ms": 0,
        "log.cleaner.dedupe.buffer.size": 4 * 1024 * 1024,  # the default of 128 MB is half the heap
        "file.delete.delay.ms": 1000,
        # After a kill the controller lets the broker back in only when its old session has run out:
        # with the default of 9 s such a start takes 11.5 s.
        "broker.heartbeat.interval.ms": 500,
        "broker.session.timeout.ms": 3000,
        # A mistyped topic must fail, and a deleted one must stay away.
        "auto.create.topics.enable": "false",
    }
    return "".join(f"{key}={value}\n" for key, value in lines.items())


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def ports_in(properties: Path) -> dict[str, int]:
    """Return listener name -> port, as an earlier start wrote them."""
    if not properties.exists():
        return {}
    found = re.search(r"^listeners=(.*)$", properties.read_text(encoding="utf-8"), re.MULTILINE)
    pairs = re.findall(r"(\w+)://[^:,]*:(\d+)", found[1]) if found else []
    return {name: int(port) for name, port in pairs}


def new_cluster_id() -> str:
    """Return a fresh id in Kafka's form: 16 random bytes in URL-safe base 64."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        if not text.startswith("-"):  # StorageTool would take it for an option
            return text
