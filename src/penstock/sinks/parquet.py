"""A folder of Parquet files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from penstock.guarantee import Guarantee, exactly
from penstock.plugins import Names, Options
from penstock.sinks import Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter


class Parquet(Sink):
    """Parquet files, with the list of each batch's files in `_spark_metadata`.

    Spark reads the folder through that list. Other readers see every file, those of a killed attempt included.
    """

    example: ClassVar[str] = "parquet: {path: data/events, partition_by: [day]}"

    path: Annotated[str, Field(min_length=1, description="The folder.")]
    partition_by: Names = Field(default=(), description="Columns that split it into folders.")
    options: Options = Field(default_factory=dict, description="Further options of Spark's writer.")

    @property
    def guarantee(self) -> Guarantee:
        return exactly("_spark_metadata lists the files of each batch once, and Spark reads only those")

    def attach(self, writer: DataStreamWriter) -> DataStreamWriter:
        writer = writer.format("parquet").options(**self.options).option("path", self.path)
        return writer.partitionBy(*self.partition_by) if self.partition_by else writer

    def read_back(self, spark: SparkSession) -> DataFrame:
        return spark.read.parquet(self.path)
