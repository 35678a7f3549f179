"""An Iceberg table as a stream of its appended rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from penstock.guarantee import Guarantee, at_most, exactly
from penstock.lakes import OnIceberg
from penstock.plugins import Options
from penstock.sources import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Iceberg(OnIceberg, Source):
    """The rows that are appended to an Iceberg table, snapshot by snapshot."""

    example: ClassVar[str] = """\
iceberg:
  table: shop.orders
  catalog: {type: hadoop, warehouse: data/warehouse}
"""

    start_timestamp_ms: Annotated[
        int | None, Field(ge=0, description="Read only snapshots made after this moment.")
    ] = None
    options: Options = Field(default_factory=dict, description="Further options of Iceberg's source.")

    @property
    def guarantee(self) -> Guarantee:
        options = {key.lower(): value.lower() for key, value in self.options.items()}
        skips = [
            key
            for key in ("streaming-skip-overwrite-snapshots", "streaming-skip-delete-snapshots")
            if options.get(key) == "true"
        ]
        if skips:
            return at_most(f"{skips[0]} leaves those snapshots' rows out", raise_by=f"remove the option {skips[0]}")
        return exactly("a batch is a range of files in snapshots, which never change once committed")

    def read(self, spark: SparkSession) -> DataFrame:
        reader = spark.readStream.format("iceberg")
        if self.start_timestamp_ms is not None:
            reader = reader.option("stream-from-timestamp", self.start_timestamp_ms)
        return reader.options(**self.options).load(self.full_name)
