"""One row per key."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from penstock.plugins import Names
from penstock.steps import Built, Step


class Dedupe(Step):
    """Keeps the first row of each key and drops those that come after it.

    After a `watermark` step a key is remembered for the watermark's delay; without one it is remembered for
    ever, and the state grows with every new key.
    """

    example: ClassVar[str] = "dedupe: event_id"
    shorthand: ClassVar[str | None] = "keys"

    keys: Annotated[Names, Field(min_length=1, description="The columns that make a record unique.")]
    within_watermark: Annotated[
        bool | None,
        Field(description="Forget a key after the watermark's delay. Default: yes if there is a watermark step."),
    ] = None

    @property
    def keeps_state(self) -> bool:
        return True

    def apply(self, built: Built, *, index: int) -> Built:
        marked = any("spark.watermarkDelayMs" in field.metadata for field in built.frame.schema.fields)
        within = marked if self.within_watermark is None else self.within_watermark
        drop = built.frame.dropDuplicatesWithinWatermark if within else built.frame.dropDuplicates
        built.frame = drop(list(self.keys))
        return built
