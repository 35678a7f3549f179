"""The parse step as Spark expressions: typed columns, and for each row whether and why it is malformed.

The fast path runs on every row and only says *that* a row is malformed; the reasons are worked out for the few
rows that are, when they are written to the quarantine.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from penstock.column_schemas import spark_schema
from penstock.errors import UsageError
from penstock.steps import Aside, Built

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType

    from penstock.steps.parse import Parse

_CORRUPT = "_penstock_corrupt"
_PARSED = "_penstock_parsed"
_BAD = "_penstock_bad"


def parse(step: Parse, built: Built, *, index: int) -> Built:
    """The stream with the schema's columns; malformed rows are counted, put aside and filtered out."""
    from pyspark.sql import functions as F

    rows = built.frame
    raw = F.col(f"`{step.column}`")
    if step.format == "avro":
        return _avro(step, built, raw, index=index)
    schema = _schema(step)
    text = raw.cast("string")
    lenient = _read_one(step, text, schema)
    parsed = rows.select(
        *[F.col(f"`{name}`") for name in dict.fromkeys((step.column, *step.keep))], lenient.alias(_PARSED)
    )
    here = F.col(_PARSED)
    kept = [F.col(f"`{name}`") for name in step.keep]
    # Conversion and check are two selections: in one, Spark would evaluate each conversion again for its check.
    converted = [_convert(here.getField(f.name), f.dataType, step.timestamps).alias(f.name) for f in schema.fields]
    typed = parsed.select(*kept, *converted, here)
    columns = {f.name: F.col(f"`{f.name}`") for f in schema.fields}
    bad = _is_bad(here, schema, columns, step.timestamps)
    flagged = typed.select(*kept, *columns.values(), bad.alias(_BAD))
    metric = f"penstock_parse_{index}"
    # Besides counting, this keeps Spark from pushing the filter below from_json, which would then run twice.
    observed = flagged.observe(metric, F.count_if(F.col(_BAD)).alias("put_aside"))
    built.frame = observed.where(~F.col(_BAD)).drop(_BAD)
    standalone = _read_one(step, text, schema)
    again = {f.name: _convert(standalone.getField(f.name), f.dataType, step.timestamps) for f in schema.fields}
    built.asides.append(
        Aside(
            rows=rows,
            bad=_is_bad(standalone, schema, again, step.timestamps),
            record=text,
            reason=_reason(step, text, schema),
        )
    )
    return built


def _schema(step: Parse) -> StructType:
    from pyspark.sql.types import StructType

    if isinstance(step.schema_, str):
        found = StructType.fromDDL(step.schema_)
        if not isinstance(found, StructType):
            raise UsageError(f"parse.schema: {step.schema_!r} is a type, not columns", fix="write `name type, …`")
        return found
    return StructType.fromJson(spark_schema(step.schema_))


def _read(step: Parse, text: Column, schema: StructType) -> Column:
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType, StructField, StructType

    options = {**step.options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    marked = StructType([*schema.fields, StructField(_CORRUPT, StringType())])
    if step.format == "json":
        return F.from_json(text, marked, options)
    ddl = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in marked.fields)
    return F.from_csv(text, ddl, options)


def _read_one(step: Parse, text: Column, schema: StructType) -> Column:
    """The record, read leniently; null unless it is one record.

    Spark reads the first value of a JSON text and silently leaves out what follows it.
    """
    from pyspark.sql import functions as F

    record = _read(step, text, _lenient(schema))
    return F.when(_is_object(text), record) if step.format == "json" else record


def _is_object(text: Column) -> Column:
    from pyspark.sql import functions as F

    bare = F.btrim(text, F.lit(" \t\r\n"))
    return F.startswith(bare, F.lit("{")) & F.endswith(bare, F.lit("}"))


