"""Nowhere, for measuring."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from penstock.guarantee import Guarantee, at_most
from penstock.sinks import Sink

if TYPE_CHECKING:
    from pyspark.sql.streaming.readwriter import DataStreamWriter


class Noop(Sink):
    """Computes every row and throws it away."""

    example: ClassVar[str] = "noop"
    modes: ClassVar[tuple[str, ...]] = ("append", "update", "complete")
    continuous: ClassVar[bool] = True

    @property
    def guarantee(self) -> Guarantee:
        return at_most("nothing is kept", raise_by="write to delta, iceberg or parquet")

    def attach(self, writer: DataStreamWriter) -> DataStreamWriter:
        return writer.format("noop")
