"""Durations, SQL texts and schemas: what can be told without Spark."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import sql_text
from penstock.column_schemas import spark_schema
from penstock.durations import describe, milliseconds

UNITS = {"millisecond": 1, "second": 1000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000, "week": 604_800_000}


@given(
    parts=st.lists(
        st.tuples(st.integers(0, 1000), st.sampled_from(sorted(UNITS)), st.booleans()), min_size=1, max_size=4
    )
)
def test_a_length_of_time_is_the_sum_of_its_parts(parts: list[tuple[int, str, bool]]) -> None:
    text = "  ".join(f"{count} {unit}{'s' if plural else ''}" for count, unit, plural in parts)
    assert milliseconds(f" {text.upper()} ") == sum(count * UNITS[unit] for count, unit, _ in parts)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "10",
        "seconds",
        "10 parsecs",
        "1.5 hours",
        "-5 minutes",
        "10seconds",
        "5 minutes10 seconds",
        "1 hour,",
        "١ hour",
        "1 month",
    ],
)
def test_what_spark_would_not_take_is_no_length_of_time(text: str) -> None:
    with pytest.raises(ValueError, match="length of time"):
        milliseconds(text)


@pytest.mark.parametrize(
    ("length_ms", "text"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1000, "1 second"),
        (90_000, "1.5 minutes"),
        (7_200_000, "2 hours"),
        (86_400_000, "1 day"),
    ],
)
def test_a_length_is_described_as_a_person_would(length_ms: float, text: str) -> None:
    assert describe(length_ms) == text


@pytest.mark.parametrize(
    "query",
    [
        "select user, count(*) from input group by user",
        "SELECT max ( x ) FROM input",
        "select distinct a from input",
        "select /* over */ sum(x) -- over\n from input",
        "select sum(x) filter (where x > 1) from input",
        "select * from (select avg(x) as a from input)",
    ],
)
def test_a_query_that_groups_is_known(query: str) -> None:
    assert sql_text.aggregates(query)
    assert not sql_text.is_map_like(query)


@pytest.mark.parametrize(
    "query",
    [
        "select * from input where note = 'group by sum(x)'",
        "select array_max(xs), size(xs) from input",
        "select count from input -- count(*)",
        "select `count (x)`, a from input",
        "select * from input where name like any ('a%', 'b%')",
        "select \"it''s max(x)\" as t from input",
        "select sum(x) over (partition by y) from input",
    ],
)
def test_a_query_that_does_not_group_is_not_accused(query: str) -> None:
    assert not sql_text.aggregates(query)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("select rand(), uuid() from input", ("rand", "uuid")),
        ("select UUID () from input", ("uuid",)),
        ("select current_timestamp() from input", ()),
        ("select 'rand()' , brand(x) from input", ()),
    ],
)
def test_functions_that_differ_on_a_replay_are_named(query: str, names: tuple[str, ...]) -> None:
    assert sql_text.nondeterministic_functions(query) == names


@pytest.mark.parametrize(
    ("query", "map_like"),
    [
        ("select a from input where b > 1", True),
        ("select a from input limit 5", False),
        ("select a, now() from input", False),
        ("select 'join' from input", True),
    ],
)
def test_map_like_is_only_selecting_and_filtering(query: str, map_like: bool) -> None:
    assert sql_text.is_map_like(query) is map_like


def test_a_json_schema_becomes_columns() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "required": ["id"],
        "properties": {
            "id": {"type": "string"},
            "at": {"type": ["string", "null"], "format": "date-time"},
            "on": {"type": "string", "format": "date"},
            "n": {"type": "integer"},
            "x": {"type": "number"},
            "ok": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "more": {"type": "object", "additionalProperties": {"type": "integer"}},
            "in": {"type": "object", "properties": {"a": {"type": "string"}}},
        },
    }
    fields = {field["name"]: field for field in spark_schema(schema)["fields"]}
    assert [fields[name]["type"] for name in ("id", "at", "on", "n", "x", "ok")] == [
        "string", "timestamp", "date", "long", "double", "boolean",
    ]  # fmt: skip
    assert fields["id"]["nullable"] is False
    assert fields["at"]["nullable"] is True
    assert fields["tags"]["type"]["elementType"] == "string"
    assert fields["more"]["type"]["valueType"] == "long"
    assert fields["in"]["type"]["fields"][0]["name"] == "a"
    assert spark_schema(spark_schema(schema)) == spark_schema(schema)


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"type": "string"}, "object"),
        ({}, r"\$"),
        ({"type": "object", "properties": {"a": {"type": ["string", "integer"]}}}, r"\$\.a"),
        ({"type": "object", "properties": {"a": {"$ref": "#/x"}}}, r"\$\.a"),
        ({"type": "object", "properties": {"a": True}}, r"\$\.a"),
        ({"type": "object", "properties": {"a": {"type": {}}}}, r"\$\.a"),
        ({"type": "object", "properties": {"a": {"type": "array"}}}, r"\$\.a"),
    ],
)
def test_a_schema_without_column_types_is_told_with_its_place(schema: dict[str, Any], place: str) -> None:
    with pytest.raises(ValueError, match=place):
        spark_schema(schema)
