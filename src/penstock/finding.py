"""A thing worth telling: what was found, where, why it matters and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Severity(IntEnum):
    """How much a finding matters for the next start."""

    NOTE = 0
    WARNING = 1
    ERROR = 2


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding of one rule."""

    rule: str
    severity: Severity
    where: str
    what: str
    why: str
    fix: str
