"""Sources: where records come from. One file each; the file's name is the key in a pipeline file."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.guarantee import Guarantee
from penstock.plugins import Plugin

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Source(Plugin):
    """A place to read a stream from."""

    # The triggers besides micro-batches that Spark takes for this source.
    continuous: ClassVar[bool] = False
    real_time: ClassVar[bool] = False

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """Whether a replayed batch reads exactly the records it read before, and why."""

    @property
    def start_if_lost(self) -> str:
        """What a start without a checkpoint does: `repeats` what was read before, or `skips` to the newest."""
        return "repeats"

    @abstractmethod
    def read(self, spark: SparkSession) -> DataFrame:
        """The stream as Spark's own DataFrame."""

    def preflight(self) -> None:
        """Raise if the source can't be reached or is not there; called before a JVM is started."""

    def identity(self) -> dict[str, Any]:
        """What tells this source from another of the same name (cluster id, topic id, …)."""
        return {}

    def positions(self) -> dict[str, Any]:
        """Earliest and latest position per partition, for sources that can say so without Spark."""
        return {}
