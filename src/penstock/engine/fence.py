"""The fence: at most one run works on a checkpoint, and one that was replaced can't write any more.

Beside the checkpoint lies a folder of epochs, one small file each:

    orders.penstock/epochs/00000007.json            who claimed epoch 7
    orders.penstock/epochs/00000007.released.json   that run has ended by itself

A run claims the epoch after the newest by creating its file, which the store lets only one do. It holds the
checkpoint until the file of the next epoch is there; Spark's checkpoint writes look for exactly that file first
(see `jvm/FencedCheckpoints.java`), so a run that was replaced while it slept stops before it writes. No clock
is compared: a holder is gone when it said so, or when its process is no longer there on this machine. A holder
on another machine can't be looked at, so taking over from it must be asked for.
"""

from __future__ import annotations

import json
import os
import socket
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from penstock.errors import Fenced, FenceError
from penstock.storage import AlreadyThereError, Store, open_store

KEEP_EPOCHS = 20


@dataclass(frozen=True, slots=True)
class Holder:
    """Who claimed an epoch. `since` is for people only."""

    epoch: int
    pipeline: str
    host: str
    machine: str
    boot: str
    pid: int
    started: str
    user: str
    since: str

    @classmethod
    def here(cls, *, epoch: int, pipeline: str) -> Holder:
        """This process, as holder of an epoch."""
        return cls(
            epoch=epoch,
            pipeline=pipeline,
            host=socket.gethostname(),
            machine=_machine(),
            boot=_boot_id(),
            pid=os.getpid(),
            started=_start_of(os.getpid()),
            user=_user(),
            since=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    def __str__(self) -> str:
        return f"process {self.pid} of {self.user} on {self.host}, since {self.since} (epoch {self.epoch})"

    @property
    def fate(self) -> str:
        """`gone`, `running`, `stopped` (frozen by a signal), or `unknown` on another machine."""
        if self.host != socket.gethostname() or self.machine != _machine():
            return "unknown"
        if self.boot != _boot_id() or _start_of(self.pid) != self.started:
            return "gone"
        return {"Z": "gone", "X": "gone", "T": "stopped", "t": "stopped"}.get(_state_of(self.pid), "running")


class Fence:
    """One run's hold on a checkpoint."""

    def __init__(self, store: Store, holder: Holder) -> None:
        self.store = store
        self.holder = holder

    @classmethod
    def claim(cls, checkpoint: str, *, pipeline: str, take_over: bool = False) -> Fence:
        """Claim the next epoch, or raise FenceError with who holds the checkpoint."""
        store = open_store(beside(checkpoint))
        while True:
            newest = _newest(store)
            if newest and not take_over and not _is_released(store, newest) and (fate := newest.fate) != "gone":
                raise _held(checkpoint, newest, fate)
            holder = Holder.here(epoch=newest.epoch + 1 if newest else 1, pipeline=pipeline)
            try:
                store.put_if_absent(_name(holder.epoch), json.dumps(asdict(holder), indent=1).encode())
            except AlreadyThereError:
                # Somebody was quicker. Look again: either it holds the checkpoint now, or it is gone already.
                continue
            fence = cls(store, holder)
            fence._prune()
            return fence

    @property
    def epoch(self) -> int:
        return self.holder.epoch

    @property
    def successor(self) -> str:
        """The file whose existence means that this run has been replaced."""
        return self.store.path(_name(self.epoch + 1))

    def check(self) -> None:
        """Raise Fenced if another run has taken the checkpoint."""
        data = self.store.get(_name(self.epoch + 1))
        if data is not None:
            raise self.lost(_parsed(data, self.epoch + 1))

    def lost(self, holder: Holder | None = None) -> Fenced:
        """The error for a run that was replaced."""
        by = f" by {holder}" if holder else ""
        return Fenced(
            f"this run (epoch {self.epoch}) was replaced{by}",
            why="another run took the checkpoint while this one was not answering",
            fix="nothing to do: the other run goes on from where this one was, and this one has stopped writing",
        )

    def release(self) -> None:
        """Say that this run has ended by itself."""
        self.store.put(_name(self.epoch, released=True), b"{}")

    def _prune(self) -> None:
        for name in self.store.list("epochs/"):
            epoch = _epoch_of(name)
            if epoch is not None and epoch <= self.epoch - KEEP_EPOCHS:
                self.store.delete(name)


def beside(checkpoint: str) -> str:
    """The folder for what Penstock keeps beside a checkpoint; it outlives a deleted checkpoint."""
    return f"{checkpoint.rstrip('/')}.penstock"


def _newest(store: Store) -> Holder | None:
    epochs = [epoch for name in store.list("epochs/") if (epoch := _epoch_of(name)) is not None]
    if not epochs:
        return None
    name = _name(max(epochs))
    holder = _parsed(store.get(name) or b"", max(epochs))
    if holder is None:
        raise FenceError(
            f"{store.path(name)}: this is not a claim",
            why="the file was written by something else, or is damaged, so who holds the checkpoint is unknown",
            fix=f"make sure that no run is alive, then delete {store.path(name)}",
        )
    return holder


def _parsed(data: bytes, epoch: int) -> Holder | None:
    """The claim in a file, or None if it is not one."""
    try:
        holder = Holder(**json.loads(data))
    except (ValueError, TypeError):
        return None
    whole = isinstance(holder.pid, int) and holder.epoch == epoch
    return holder if whole else None


def _is_released(store: Store, holder: Holder) -> bool:
    return store.get(_name(holder.epoch, released=True)) is not None


def _held(checkpoint: str, holder: Holder, fate: str) -> FenceError:
    why = {
        "running": "the process is alive",
        "stopped": "the process is alive, but frozen by a signal",
        "unknown": "it runs on another machine, so this one can't tell whether it is alive",
    }[fate]
    return FenceError(
        f"checkpoint {checkpoint} is held by {holder}",
        why=why,
        fix=f"stop it (kill {holder.pid} on {holder.host}), or replace it with `penstock run --take-over`",
    )


def _name(epoch: int, *, released: bool = False) -> str:
    return f"epochs/{epoch:08d}{'.released' if released else ''}.json"


def _epoch_of(name: str) -> int | None:
    number = name.rpartition("/")[2].partition(".")[0]
    return int(number) if number.isdigit() else None


def _machine() -> str:
    """What tells machines (and containers) of one name apart, since a pid only means something within one."""
    try:
        identity = Path("/etc/machine-id").read_text(encoding="ascii").strip()
    except OSError:
        identity = ""
    try:
        return f"{identity} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return identity


def _user() -> str:
    """Who runs this; a container's user often has a number and no name."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return f"uid {os.getuid()}"


def _boot_id() -> str:
    """What changes when the machine starts anew, so that a pid of before is not taken for one of now."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _start_of(pid: int) -> str:
    """When a process began, as the kernel counts; empty if there is none. Tells a reused pid from the old one."""
    fields = _stat(pid)
    if fields:
        return fields[19]
    return "" if not _exists(pid) else "unknown"


def _state_of(pid: int) -> str:
    fields = _stat(pid)
    return fields[0] if fields else "R"


def _stat(pid: int) -> list[str]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    # The command name stands in brackets and may hold anything, spaces and brackets included.
    return text.rpartition(")")[2].split()


def _exists(pid: int) -> bool:
    if Path("/proc/self").exists():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
