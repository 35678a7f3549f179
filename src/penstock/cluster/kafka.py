"""A real Kafka broker (KRaft, one node) as a local process, for tests, drills and the lab."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.cluster.kafka_settings import HOST, free_port, new_cluster_id, ports_in, render
from penstock.cluster.kafka_topics import admin_client, answers, create_topic, delete_topic
from penstock.cluster.process import TiedProcess, pid_in_use
from penstock.engine.jars import Progress, fetch
from penstock.engine.java import find_java
from penstock.errors import ServiceError, require

__all__ = ["KafkaBroker", "create_topic", "delete_topic"]

START_TIMEOUT_S = 60.0
STOP_GRACE_S = 15.0
_JVM = ["-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
_LOGGING = [
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSS",
    "-Dorg.slf4j.simpleLogger.showThreadName=false",
    "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.common.config=warn",  # else 1,400 lines of settings
]


class KafkaBroker:
    """A broker that keeps its data, its cluster id and its ports in one folder.

    Started again on the same folder, by this object or another, it serves the same topics at the same
    address. It listens on 127.0.0.1 only, is not hit by Ctrl-C, and dies with the process that started it.
    """

    def __init__(
        self,
        folder: Path,
        *,
        port: int | None = None,
        controller_port: int | None = None,
        cache: Path | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> None:
        """Name the broker; nothing is started or written yet.

        Args:
            folder: where everything of this broker lies; made if absent.
            port: of the listener for clients; the one used before, or else a free one, if not given.
            controller_port: the same for the internal listener.
            cache: the cache folder for the broker's jars.
            progress: told about the fetch of the jars, if there is one.
        """
        self.folder = folder.absolute()
        known = ports_in(self._properties)
        self.port = port or known.get("PLAINTEXT") or free_port()
        self.controller_port = controller_port or known.get("CONTROLLER") or free_port()
        self._cache = cache
        self._progress = progress
        self._process: TiedProcess | None = None

    @property
    def bootstrap(self) -> str:
        """The address for `bootstrap.servers`."""
        return f"{HOST}:{self.port}"

    @property
    def log(self) -> Path:
        """The broker's log."""
        return self.folder / "broker.log"

    @property
    def is_alive(self) -> bool:
        """Whether the process that this object started runs."""
        return self._process is not None and self._process.is_alive

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self._process.pid if self._process is not None and self._process.is_alive else None

    @property
    def _properties(self) -> Path:
        return self.folder / "server.properties"

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def start(self) -> None:
        """Start the broker and wait until it answers a metadata request; nothing if it runs already.

        Raises:
            ServiceError: it died or did not answer in time; the message quotes its log.
        """
        if self.is_alive:
            return
        require("confluent_kafka", extra="kafka", needed_for="a local Kafka broker")
        pid_file = self.folder / "broker.pid"
        if (pid := pid_in_use(pid_file, mark=str(self._properties))) is not None:
            raise ServiceError(
                f"a Kafka broker already runs on {self.folder}",
                why=f"process {pid} was started by another program and still lives",
                fix=f"use that one, end it (kill {pid}), or give another folder",
            )
        self._data.mkdir(parents=True, exist_ok=True)
        self._properties.write_text(
            render(data=self._data, port=self.port, controller_port=self.controller_port), encoding="utf-8"
        )
        jars = fetch(["broker"], cache=self._cache, progress=self._progress)
        java = [str(find_java().path), *_JVM, *_LOGGING, "-cp", os.pathsep.join(map(str, jars))]
        if not (self._data / "meta.properties").exists():
            self._format(java)
        self.kill()  # clears up after one that died by itself
        self._process = TiedProcess([*java, "kafka.Kafka", str(self._properties)], log=self.log, pid_file=pid_file)
        try:
            self._await_answer(self._process)
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """End the broker in good order; nothing if it does not run."""
        if self._process is not None:
            self._process.stop(grace_s=STOP_GRACE_S)
            self._process = None

    def kill(self) -> None:
        """End the broker with SIGKILL, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def signal(self, number: signal.Signals) -> None:
        """Send the broker a signal, such as SIGSTOP and SIGCONT to freeze and wake it."""
        if self._process is not None:
            self._process.signal(number)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _format(self, java: list[str]) -> None:
        """Give the data folder its cluster id.

        A hand-written meta.properties would save this JVM (0.8 s), but Kafka then starts with every feature
        at level 0, without transaction.version 2 among them: not the broker that people run.
        """
        command = [*java, "kafka.tools.StorageTool", "format", "-t", new_cluster_id()]
        done = subprocess.run(
            [*command, "-c", str(self._properties)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode != 0:
            raise ServiceError(
                f"Kafka can't format its storage in {self._data}",
                why="\n".join((done.stdout + done.stderr).strip().splitlines()[-12:]),
                fix=f"delete {self.folder} if nothing in it is needed, and start again",
            )

    def _await_answer(self, process: TiedProcess) -> None:
        end = time.monotonic() + START_TIMEOUT_S
        admin = None
        while time.monotonic() < end:
            if not process.is_alive:
                raise ServiceError(
                    f"the Kafka broker in {self.folder} died while starting (exit code {process.exit_code})",
                    why=process.last_words(),
                    fix=f"read {self.log}",
                )
            # The client backs off after a refused connection, so it is made when there is one to be had.
            if admin is None and _accepts(self.port):
                admin = admin_client(self.bootstrap)
            if admin is not None and answers(admin):
                return
            time.sleep(0.05)
        raise ServiceError(
            f"the Kafka broker at {self.bootstrap} did not answer within {START_TIMEOUT_S:.0f} s",
            why=process.last_words(),
            fix=f"read {self.log}",
        )


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((HOST, port)) == 0
