"""A Delta table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from penstock.guarantee import Guarantee, exactly
from penstock.lakes import OnDelta
from penstock.plugins import Names, Options
from penstock.sinks import Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter


class Delta(OnDelta, Sink):
    """Rows of a Delta table; each batch is one commit that carries the query's id and the batch's number."""

    example: ClassVar[str] = "delta: {path: data/hourly_counts}"
    modes: ClassVar[tuple[str, ...]] = ("append", "complete")

    path: Annotated[str, Field(min_length=1, description="The table's folder.")]
    partition_by: Names = Field(default=(), description="Columns that split the table into folders.")
    merge_schema: Annotated[bool, Field(description="Let new columns be added to the table.")] = False
    options: Options = Field(default_factory=dict, description="Further options of Delta's writer.")

    @property
    def guarantee(self) -> Guarantee:
        return exactly("each commit records query id and batch number, so a batch written before is skipped")

    def attach(self, writer: DataStreamWriter) -> DataStreamWriter:
        writer = writer.format("delta").options(**self.options).option("path", self.path)
        if self.merge_schema:
            writer = writer.option("mergeSchema", True)
        return writer.partitionBy(*self.partition_by) if self.partition_by else writer

    def read_back(self, spark: SparkSession) -> DataFrame:
        return spark.read.format("delta").load(self.path)
