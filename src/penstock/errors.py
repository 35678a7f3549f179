"""Every error Penstock raises on purpose: what happened, why, and what to do about it.

PenstockError                 exit 2
├── UsageError                the command line or the call is wrong
│   └── SpecError             the pipeline file is wrong; carries file:line
├── MissingExtra              an optional dependency is not installed
├── SetupError                this machine lacks something
│   ├── JavaError             no Java, or one that Spark can't use
│   └── JarError              a jar can't be had, or is not the one we pinned
├── ServiceError              a service that the pipeline needs does not answer
├── StorageError              a path can't be read or written
├── GuaranteeError            exit 1: the pipeline gives less than it requires
├── FenceError                exit 1: another run holds the checkpoint
│   └── Fenced                exit 1: another run took the checkpoint from us
├── RunError                  exit 1: the query stopped
│   └── RetryableRunError     exit 1: the same, and a restart may cure it
└── VerdictError              exit 1: a check of the result failed
    └── UnknownResult         exit 3: a check could not be made
"""

from __future__ import annotations

from typing import ClassVar


class PenstockError(Exception):
    """An error in the house form: what (the fact), why (the cause), fix (a command or an edit)."""

    exit_code: ClassVar[int] = 2
    retryable: ClassVar[bool] = False

    def __init__(self, what: str, *, why: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.fix = fix

    def __str__(self) -> str:
        lines = [self.what]
        if self.why:
            lines.append(f"  why: {self.why}")
        if self.fix:
            lines.append(f"  fix: {self.fix}")
        return "\n".join(lines)


class UsageError(PenstockError):
    """The command line or the call is wrong."""


class SpecError(UsageError):
    """The pipeline file is wrong."""

    def __init__(self, what: str, *, file: str, line: int | None = None, why: str = "", fix: str = "") -> None:
        place = f"{file}:{line}" if line else file
        super().__init__(f"{place}: {what}", why=why, fix=fix)
        self.file = file
        self.line = line


class MissingExtra(PenstockError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, *, extra: str, needed_for: str) -> None:
        super().__init__(
            f"{package} is not installed",
            why=f"{needed_for} needs it",
            fix=f"pip install 'penstock[{extra}]'",
        )
        self.extra = extra


class SetupError(PenstockError):
    """This machine lacks something."""


class JavaError(SetupError):
    """There is no Java, or one that Spark can't use."""


class JarError(SetupError):
    """A jar can't be had, or is not the one that was pinned."""


class ServiceError(PenstockError):
    """A service that the pipeline needs does not answer."""


class StorageError(PenstockError):
    """A path can't be read or written."""


class GuaranteeError(PenstockError):
    """The pipeline gives less than it requires."""

    exit_code = 1


class FenceError(PenstockError):
    """Another run holds the checkpoint."""

    exit_code = 1


class Fenced(FenceError):
    """Another run took the checkpoint from us; we must not write any more."""


class RunError(PenstockError):
    """The query stopped."""

    exit_code = 1


class RetryableRunError(RunError):
    """The query stopped, and a restart from the checkpoint may cure it."""

    retryable = True


class VerdictError(PenstockError):
    """A check of the result failed."""

    exit_code = 1


class UnknownResult(VerdictError):
    """A check could not be made; unknown is never a pass."""

    exit_code = 3


def require(module: str, *, extra: str, needed_for: str) -> None:
    """Raise MissingExtra unless `module` can be imported."""
    from importlib.util import find_spec

    if find_spec(module) is None:
        raise MissingExtra(module, extra=extra, needed_for=needed_for)
