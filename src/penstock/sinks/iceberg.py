"""An Iceberg table."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from penstock.guarantee import Guarantee, exactly
from penstock.lakes import OnIceberg
from penstock.plugins import Names, Options
from penstock.sinks import Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter


class Iceberg(OnIceberg, Sink):
    """Rows of an Iceberg table; each batch is one snapshot that carries the query's id and the batch's number.

    The table is created if it is not there. The replay guard looks through the table's snapshots, so expire
    only snapshots that are older than any batch you may replay.
    """

    example: ClassVar[str] = """\
iceberg:
  table: shop.orders
  catalog: {type: hadoop, warehouse: data/warehouse}
"""
    modes: ClassVar[tuple[str, ...]] = ("append", "complete")

    partition_by: Names = Field(default=(), description="Columns that split a newly created table.")
    options: Options = Field(default_factory=dict, description="Further options of Iceberg's writer.")

    @property
    def guarantee(self) -> Guarantee:
        return exactly("each snapshot records query id and batch number, so a batch written before is skipped")

    def attach(self, writer: DataStreamWriter) -> DataStreamWriter:
        # Rows of one file group must arrive together, or Iceberg asks for a sort; fanout writes them as they come.
        writer = writer.format("iceberg").option("fanout-enabled", True).options(**self.options)
        writer = writer.option("path", self.full_name)
        return writer.partitionBy(*self.partition_by) if self.partition_by else writer

    def create_if_absent(self, frame: DataFrame) -> None:
        """Create the table with the stream's columns, since Iceberg's stream writer wants it to be there."""
        spark = frame.sparkSession
        namespace = self.full_name.rpartition(".")[0]
        columns = ", ".join(f"`{f.name}` {f.dataType.simpleString()}" for f in frame.schema.fields)
        split = f" partitioned by ({', '.join(f'`{name}`' for name in self.partition_by)})" if self.partition_by else ""
        if namespace.count("."):
            spark.sql(f"create namespace if not exists {namespace}")
        spark.sql(f"create table if not exists {self.full_name} ({columns}) using iceberg{split}")

    def read_back(self, spark: SparkSession) -> DataFrame:
        return spark.read.format("iceberg").load(self.full_name)