def _lenient(schema: StructType) -> StructType:
    """The schema with timestamps and dates as text.

    Spark's readers take a bare number for seconds, `10:30` for today and `20260101` for a count of days; reading
    the text first lets us refuse those instead of storing a wrong date.
    """
    from pyspark.sql.types import ArrayType, MapType, StringType, StructField, StructType

    def soften(kind: DataType) -> DataType:
        if isinstance(kind, StructType):
            return _lenient(kind)
        if isinstance(kind, ArrayType):
            return ArrayType(soften(kind.elementType))
        if isinstance(kind, MapType):
            return MapType(kind.keyType, soften(kind.valueType))
        return StringType() if _is_moment(kind) else kind

    return StructType([StructField(f.name, soften(f.dataType)) for f in schema.fields])


def _is_moment(kind: DataType) -> bool:
    from pyspark.sql.types import DateType, TimestampNTZType, TimestampType

    return isinstance(kind, TimestampType | TimestampNTZType | DateType)


def _holds_moment(kind: DataType) -> bool:
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, StructType):
        return any(_holds_moment(f.dataType) for f in kind.fields)
    if isinstance(kind, ArrayType):
        return _holds_moment(kind.elementType)
    if isinstance(kind, MapType):
        return _holds_moment(kind.valueType)
    return _is_moment(kind)


def _convert(value: Column, kind: DataType, timestamps: str) -> Column:
    """A value that was read leniently as what it was declared to be; null where it is not that."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, MapType, StructType

    if _is_moment(kind):
        return _moment(value, kind, timestamps)
    if not _holds_moment(kind):
        return value
    if isinstance(kind, ArrayType):
        element = kind.elementType
        return F.transform(value, lambda item: _convert(item, element, timestamps))
    if isinstance(kind, MapType):
        inside = kind.valueType
        return F.transform_values(value, lambda _, item: _convert(item, inside, timestamps))
    assert isinstance(kind, StructType)
    inner = [_convert(value.getField(f.name), f.dataType, timestamps).alias(f.name) for f in kind.fields]
    return F.when(value.isNotNull(), F.struct(*inner))


def _lost(value: Column, kind: DataType, timestamps: str) -> Column:
    """Whether a moment is there as text, anywhere inside a value, that is none."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, MapType, StructType

    if _is_moment(kind):
        return value.isNotNull() & _moment(value, kind, timestamps).isNull()
    if isinstance(kind, ArrayType):
        element = kind.elementType
        return F.coalesce(F.exists(value, lambda item: _lost(item, element, timestamps)), F.lit(False))
    if isinstance(kind, MapType):
        inside = kind.valueType
        values = F.map_values(value)
        return F.coalesce(F.exists(values, lambda item: _lost(item, inside, timestamps)), F.lit(False))
    assert isinstance(kind, StructType)
    parts = [_lost(value.getField(f.name), f.dataType, timestamps) for f in kind.fields if _holds_moment(f.dataType)]
    return F.coalesce(_any(parts), F.lit(False))


def _moment(value: Column, kind: DataType, timestamps: str) -> Column:
    from pyspark.sql import functions as F
    from pyspark.sql.types import DateType

    target = kind.simpleString()
    if timestamps in ("epoch_ms", "epoch_s"):
        whole = F.when(value.rlike(r"^-?\d{1,18}$"), value.try_cast("bigint"))
        made = F.timestamp_millis(whole) if timestamps == "epoch_ms" else F.timestamp_seconds(whole)
        return made.cast(target)
    if timestamps != "iso":
        return F.try_to_timestamp(value, F.lit(timestamps)).cast(target)
    # A four-digit year, month and day come first; for a timestamp the time of day must follow. The cast checks
    # the rest, and knows up to nine digits of a second. Looked at as bytes, since that is quicker than counting
    # characters; text that is not ASCII does not pass the cast.
    raw, dash = value.cast("binary"), F.lit(b"-")
    dated = (F.substring(raw, 5, 1) == dash) & (F.substring(raw, 8, 1) == dash)
    if isinstance(kind, DateType):
        return F.when((F.octet_length(value) == 10) & dated, value.try_cast(target))
    timed = F.substring(raw, 11, 1).isin(F.lit(b"T"), F.lit(b" "))
    return F.when((F.octet_length(value) >= 16) & dated & timed, value.try_cast(target))


