"""Lengths of time as Spark writes them: `10 seconds`, `1 hour`."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

_UNIT_MS = {
    "millisecond": 1,
    "second": 1_000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 604_800_000,
}
# As strict as Spark's own parser, which wants blanks between number and unit and between parts.
_ONE = re.compile(r"([0-9]+)\s+(millisecond|second|minute|hour|day|week)s?(?:\s+|$)", re.IGNORECASE)


def milliseconds(text: str) -> int:
    """The length of `text` in milliseconds; ValueError if it is not a length of time."""
    rest = _ONE.sub("", text.strip())
    parts = _ONE.findall(text.strip())
    if rest or not parts:
        raise ValueError(f"{text!r} is not a length of time; write it as `10 seconds`, `5 minutes`, `1 hour`")
    return sum(int(count) * _UNIT_MS[unit.lower()] for count, unit in parts)


def describe(length_ms: float) -> str:
    """A length of time as a person would say it."""
    for unit in ("day", "hour", "minute", "second"):
        if length_ms >= _UNIT_MS[unit]:
            count = length_ms / _UNIT_MS[unit]
            text = f"{count:.0f}" if count == int(count) or count >= 10 else f"{count:.1f}"
            return f"{text} {unit}{'' if text == '1' else 's'}"
    return f"{length_ms:.0f} ms"


def _checked(text: str) -> str:
    milliseconds(text)
    return text


Duration = Annotated[str, AfterValidator(_checked)]
