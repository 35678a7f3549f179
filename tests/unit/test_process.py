"""A tied process: ended in order, by force, and with its parent."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

from penstock.cluster.process import TiedProcess, pid_in_use


def start(folder: Path, script: str) -> TiedProcess:
    return TiedProcess(["/bin/sh", "-c", script], log=folder / "log", pid_file=folder / "pid")


def wait_for(path: Path, text: str) -> None:
    end = time.monotonic() + 10
    while text not in path.read_text():
        assert time.monotonic() < end, f"{text} never came"
        time.sleep(0.01)


def test_stop_asks_first(tmp_path: Path) -> None:
    process = start(tmp_path, "trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.05; done")
    wait_for(tmp_path / "log", "up")
    assert pid_in_use(tmp_path / "pid", mark="echo bye") == process.pid
    assert pid_in_use(tmp_path / "pid", mark="something else") is None
    process.stop(grace_s=10)
    assert (process.exit_code, process.is_alive) == (3, False)
    assert "bye" in (tmp_path / "log").read_text()
    assert not (tmp_path / "pid").exists()


def test_stop_ends_one_that_does_not_listen_and_one_that_is_frozen(tmp_path: Path) -> None:
    deaf = start(tmp_path, "trap '' TERM; echo up; while :; do sleep 0.05; done")
    wait_for(tmp_path / "log", "up")
    deaf.stop(grace_s=0.2)
    assert deaf.exit_code == -signal.SIGKILL
    frozen = start(tmp_path, "exec sleep 30")
    frozen.signal(signal.SIGSTOP)
    frozen.stop(grace_s=10)
    assert frozen.exit_code == -signal.SIGTERM


def test_last_words_are_the_errors_of_this_run(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("ERROR of an earlier run\n")
    process = start(tmp_path, "echo 'ERROR port taken'; echo 'INFO shutting down'; exit 1")
    while process.is_alive:
        time.sleep(0.01)
    process.kill()
    assert process.last_words() == "ERROR port taken"


def test_a_program_that_is_not_there_leaves_no_watcher(tmp_path: Path) -> None:
    code = (
        "import os, sys, pathlib; from penstock.cluster.process import TiedProcess\n"
        "at = pathlib.Path(sys.argv[1])\n"
        "try:\n"
        "    TiedProcess(['/nowhere'], log=at / 'log', pid_file=at / 'pid')\n"
        "except FileNotFoundError:\n"
        "    print('refused')\n"
        "try:\n"
        "    os.waitpid(-1, os.WNOHANG)\n"
        "except ChildProcessError:\n"
        "    print('no child')\n"
    )
    # In a process of its own, since the other tests' services are children of this one.
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["refused", "no child"]


def test_it_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    code = (
        "import sys, time, pathlib; from penstock.cluster.process import TiedProcess\n"
        "at = pathlib.Path(sys.argv[1])\n"
        "p = TiedProcess(['/bin/sh', '-c', 'while :; do echo tick; sleep 0.05; done'], "
        "log=at / 'log', pid_file=at / 'pid')\n"
        "print('up', flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    parent.stdout.readline()
    wait_for(tmp_path / "log", "tick")
    parent.kill()
    parent.communicate()
    time.sleep(0.3)
    size = (tmp_path / "log").stat().st_size
    time.sleep(0.3)
    assert (tmp_path / "log").stat().st_size == size
