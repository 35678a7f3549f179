"""Delivery guarantees as values: a level, the reason for it, and what would raise it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum


class Level(IntEnum):
    """How often a record may count, from weakest to strongest."""

    AT_MOST_ONCE = 0
    AT_LEAST_ONCE = 1
    EXACTLY_ONCE = 2

    @property
    def label(self) -> str:
        return self.name.lower().replace("_", "-")

    @classmethod
    def parse(cls, text: str) -> Level:
        """The level called `text`; ValueError if there is none."""
        for level in cls:
            if level.label == text:
                return level
        raise ValueError(f"{text!r} is not one of {', '.join(level.label for level in cls)}")


@dataclass(frozen=True, slots=True)
class Guarantee:
    """One part's guarantee."""

    level: Level
    because: str
    raise_by: str = ""


@dataclass(frozen=True, slots=True)
class Share:
    """What one named part of a pipeline gives."""

    part: str
    guarantee: Guarantee


def weakest(shares: Iterable[Share]) -> Share:
    """The share that limits the whole; the first one where several are equally weak."""
    return min(shares, key=lambda share: share.guarantee.level)


def exactly(because: str) -> Guarantee:
    return Guarantee(Level.EXACTLY_ONCE, because)


def at_least(because: str, *, raise_by: str) -> Guarantee:
    return Guarantee(Level.AT_LEAST_ONCE, because, raise_by)


def at_most(because: str, *, raise_by: str) -> Guarantee:
    return Guarantee(Level.AT_MOST_ONCE, because, raise_by)
