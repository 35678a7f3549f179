"""Steps: what happens between source and sink. One file each; the file's name is the key in a pipeline file."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.plugins import Plugin

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@dataclass(slots=True)
class Aside:
    """Rows that a step puts aside, so that they are quarantined instead of lost.

    `rows` is the stream as it came into the step, `bad` tells which of its rows are put aside, and `record`
    and `reason` describe one. The step counts them in an observed metric, as `put_aside`.
    """

    rows: DataFrame
    bad: Column
    record: Column
    reason: Column


@dataclass(slots=True)
class Built:
    """What the steps have made so far of a stream."""

    frame: DataFrame
    asides: list[Aside] = field(default_factory=list)


class Step(Plugin):
    """One transformation of the stream."""

    @property
    def keeps_state(self) -> bool:
        """Whether the step remembers anything between batches."""
        return self.aggregates

    @property
    def aggregates(self) -> bool:
        """Whether the step groups rows, so that the output mode matters."""
        return False

    @property
    def nondeterminism(self) -> str:
        """Why a replay may give other rows, or an empty string."""
        return ""

    @property
    def map_like(self) -> bool:
        """Whether it only selects and filters, which is all that continuous processing takes."""
        return False

    @abstractmethod
    def apply(self, built: Built, *, index: int) -> Built:
        """The stream after this step; `index` is the step's number in the file."""
