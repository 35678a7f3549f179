"""How late a record may be."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from penstock.durations import Duration
from penstock.steps import Built, Step


class Watermark(Step):
    """Declares the event-time column and how long to wait for late records.

    Rows that come after the window they belong to was closed are late: they are counted per batch and, with
    `late: keep`, written to the quarantine with the watermark that they missed.
    """

    example: ClassVar[str] = "watermark: {column: event_time, delay: 10 minutes, late: keep}"

    column: Annotated[str, Field(description="The event-time column, a timestamp.")]
    delay: Annotated[Duration, Field(description="How long to wait, as in `10 minutes`.")]
    late: Annotated[
        Literal["count", "keep"],
        Field(description="Whether late rows are only counted, or kept in the quarantine."),
    ] = "count"

    def apply(self, built: Built, *, index: int) -> Built:
        built.frame = built.frame.withWatermark(self.column, self.delay)
        return built
