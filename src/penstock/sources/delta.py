"""A Delta table as a stream of its appended rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from penstock.guarantee import Guarantee, at_least, at_most, exactly
from penstock.lakes import OnDelta
from penstock.plugins import Options
from penstock.sources import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Delta(OnDelta, Source):
    """The rows that are added to a Delta table, version by version."""

    example: ClassVar[str] = "delta: {path: data/orders}"

    path: Annotated[str, Field(min_length=1, description="The table's folder.")]
    starting_version: Annotated[
        int | None,
        Field(ge=0, description="The first version to read; without it the whole table comes first."),
    ] = None
    max_files_per_batch: Annotated[int | None, Field(gt=0, description="At most so many files in one batch.")] = None
    options: Options = Field(default_factory=dict, description="Further options of Delta's source.")

    @property
    def start_if_lost(self) -> str:
        options = {key.lower(): value.lower() for key, value in self.options.items()}
        latest = "latest" in (options.get("startingversion"), options.get("startingtimestamp"))
        return "skips" if latest else "repeats"

    @property
    def guarantee(self) -> Guarantee:
        options = {key.lower(): value.lower() for key, value in self.options.items()}
        if options.get("failondataloss") == "false":
            return at_most(
                "failOnDataLoss=false skips versions whose log was cleaned up, without an error",
                raise_by="remove the option failOnDataLoss",
            )
        if options.get("skipchangecommits") == "true":
            return at_most(
                "skipChangeCommits leaves out every commit that changes rows, with the rows that it adds",
                raise_by="remove it, and read the change feed (readChangeFeed) of a table whose rows change",
            )
        if options.get("ignorechanges") == "true":
            return at_least(
                "ignoreChanges emits the untouched rows of a rewritten file again",
                raise_by="remove it, and read the change feed (readChangeFeed) of a table whose rows change",
            )
        return exactly("a batch is a range of table versions, which never change once committed")

    def read(self, spark: SparkSession) -> DataFrame:
        reader = spark.readStream.format("delta")
        if self.starting_version is not None:
            reader = reader.option("startingVersion", self.starting_version)
        if self.max_files_per_batch:
            reader = reader.option("maxFilesPerTrigger", self.max_files_per_batch)
        return reader.options(**self.options).load(self.path)
