"""A pipeline as values: source, steps, sink, and the settings that tie them together."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from penstock.durations import milliseconds
from penstock.guarantee import Level
from penstock.sinks import Sink
from penstock.sources import Source
from penstock.steps import Step

Mode = Literal["append", "update", "complete"]
MODES: tuple[Mode, ...] = ("append", "update", "complete")


@dataclass(frozen=True, slots=True)
class Trigger:
    """When a batch begins."""

    kind: str
    interval: str = ""

    @classmethod
    def parse(cls, value: Any) -> Trigger:
        """`{every: 10 seconds}`, `once`, `available_now`, `{continuous: 1 second}`, `{real_time: 5 minutes}`."""
        if isinstance(value, str) and value.replace(" ", "_") in ("once", "available_now"):
            return cls(value.replace(" ", "_"))
        if isinstance(value, dict) and len(value) == 1:
            kind, interval = next(iter(value.items()))
            if kind in ("every", "continuous", "real_time") and isinstance(interval, str):
                milliseconds(interval)
                return cls(kind, interval)
        raise ValueError("there is no such trigger; one with a pace is a kind and a length of time with its unit")

    def __str__(self) -> str:
        return f"{self.kind.replace('_', ' ')} {self.interval}".strip()


@dataclass(frozen=True, slots=True)
class Pipeline:
    """One pipeline file, checked."""

    name: str
    source: Source
    steps: tuple[Step, ...]
    sink: Sink
    mode: Mode
    trigger: Trigger
    checkpoint: str
    require: Level
    quarantine: str
    # Not shown: settings may hold what came by reference.
    spark: dict[str, str] = field(repr=False)
    file: Path
    lines: dict[tuple[str | int, ...], int] = field(repr=False, compare=False, default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.file.parent

    @property
    def parts(self) -> tuple[Source | Step | Sink, ...]:
        return (self.source, *self.steps, self.sink)

    @property
    def jars(self) -> tuple[str, ...]:
        """The groups of jars that this pipeline needs, each once."""
        groups = [group for part in self.parts for group in part.jars]
        places = [self.checkpoint, self.quarantine, *(str(getattr(part, "path", "")) for part in self.parts)]
        if any(place.startswith(("s3:", "s3a:")) for place in places):
            groups.append("s3")
        return tuple(dict.fromkeys(groups))

    @property
    def aggregates(self) -> bool:
        return any(step.aggregates for step in self.steps)

    @property
    def stateful(self) -> bool:
        return any(step.keeps_state for step in self.steps)

    def step(self, kind: str) -> Step | None:
        """The first step of a kind."""
        return next((step for step in self.steps if step.kind() == kind), None)

    def line(self, *path: str | int) -> int | None:
        """The line of a part of the file, or of the nearest thing around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path)
