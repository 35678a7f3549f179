"""The format `penstock_events`: made-up events as a Python data source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from penstock.sample import event

_SCHEMA = "value binary, partition int, offset bigint"


class EventsDataSource(DataSource):
    """Event n lies in partition n % partitions; a batch is a range of numbers."""

    @classmethod
    def name(cls) -> str:
        return "penstock_events"

    def schema(self) -> str:
        return _SCHEMA

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        return _Reader({key.lower(): value for key, value in self.options.items()})


class _Range(InputPartition):
    def __init__(self, start: int, end: int, partition: int) -> None:
        super().__init__(partition)
        self.start, self.end, self.partition = start, end, partition


class _Reader(DataSourceStreamReader):
    def __init__(self, options: dict[str, str]) -> None:
        self.total = int(options.get("total", 10_000))
        self.per_batch = int(options.get("per_batch", 1_000))
        self.split = int(options.get("partitions", 2))
        self.seed = int(options.get("seed", 0))
        self.reached = 0

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"number": 0}

    def latestOffset(self) -> dict[str, int]:  # noqa: N802
        return {"number": min(self.total, self.reached + self.per_batch)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        # Spark 4.1 does not tell latestOffset where the query is, but asks for partitions after every restart.
        self.reached = max(self.reached, end["number"])
        return [_Range(start["number"], end["number"], number) for number in range(self.split)]

    def read(self, partition: InputPartition) -> Iterator[tuple[bytes, int, int]]:
        assert isinstance(partition, _Range)
        for number in range(partition.start, partition.end):
            if number % self.split == partition.partition:
                yield event(number, seed=self.seed).value, partition.partition, number

    def commit(self, end: dict[str, int]) -> None:
        """Nothing is kept, so there is nothing to let go of."""
