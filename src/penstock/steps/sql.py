"""A SQL query over the stream."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from penstock import sql_text
from penstock.steps import Built, Step


class Sql(Step):
    """A SELECT over `input`, which is the stream as the step before left it."""

    example: ClassVar[str] = "sql: select user_id, event_time from input where user_id is not null"
    shorthand: ClassVar[str | None] = "query"

    query: Annotated[str, Field(min_length=1, description="A SELECT; the stream is called `input`.")]

    @property
    def aggregates(self) -> bool:
        return sql_text.aggregates(self.query)

    @property
    def map_like(self) -> bool:
        return sql_text.is_map_like(self.query)

    @property
    def nondeterminism(self) -> str:
        names = sql_text.nondeterministic_functions(self.query)
        return f"{', '.join(names)} gives another value each time" if names else ""

    def apply(self, built: Built, *, index: int) -> Built:
        spark = built.frame.sparkSession
        # Spark resolves the view while it analyses the query, so it can go at once.
        built.frame.createOrReplaceTempView("input")
        try:
            built.frame = spark.sql(self.query)
        finally:
            spark.catalog.dropTempView("input")
        return built
