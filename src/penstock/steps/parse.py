"""Bytes or text to typed columns."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from penstock.column_schemas import spark_schema
from penstock.plugins import Names, Options
from penstock.steps import Built, Step


class Parse(Step):
    """Reads JSON, CSV or Avro out of a column; what can't be read goes to the quarantine with the reason.

    The columns of the schema replace those of the source; name source columns in `keep` to carry them along.
    A row is malformed when its text can't be read at all, when a value does not fit its type, or when a column
    declared NOT NULL is missing. Timestamps and dates are ISO-8601 (up to nanoseconds, of which Spark keeps
    microseconds) unless `timestamps` says otherwise; anything else is quarantined, never guessed.
    """

    example: ClassVar[str] = """\
parse:
  format: json
  schema: event_id string not null, event_time timestamp not null, data string
  keep: [partition, offset]
"""

    format: Annotated[Literal["json", "csv", "avro"], Field(description="How a record is written.")]
    schema_: Annotated[
        str | dict[str, Any],
        Field(
            min_length=1,
            alias="schema",
            description="The columns: DDL, Spark's schema as JSON, a JSON Schema, or an Avro schema.",
        ),
    ]
    column: Annotated[str, Field(description="The column that holds the record.")] = "value"
    keep: Annotated[Names, Field(description="Columns of the source to carry along.")] = ()
    timestamps: Annotated[
        str,
        Field(description="`iso`, `epoch_ms`, `epoch_s`, or a pattern of Spark's such as `dd/MM/yyyy HH:mm:ss`."),
    ] = "iso"
    confluent: Annotated[
        bool, Field(description="Avro only: skip the five bytes that a schema registry puts first.")
    ] = False
    options: Options = Field(default_factory=dict, description="Further options of Spark's reader for the format.")

    @field_validator("schema_", mode="before")
    @classmethod
    def _json_text(cls, value: Any) -> Any:
        if isinstance(value, str) and value.lstrip().startswith("{"):
            import json

            try:
                return json.loads(value)
            except ValueError as error:
                raise ValueError(f"the schema begins like JSON but is not: {error}") from None
        return value

    @model_validator(mode="after")
    def _avro_schema(self) -> Parse:
        if self.format == "avro" and isinstance(self.schema_, str):
            raise ValueError("avro needs its schema as JSON, for example schema: ${file:events.avsc}")
        if self.format != "avro" and isinstance(self.schema_, dict):
            spark_schema(self.schema_)
        return self

    @property
    def jars(self) -> tuple[str, ...]:
        return ("avro",) if self.format == "avro" else ()

    @property
    def map_like(self) -> bool:
        # Malformed rows are counted while they pass, which continuous processing does not take.
        return False

    def apply(self, built: Built, *, index: int) -> Built:
        from penstock.steps._parsing import parse

        return parse(self, built, index=index)