def _is_bad(parsed: Column, schema: StructType, columns: dict[str, Column], timestamps: str) -> Column:
    from pyspark.sql import functions as F

    bad = [parsed.isNull(), parsed.getField(_CORRUPT).isNotNull()]
    for field in schema.fields:
        value, kind = parsed.getField(field.name), field.dataType
        if not field.nullable:
            # Covers a moment that is none as well: it has become null.
            bad.append(columns[field.name].isNull())
        elif _is_moment(kind):
            bad.append(value.isNotNull() & columns[field.name].isNull())
        if _holds_moment(kind) and not _is_moment(kind):
            bad.append(_lost(value, kind, timestamps))
    return F.coalesce(_any(bad), F.lit(True))


def _any(columns: list[Column]) -> Column:
    result = columns[0]
    for column in columns[1:]:
        result = result | column
    return result


def _reason(step: Parse, text: Column, schema: StructType) -> Column:
    """Why a malformed row is malformed, in words: the first field that is at fault, else the whole record."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType, StructField, StructType

    as_text = _read(step, text, StructType([StructField(f.name, StringType()) for f in schema.fields]))
    typed = _read_one(step, text, schema)
    reasons = [F.when(text.isNull(), F.lit("the record is null"))]
    reasons.append(F.when(F.trim(text) == "", F.lit("the record is empty")))
    reasons.append(F.when(as_text.getField(_CORRUPT).isNotNull(), F.lit(f"not valid {step.format.upper()}")))
    if step.format == "json":
        reasons.append(F.when(~_is_object(text), F.lit("not one JSON object")))
    for field in schema.fields:
        value, name = as_text.getField(field.name), field.name
        lenient = typed.getField(name)
        wrong = value.isNotNull() & _convert(lenient, field.dataType, step.timestamps).isNull()
        if _holds_moment(field.dataType):
            wrong = wrong | _lost(lenient, field.dataType, step.timestamps)
        kind = field.dataType.simpleString()
        said = F.concat(F.lit(f"{name}: "), F.substring(value, 1, 60), F.lit(f" is not a {kind}"))
        reasons.append(F.when(wrong, said))
        if not field.nullable:
            reasons.append(F.when(lenient.isNull(), F.lit(f"{name} is missing")))
    return F.coalesce(*reasons, F.lit(f"does not fit the schema as {step.format.upper()}"))


def _avro(step: Parse, built: Built, raw: Column, *, index: int) -> Built:
    from pyspark.sql import functions as F
    from pyspark.sql.avro.functions import from_avro

    rows = built.frame
    body = F.expr(f"substring(`{step.column}`, 6)") if step.confluent else raw
    record = from_avro(body, json.dumps(step.schema_), {**step.options, "mode": "PERMISSIVE"})
    parsed = rows.select(*[F.col(f"`{name}`") for name in step.keep], record.alias(_PARSED))
    metric = f"penstock_parse_{index}"
    # A malformed record comes back as a struct of nulls (or as null), never as an error.
    empty = F.to_json(F.col(_PARSED)) == "{}"
    bad = F.col(_PARSED).isNull() | empty
    flagged = parsed.withColumn(_BAD, F.coalesce(bad, F.lit(True)))
    observed = flagged.observe(metric, F.count_if(F.col(_BAD)).alias("put_aside"))
    built.frame = observed.where(~F.col(_BAD)).select(*[F.col(f"`{name}`") for name in step.keep], f"{_PARSED}.*")
    built.asides.append(
        Aside(
            rows=rows,
            bad=F.coalesce(record.isNull() | (F.to_json(record) == "{}"), F.lit(True)),
            record=F.base64(raw),
            reason=F.when(raw.isNull(), F.lit("the record is null")).otherwise(
                F.lit("not a record of this Avro schema")
            ),
        )
    )
    return built
