"""Files that arrive in a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from penstock.errors import ServiceError
from penstock.guarantee import Guarantee, at_most, exactly
from penstock.plugins import Options
from penstock.sources import Source
from penstock.storage import is_local, local_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOSSY = {
    "ignoreMissingFiles": "skips a file that has gone since the batch was planned, without an error",
    "ignoreCorruptFiles": "skips what it can't read, without an error",
    "fileNameOnly": "takes two files of the same name in different folders for one",
}


class Files(Source):
    """Files in a folder, each read once: text lines (column `value`) for a parse step, or typed formats.

    A file must appear whole (written elsewhere and renamed), and must not change after it has appeared. In the
    formats json and csv Spark turns what it can't read into nulls: for data that you don't trust, read text and
    add a parse step, which quarantines it.
    """

    example: ClassVar[str] = "files: {path: in/events, format: text}"

    path: Annotated[str, Field(min_length=1, description="The folder, or a glob.")]
    format: Annotated[
        Literal["text", "json", "csv", "parquet", "orc", "binaryFile"],
        Field(description="How the files are read."),
    ] = "text"
    schema_: Annotated[
        str | None,
        Field(alias="schema", description="The columns as DDL; needed for json, csv, parquet and orc."),
    ] = None
    max_files_per_batch: Annotated[int | None, Field(gt=0, description="At most so many files in one batch.")] = None
    options: Options = Field(default_factory=dict, description="Further options of Spark's file source.")

    @model_validator(mode="after")
    def _schema_is_there(self) -> Files:
        if self.format not in ("text", "binaryFile") and not self.schema_:
            raise ValueError(f"format {self.format} needs a schema: Spark does not guess it for a stream")
        return self

    @property
    def guarantee(self) -> Guarantee:
        options = {key.lower(): value.lower() for key, value in self.options.items()}
        if options.get("mode") == "dropmalformed":
            return at_most("mode=DROPMALFORMED leaves records out without an error", raise_by="remove the option mode")
        for name, loss in _LOSSY.items():
            if options.get(name.lower()) == "true":
                return at_most(f"{name}=true {loss}", raise_by=f"remove the option {name}")
        return exactly("the files of a batch are listed in the checkpoint before they are read")

    def read(self, spark: SparkSession) -> DataFrame:
        reader = spark.readStream.format(self.format)
        if self.schema_:
            reader = reader.schema(self.schema_)
        if self.max_files_per_batch:
            reader = reader.option("maxFilesPerTrigger", self.max_files_per_batch)
        return reader.options(**self.options).load(self.path)

    def preflight(self) -> None:
        if is_local(self.path) and not any(mark in self.path for mark in "*?[{"):
            folder = local_path(self.path)
            if not folder.exists():
                raise ServiceError(
                    f"{folder}: there is no such folder",
                    why="Spark refuses a file source whose folder is not there",
                    fix=f"mkdir -p {folder}",
                )
