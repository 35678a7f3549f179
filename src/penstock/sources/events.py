"""Made-up events with a known truth, for trying things out and for drills."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from penstock.guarantee import Guarantee, exactly
from penstock.sources import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Events(Source):
    """JSON events as they would come from Kafka (`value`, `partition`, `offset`), some late, some malformed.

    Event n is the same every time, so whoever reads them can tell which one is missing or there twice. On Spark
    4.1 the trigger `available_now` ends after one batch of a Python source; use `{every: …}`.
    """

    example: ClassVar[str] = "events: {total: 10000, per_batch: 1000}"

    total: Annotated[int, Field(gt=0, description="How many events there are in all.")] = 10_000
    per_batch: Annotated[int, Field(gt=0, description="How many come in one batch.")] = 1_000
    partitions: Annotated[int, Field(gt=0, description="In how many partitions.")] = 2
    seed: Annotated[int, Field(ge=0, description="Another seed gives other events.")] = 0

    @property
    def guarantee(self) -> Guarantee:
        return exactly("event n is computed from n, so a replay makes the same ones")

    def read(self, spark: SparkSession) -> DataFrame:
        spark.dataSource.register(self.data_source())
        options = {name: str(value) for name, value in self.model_dump().items()}
        return spark.readStream.format("penstock_events").options(**options).load()

    @staticmethod
    def data_source() -> Any:
        """The format `penstock_events`."""
        from penstock.formats.events import EventsDataSource

        return EventsDataSource
