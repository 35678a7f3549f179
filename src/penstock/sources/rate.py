"""Made-up rows at a steady pace, for trying things out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field, model_validator

from penstock.guarantee import Guarantee, exactly
from penstock.sources import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Rate(Source):
    """Rows of `timestamp` and `value` (0, 1, 2, …), by the clock or a fixed number a batch."""

    example: ClassVar[str] = "rate: {rows_per_second: 100}"
    continuous: ClassVar[bool] = True

    rows_per_second: Annotated[int, Field(gt=0, description="How many rows a second.")] = 10
    rows_per_batch: Annotated[int | None, Field(gt=0, description="Instead: how many rows a batch.")] = None
    partitions: Annotated[int | None, Field(gt=0, description="In how many partitions.")] = None

    @model_validator(mode="after")
    def _one_pace(self) -> Rate:
        if self.rows_per_batch and "rows_per_second" in self.model_fields_set:
            raise ValueError("give either rows_per_second or rows_per_batch")
        return self

    @property
    def guarantee(self) -> Guarantee:
        return exactly("the rows of a batch are computed from its offsets, so a replay makes the same ones")

    def read(self, spark: SparkSession) -> DataFrame:
        if self.rows_per_batch:
            reader = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", self.rows_per_batch)
        else:
            reader = spark.readStream.format("rate").option("rowsPerSecond", self.rows_per_second)
        if self.partitions:
            reader = reader.option("numPartitions", self.partitions)
        return reader.load()
