"""The terminal, for looking at a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from penstock.guarantee import Guarantee, at_least
from penstock.sinks import Sink

if TYPE_CHECKING:
    from pyspark.sql.streaming.readwriter import DataStreamWriter


class Console(Sink):
    """Prints the first rows of each batch; a replayed batch is printed again."""

    example: ClassVar[str] = "console: {rows: 10, truncate: false}"
    modes: ClassVar[tuple[str, ...]] = ("append", "update", "complete")
    continuous: ClassVar[bool] = True
    real_time: ClassVar[bool] = True

    rows: Annotated[int, Field(gt=0, description="How many rows of a batch to print.")] = 20
    truncate: Annotated[bool, Field(description="Cut long values.")] = True

    @property
    def guarantee(self) -> Guarantee:
        return at_least("a replayed batch is printed again", raise_by="write to delta, iceberg or parquet")

    def attach(self, writer: DataStreamWriter) -> DataStreamWriter:
        return writer.format("console").option("numRows", self.rows).option("truncate", self.truncate)
