"""The fence with real processes: one holder, the gone are replaced, the living refuse, the replaced are told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from penstock.engine import fence
from penstock.engine.fence import KEEP_EPOCHS, Fence, Holder, beside
from penstock.errors import Fenced, FenceError

CLAIM = """
import sys
from penstock.engine.fence import Fence
from penstock.errors import FenceError
sys.stdin.readline()
try:
    print(Fence.claim(sys.argv[1], pipeline="orders").epoch, flush=True)
except FenceError as error:
    print("refused", flush=True)
sys.stdin.readline()
"""


class Claimer:
    """A process that claims a checkpoint and then waits."""

    def __init__(self, checkpoint: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", CLAIM, checkpoint], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def go(self) -> None:
        assert self.process.stdin
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def outcome(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def claim(self) -> str:
        self.go()
        return self.outcome()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    return str(tmp_path / "ck")


@pytest.fixture
def claimer(checkpoint: str) -> Iterator[Claimer]:
    made = Claimer(checkpoint)
    yield made
    made.kill()


def plant(checkpoint: str, holder: Holder) -> Path:
    """Write a claim as some other process would have."""
    file = Path(beside(checkpoint), "epochs", f"{holder.epoch:08d}.json")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(asdict(holder)))
    return file


def test_the_first_run_holds_epoch_one_beside_the_checkpoint(checkpoint: str) -> None:
    held = Fence.claim(checkpoint, pipeline="orders")
    assert held.epoch == 1
    assert not Path(checkpoint).exists()
    claim = json.loads(Path(f"{checkpoint}.penstock/epochs/00000001.json").read_text())
    assert (claim["pid"], claim["pipeline"]) == (os.getpid(), "orders")
    assert held.successor == f"{checkpoint}.penstock/epochs/00000002.json"
    held.check()


def test_a_living_holder_refuses_with_who_and_since(checkpoint: str, claimer: Claimer) -> None:
    assert claimer.claim() == "1"
    with pytest.raises(FenceError) as caught:
        Fence.claim(checkpoint, pipeline="orders")
    error = caught.value
    assert error.exit_code == 1
    assert f"process {claimer.process.pid} of" in error.what
    assert "since 20" in error.what
    assert "alive" in error.why
    assert f"kill {claimer.process.pid}" in error.fix
    assert "--take-over" in error.fix
    assert len(list(Path(beside(checkpoint), "epochs").iterdir())) == 1


def test_the_same_process_can_t_hold_it_twice(checkpoint: str) -> None:
    Fence.claim(checkpoint, pipeline="orders")
    with pytest.raises(FenceError):
        Fence.claim(checkpoint, pipeline="orders")


def test_a_killed_holder_is_replaced_even_before_it_is_reaped(checkpoint: str, claimer: Claimer) -> None:
    assert claimer.claim() == "1"
    os.kill(claimer.process.pid, signal.SIGKILL)
    os.waitid(os.P_PID, claimer.process.pid, os.WEXITED | os.WNOWAIT)
    assert Fence.claim(checkpoint, pipeline="orders").epoch == 2


def test_a_killed_and_reaped_holder_is_replaced(checkpoint: str, claimer: Claimer) -> None:
    assert claimer.claim() == "1"
    claimer.kill()
    assert Fence.claim(checkpoint, pipeline="orders").epoch == 2


def test_a_frozen_holder_is_called_frozen(checkpoint: str, claimer: Claimer) -> None:
    assert claimer.claim() == "1"
    os.kill(claimer.process.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, claimer.process.pid, os.WSTOPPED | os.WNOWAIT)
    with pytest.raises(FenceError) as caught:
        Fence.claim(checkpoint, pipeline="orders")
    assert "frozen by a signal" in caught.value.why


def test_taking_over_fences_the_living_holder(checkpoint: str) -> None:
    old = Fence.claim(checkpoint, pipeline="orders")
    new = Fence.claim(checkpoint, pipeline="orders", take_over=True)
    assert new.epoch == 2
    assert Path(old.successor).exists()
    with pytest.raises(Fenced) as caught:
        old.check()
    assert "epoch 1" in caught.value.what
    assert f"process {os.getpid()}" in caught.value.what
    new.check()
    old.release()
    with pytest.raises(FenceError):
        Fence.claim(checkpoint, pipeline="orders")


def test_a_released_checkpoint_is_free(checkpoint: str) -> None:
    Fence.claim(checkpoint, pipeline="orders").release()
    assert Fence.claim(checkpoint, pipeline="orders").epoch == 2


def test_of_many_processes_exactly_one_wins(checkpoint: str) -> None:
    claimers = [Claimer(checkpoint) for _ in range(4)]
    try:
        for each in claimers:
            each.go()
        assert sorted(each.outcome() for each in claimers) == ["1", "refused", "refused", "refused"]
    finally:
        for each in claimers:
            each.kill()


def test_of_many_threads_exactly_one_wins_the_place_of_a_gone_holder(checkpoint: str) -> None:
    gone = replace(Holder.here(epoch=4, pipeline="orders"), started="0")
    plant(checkpoint, gone)
    barrier = threading.Barrier(8)
    epochs: list[int] = []
    refused: list[FenceError] = []

    def claim() -> None:
        barrier.wait()
        try:
            epochs.append(Fence.claim(checkpoint, pipeline="orders").epoch)
        except FenceError as error:
            refused.append(error)

    threads = [threading.Thread(target=claim) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert epochs == [5]
    assert len(refused) == 7


def test_a_reused_pid_is_not_taken_for_the_holder(checkpoint: str) -> None:
    plant(checkpoint, replace(Holder.here(epoch=1, pipeline="orders"), started="12345"))
    assert Fence.claim(checkpoint, pipeline="orders").epoch == 2


def test_a_pid_of_before_the_last_boot_is_not_taken_for_the_holder(checkpoint: str) -> None:
    plant(checkpoint, replace(Holder.here(epoch=1, pipeline="orders"), boot="another"))
    assert Fence.claim(checkpoint, pipeline="orders").epoch == 2


def test_a_holder_on_another_machine_must_be_taken_over_on_purpose(checkpoint: str) -> None:
    plant(checkpoint, replace(Holder.here(epoch=1, pipeline="orders"), host="elsewhere"))
    with pytest.raises(FenceError) as caught:
        Fence.claim(checkpoint, pipeline="orders")
    assert "another machine" in caught.value.why
    assert Fence.claim(checkpoint, pipeline="orders", take_over=True).epoch == 2


def test_a_holder_that_goes_while_it_is_looked_at_is_no_crash(checkpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(checkpoint, Holder.here(epoch=1, pipeline="orders"))
    fates = iter(["running", "gone", "gone"])
    monkeypatch.setattr(Holder, "fate", property(lambda _self: next(fates)))
    with pytest.raises(FenceError, match="is held by"):
        Fence.claim(checkpoint, pipeline="orders")


@pytest.mark.parametrize("content", ["", "{", "[]", "null", "{}", '{"epoch": 1}', '{"pid": "x"}', "\x00\x00"])
def test_a_damaged_claim_is_unknown_and_not_free(checkpoint: str, content: str) -> None:
    file = plant(checkpoint, Holder.here(epoch=3, pipeline="orders"))
    file.write_text(content)
    for take_over in (False, True):
        with pytest.raises(FenceError) as caught:
            Fence.claim(checkpoint, pipeline="orders", take_over=take_over)
        assert str(file) in caught.value.what
        assert "unknown" in caught.value.why
        assert "delete" in caught.value.fix
    assert list(file.parent.iterdir()) == [file]


def test_a_claim_copied_to_another_epoch_is_damaged(checkpoint: str) -> None:
    file = plant(checkpoint, Holder.here(epoch=1, pipeline="orders"))
    file.rename(file.with_name("00000007.json"))
    with pytest.raises(FenceError, match="not a claim"):
        Fence.claim(checkpoint, pipeline="orders")


def test_a_damaged_successor_still_fences(checkpoint: str) -> None:
    held = Fence.claim(checkpoint, pipeline="orders")
    Path(held.successor).write_text("{")
    with pytest.raises(Fenced):
        held.check()


def test_the_half_written_file_of_a_killed_claimer_is_no_claim(checkpoint: str) -> None:
    folder = Path(beside(checkpoint), "epochs")
    folder.mkdir(parents=True)
    (folder / "00000009.json#1").write_text("{")
    (folder / "notes.txt").write_text("mine")
    assert Fence.claim(checkpoint, pipeline="orders").epoch == 1


def test_old_epochs_are_pruned_and_the_newest_kept(checkpoint: str) -> None:
    for _ in range(KEEP_EPOCHS + 5):
        last = Fence.claim(checkpoint, pipeline="orders")
        last.release()
    names = sorted(file.name for file in Path(beside(checkpoint), "epochs").iterdir())
    claims = [name for name in names if "released" not in name]
    assert len(claims) == KEEP_EPOCHS
    assert claims[-1] == f"{last.epoch:08d}.json"
    assert last.epoch == KEEP_EPOCHS + 5


def test_a_user_without_a_name_has_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless() -> str:
        raise KeyError("getpwuid(): uid not found")

    monkeypatch.setattr("getpass.getuser", nameless)
    assert Holder.here(epoch=1, pipeline="x").user == f"uid {os.getuid()}"


def test_where_there_is_no_proc_a_process_is_still_told_from_none(
    monkeypatch: pytest.MonkeyPatch, checkpoint: str
) -> None:
    monkeypatch.setattr(fence, "_stat", lambda _pid: [])
    monkeypatch.setattr(Path, "exists", lambda _path: False)
    here = Holder.here(epoch=1, pipeline="x")
    assert here.fate == "running"
    assert replace(here, pid=2**22 + 1).fate == "gone"
