"""A service as a local process that ends with us, and only with us."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

# Reads its standard input until we close it or die, then kills its process group, itself included.
_WATCHER = ["/bin/sh", "-c", "read -r _; kill -KILL 0"]
_TELLS_A_FAULT = re.compile(r"\b(ERROR|FATAL|Caused by|[\w.]+(Exception|Error)):? ")


class TiedProcess:
    """A process with its output in a file and its pid in another, tied to the life of this one.

    Ctrl-C in our terminal must not reach a service, and our death (SIGKILL too) must end it. So it runs in
    a process group of its own, which a terminal's signals pass by, led by a small watcher that reads from a
    pipe of ours: the kernel closes the pipe however we end. PR_SET_PDEATHSIG would do this on Linux alone,
    fires when the *thread* that started the service ends, and needs a preexec_fn, which is unsafe in a
    program with threads. As the watcher leads the group, the group's id can't pass to a stranger.
    """

    def __init__(
        self, command: Sequence[str], *, log: Path, pid_file: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self.log = log
        self.pid_file = pid_file
        self._log_start = log.stat().st_size if log.exists() else 0
        self._watcher = subprocess.Popen(
            _WATCHER,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
        try:
            with log.open("ab") as sink:
                self._process = subprocess.Popen(
                    list(command),
                    stdin=subprocess.DEVNULL,
                    stdout=sink,
                    stderr=sink,
                    cwd=log.parent,
                    env=None if env is None else dict(env),
                    process_group=self._watcher.pid,
                )
        except BaseException:
            self._end_watcher()
            raise
        pid_file.write_text(f"{self._process.pid}\n", encoding="ascii")

    @property
    def pid(self) -> int:
        """The process id of the service."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the service runs."""
        return self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """How it ended (negative: by that signal), or None while it runs."""
        return self._process.poll()

    def stop(self, *, grace_s: float) -> None:
        """Ask it to end (SIGTERM), and kill it if it has not after `grace_s`."""
        self.signal(signal.SIGTERM)
        self.signal(signal.SIGCONT)  # one that a drill has frozen would not hear the first
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=grace_s)
        self.kill()

    def kill(self) -> None:
        """End it at once (SIGKILL), and wait until it is gone."""
        self.signal(signal.SIGKILL)
        self._process.wait()
        self._end_watcher()
        self.pid_file.unlink(missing_ok=True)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, such as SIGSTOP; nothing happens if it has ended."""
        self._process.send_signal(number)

    def last_words(self, *, count: int = 12) -> str:
        """Return what its log says about a failure: the last errors of this run, or else the last lines."""
        with self.log.open("rb") as file:
            file.seek(self._log_start)
            lines = file.read().decode("utf-8", "replace").splitlines()
        # A JVM service that fails goes on to log its orderly shutdown; the cause stands before that.
        errors = [line for line in lines if _TELLS_A_FAULT.search(line)]
        return "\n".join((errors or lines)[-count:]) or "its log is empty"

    def _end_watcher(self) -> None:
        if self._watcher.stdin is not None:
            self._watcher.stdin.close()
        self._watcher.wait()


def pid_in_use(pid_file: Path, *, mark: str) -> int | None:
    """Return the pid in `pid_file` if that process lives and its command line holds `mark`."""
    try:
        pid = int(pid_file.read_text(encoding="ascii"))
        os.kill(pid, 0)
    except (OSError, ValueError):
        return None
    shown = subprocess.run(  # /proc is Linux only; ps is everywhere
        ["ps", "-ww", "-o", "command=", "-p", str(pid)],  # noqa: S607 (its place differs by system)
        capture_output=True,
        text=True,
        check=False,
    )
    return pid if mark in shown.stdout else None
