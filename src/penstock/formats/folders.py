"""The format `penstock_folders`: Parquet files, one folder a batch, as a Python data source."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage

from penstock.storage import local_path

if TYPE_CHECKING:
    import pyarrow as pa

# Spark and other readers of a folder leave out names that begin with an underscore.
_STAGING = "_staging"


class FoldersDataSource(DataSource):
    """Tasks write aside, and the driver gives the whole batch its name with one rename."""

    @classmethod
    def name(cls) -> str:
        return "penstock_folders"

    def streamWriter(self, schema: Any, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802 - Spark's name
        if overwrite:
            raise ValueError("penstock_folders only appends: outputMode must be append")
        if "path" not in self.options:
            raise ValueError("penstock_folders needs the option path")
        return _Writer(self.options["path"])


@dataclass
class _Written(WriterCommitMessage):
    query: str
    file: str


class _Writer(DataSourceStreamArrowWriter):
    def __init__(self, path: str) -> None:
        self.path = path

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """In a task: write its rows to a file that no reader looks at."""
        import pyarrow.parquet as pq
        from pyspark import TaskContext

        context: Any = TaskContext.get()
        query = context.getLocalProperty("sql.streaming.queryId")
        folder = local_path(self.path) / _STAGING / query
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"part-{context.partitionId():05d}-{uuid.uuid4()}.parquet"
        writer = None
        for batch in iterator:
            if writer is None:
                writer = pq.ParquetWriter(file, batch.schema)
            writer.write_batch(batch)
        if writer is None:
            return _Written(query, "")
        writer.close()
        return _Written(query, str(file))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """On the driver: the batch appears whole, or is left out because it is there already."""
        written = [message for message in messages if isinstance(message, _Written)]
        if not written:
            return
        root, query = local_path(self.path), written[0].query
        target, staging = root / f"query={query}" / f"batch={batchId}", root / _STAGING / query
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            whole = staging / f"batch-{batchId}-{uuid.uuid4()}"
            whole.mkdir(parents=True)
            for message in written:
                if message.file:
                    os.rename(message.file, whole / Path(message.file).name)
            _name(whole, target)
        # What is left is of attempts that were killed, of this batch or of one before; no task writes now.
        shutil.rmtree(staging, ignore_errors=True)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """On the driver: the batch failed, and its files are of no use."""
        for message in messages:
            if isinstance(message, _Written) and message.file:
                Path(message.file).unlink(missing_ok=True)


def _name(whole: Path, target: Path) -> None:
    """The one step that counts: before it nothing of the batch is there, after it all is."""
    try:
        os.rename(whole, target)
    except OSError:
        # Another driver was quicker, and has written the same batch.
        if not target.exists():
            raise
