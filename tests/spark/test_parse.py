"""The parse step on real Spark: what is read, what is refused, and with which words."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from penstock.steps import Built
from penstock.steps.parse import Parse

pytestmark = pytest.mark.spark

EVENT = "event_id string not null, amount int, event_time timestamp, day date"


def parsed(
    spark: Any, step: Parse, records: list[Any], kind: str = "string"
) -> tuple[list[Any], list[tuple[str, str]]]:
    """The rows that passed, and (record, reason) of those that were put aside."""
    frame = spark.createDataFrame([(record,) for record in records], f"value {kind}")
    built = step.apply(Built(frame), index=0)
    aside = built.asides[0]
    kept = aside.rows.where(aside.bad).select(aside.record.alias("record"), aside.reason.alias("reason")).collect()
    return built.frame.collect(), [(row["record"], row["reason"]) for row in kept]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-03-01T10:20:30.123456789Z", "2026-03-01T10:20:30.123456"),
        ("2026-03-01T10:20:30.999999999Z", "2026-03-01T10:20:30.999999"),
        ("2026-03-01T10:20:30.1Z", "2026-03-01T10:20:30.100000"),
        ("2026-03-01T10:20:30Z", "2026-03-01T10:20:30"),
        ("2026-03-01 10:20:30", "2026-03-01T10:20:30"),
        ("2026-03-01T10:20", "2026-03-01T10:20:00"),
        ("2026-03-01T10:20:30.5+09:00", "2026-03-01T01:20:30.500000"),
        ("2024-02-29T23:59:59.000000001Z", "2024-02-29T23:59:59"),
        ("1969-12-31T23:59:59.999999999Z", "1969-12-31T23:59:59.999999"),
    ],
)
def test_iso_timestamps_are_read_to_the_microsecond(spark: Any, text: str, moment: str) -> None:
    step = Parse(format="json", schema="t timestamp")
    frame = spark.createDataFrame([(f'{{"t": "{text}"}}',)], "value string")
    built = step.apply(Built(frame), index=0)
    # As text, so that neither Python's nor the machine's time zone has a say.
    row = built.frame.selectExpr("date_format(t, \"yyyy-MM-dd'T'HH:mm:ss.SSSSSS\") as t").collect()
    assert [r["t"] for r in row] == [datetime.fromisoformat(moment).isoformat(timespec="microseconds")]


@pytest.mark.parametrize(
    "value",
    [
        '"2026-13-01T00:00:00Z"',
        '"2026-02-30T00:00:00Z"',
        '"2026-03-01T25:00:00Z"',
        '"10:30"',
        '"T10:30:00"',
        '"2026"',
        '"2026-03-01"',
        '"20260301"',
        '"yesterday"',
        '""',
        "1700000000000",
        "1700000000",
        "17.5",
        "true",
        '{"a": 1}',
    ],
)
def test_what_is_no_moment_is_quarantined_and_never_another_date(spark: Any, value: str) -> None:
    step = Parse(format="json", schema="t timestamp")
    good, bad = parsed(spark, step, [f'{{"t": {value}}}'])
    assert good == []
    assert len(bad) == 1
    assert "t" in bad[0][1]
    assert "timestamp" in bad[0][1]


@pytest.mark.parametrize("value", ['"2026-02-30"', '"20260301"', '"12345"', "12345", '"2026-03-01T00:00:00Z"', '"x"'])
def test_what_is_no_date_is_quarantined(spark: Any, value: str) -> None:
    good, bad = parsed(spark, Parse(format="json", schema="d date"), [f'{{"d": {value}}}'])
    assert good == []
    assert bad[0][1].startswith("d: ")


def test_good_records_pass_and_missing_nullable_fields_are_null(spark: Any) -> None:
    good, bad = parsed(
        spark, Parse(format="json", schema=EVENT), ['{"event_id": "a"}', '{"event_id": "b", "amount": 3}']
    )
    assert [(row["event_id"], row["amount"], row["event_time"]) for row in good] == [("a", None, None), ("b", 3, None)]
    assert bad == []


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ("nonsense", "not valid JSON"),
        ('{"event_id": "a"', "not valid JSON"),
        ("", "the record is empty"),
        ("[1, 2]", "not valid JSON"),
        ('{"event_id": "a"} and more', "not one JSON object"),
        ('[{"event_id": "a"}, {"event_id": "b"}]', "not valid JSON"),
        (None, "the record is null"),
        ('{"event_id": "a", "amount": "many"}', "amount: many is not a int"),
        ('{"event_id": "a", "amount": 99999999999}', "amount: 99999999999 is not a int"),
        ('{"amount": 1}', "event_id is missing"),
        ('{"event_id": null}', "event_id is missing"),
        ('{"event_id": "a", "day": "2026-02-30"}', "day: 2026-02-30 is not a date"),
    ],
)
def test_malformed_records_are_put_aside_with_the_reason(spark: Any, record: str | None, reason: str) -> None:
    good, bad = parsed(spark, Parse(format="json", schema=EVENT), [record, '{"event_id": "ok"}'])
    assert [row["event_id"] for row in good] == ["ok"]
    assert bad == [(record, reason)]


def test_every_record_either_passes_or_is_put_aside(spark: Any) -> None:
    from penstock import sample

    events = [sample.event(number) for number in range(3_000)]
    schema = "event_id string not null, user_id string not null, event_time timestamp not null, data string"
    good, bad = parsed(spark, Parse(format="json", schema=schema), [bytearray(e.value) for e in events], "binary")
    assert sorted(row["event_id"] for row in good) == [e.event_id for e in events if not e.malformed]
    assert sorted(record for record, _ in bad) == sorted(e.value.decode() for e in events if e.malformed)


def test_nested_timestamps_are_checked_too(spark: Any) -> None:
    step = Parse(format="json", schema="o struct<at: timestamp, n: int>")
    good, bad = parsed(spark, step, ['{"o": {"at": "2026-01-01T00:00:00Z", "n": 1}}', '{"o": {"at": "nope", "n": 1}}'])
    assert len(good) == 1
    assert good[0]["o"]["n"] == 1
    assert len(bad) == 1


def test_csv_is_read_and_its_malformed_rows_are_put_aside(spark: Any) -> None:
    step = Parse(format="csv", schema="id string not null, n int, t timestamp")
    good, bad = parsed(spark, step, ["a,1,2026-01-01T00:00:00Z", "b,x,", "c,2,10:30", ",3,"])
    assert [row["id"] for row in good] == ["a"]
    assert [reason for _, reason in bad] == ["n: x is not a int", "t: 10:30 is not a timestamp", "id is missing"]


def test_epoch_milliseconds_are_read_when_the_file_says_so(spark: Any) -> None:
    step = Parse(format="json", schema="t timestamp", timestamps="epoch_ms")
    good, bad = parsed(spark, step, ['{"t": 1767225600123}', '{"t": "2026-01-01T00:00:00Z"}'])
    assert [row["t"].astimezone(UTC).isoformat() for row in good] == ["2026-01-01T00:00:00.123000+00:00"]
    assert len(bad) == 1


def test_a_json_schema_gives_the_same_columns_as_ddl(spark: Any) -> None:
    schema = {
        "type": "object",
        "required": ["id"],
        "properties": {
            "id": {"type": "string"},
            "at": {"type": "string", "format": "date-time"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
    }
    good, bad = parsed(spark, Parse(format="json", schema=schema), ['{"id": "a", "tags": ["x"]}', '{"tags": []}'])
    assert [(row["id"], row["tags"]) for row in good] == [("a", ["x"])]
    assert [reason for _, reason in bad] == ["id is missing"]


def test_avro_records_are_read_and_garbage_is_put_aside(spark: Any) -> None:
    import json

    from pyspark.sql.avro.functions import to_avro

    schema = {"type": "record", "name": "e", "fields": [{"name": "id", "type": "string"}, {"name": "n", "type": "int"}]}
    rows = spark.createDataFrame([("a", 1), ("b", 2)], "id string, n int")
    written = [
        bytes(r["value"])
        for r in rows.select(
            to_avro(__import__("pyspark").sql.functions.struct("id", "n"), json.dumps(schema)).alias("value")
        ).collect()
    ]
    good, bad = parsed(
        spark,
        Parse(format="avro", schema=schema),
        [bytearray(w) for w in written] + [bytearray(b"\xff"), None],
        "binary",
    )
    assert [(row["id"], row["n"]) for row in good] == [("a", 1), ("b", 2)]
    assert [reason for _, reason in bad] == ["not a record of this Avro schema", "the record is null"]


def test_kept_columns_are_carried_along(spark: Any) -> None:
    step = Parse(format="json", schema="id string", keep=("offset",))
    frame = spark.createDataFrame([('{"id": "a"}', 7)], "value string, offset bigint")
    built = step.apply(Built(frame), index=0)
    assert [row.asDict() for row in built.frame.collect()] == [{"offset": 7, "id": "a"}]


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("array<timestamp>", '["2026-01-01T00:00:00Z"]', '["2026-01-01T00:00:00Z", "10:30"]'),
        ("map<string, timestamp>", '{"k": "2026-01-01T00:00:00Z"}', '{"k": 1700000000000}'),
        ("array<struct<d: date>>", '[{"d": "2026-01-01"}, {}]', '[{"d": "20260101"}]'),
    ],
)
def test_moments_inside_arrays_and_maps_are_checked_too(spark: Any, kind: str, good: str, bad: str) -> None:
    rows, aside = parsed(spark, Parse(format="json", schema=f"x {kind}"), [f'{{"x": {good}}}', f'{{"x": {bad}}}', "{}"])
    assert len(rows) == 2
    assert [record for record, _ in aside] == [f'{{"x": {bad}}}']
    assert aside[0][1].startswith("x: ")


def test_white_space_around_a_record_does_no_harm(spark: Any) -> None:
    good, bad = parsed(spark, Parse(format="json", schema=EVENT), [' \t{"event_id": "a"}\r\n'])
    assert ([row["event_id"] for row in good], bad) == (["a"], [])
