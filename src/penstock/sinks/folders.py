"""Parquet files, one folder a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field, field_validator

from penstock.guarantee import Guarantee, exactly
from penstock.sinks import Sink
from penstock.storage import is_local

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter


class Folders(Sink):
    """Parquet files on local disk, one folder a batch, that any reader can read: a batch appears whole or not at all.

    Spark's own Parquet sink shows the files of a killed attempt to every reader but Spark. Here a batch gets its
    name, `query=<id>/batch=<number>`, with one rename after all its files are written.
    """

    example: ClassVar[str] = "folders: {path: data/events}"

    path: Annotated[str, Field(min_length=1, description="The folder, on a local or mounted disk.")]

    @field_validator("path")
    @classmethod
    def _on_disk(cls, path: str) -> str:
        if not is_local(path):
            raise ValueError("an object store has no rename; use parquet, delta or iceberg there")
        return path

    @property
    def guarantee(self) -> Guarantee:
        return exactly("a batch is one folder that appears by one rename, and is left out if it is there already")

    def attach(self, writer: DataStreamWriter) -> DataStreamWriter:
        writer._spark.dataSource.register(self.data_source())
        return writer.format("penstock_folders").option("path", self.path)

    def read_back(self, spark: SparkSession) -> DataFrame:
        return spark.read.parquet(self.path)

    @staticmethod
    def data_source() -> Any:
        """The format `penstock_folders`."""
        from penstock.formats.folders import FoldersDataSource

        return FoldersDataSource
