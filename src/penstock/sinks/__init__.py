"""Sinks: where results go. One file each; the file's name is the key in a pipeline file."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.guarantee import Guarantee
from penstock.plugins import Plugin

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter


class Sink(Plugin):
    """A place to write a stream to."""

    modes: ClassVar[tuple[str, ...]] = ("append",)
    # The triggers besides micro-batches that Spark takes for this sink.
    continuous: ClassVar[bool] = False
    real_time: ClassVar[bool] = False
    # Spark refuses asynchronous progress tracking for every other sink.
    async_progress: ClassVar[bool] = False
    # True where a replayed batch must hold the same rows as before to count once.
    needs_determinism: ClassVar[bool] = False
    # True where a second attempt of the same task could be seen by a reader.
    needs_single_attempts: ClassVar[bool] = False

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What becomes of a batch that is written twice, and why."""

    @abstractmethod
    def attach(self, writer: DataStreamWriter) -> DataStreamWriter:
        """Point a stream writer at this sink; the caller starts it."""

    def preflight(self) -> None:
        """Raise if the sink can't be written; called before a JVM is started."""

    def read_back(self, spark: SparkSession) -> DataFrame:
        """What a reader of the sink sees now."""
        raise NotImplementedError(f"{self.kind()} keeps nothing that could be read back")

    @property
    def keeps(self) -> bool:
        """Whether what was written can be read back."""
        return type(self).read_back is not Sink.read_back

    @property
    def location(self) -> str:
        """Where the sink is, for people."""
        fields: dict[str, Any] = self.__dict__
        return str(fields.get("path") or fields.get("table") or self.kind())
