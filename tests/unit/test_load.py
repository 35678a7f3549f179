"""A pipeline file to a checked Pipeline."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.errors import SpecError
from penstock.guarantee import Level
from penstock.spec.load import load
from penstock.spec.pipeline import Trigger

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yml"))


def refused(file: Path) -> SpecError:
    with pytest.raises(SpecError) as caught:
        load(file, variables={})
    assert caught.value.why
    assert caught.value.fix
    assert "Traceback" not in str(caught.value)
    return caught.value


def test_what_is_left_out_has_the_safe_default(write: Callable[..., Path], tmp_path: Path) -> None:
    pipeline = load(write())
    assert (pipeline.mode, pipeline.require, pipeline.steps) == ("append", Level.EXACTLY_ONCE, ())
    assert pipeline.trigger == Trigger("every", "10 seconds")
    assert pipeline.checkpoint == str(tmp_path / "ck")
    assert pipeline.quarantine == str(tmp_path / "ck.quarantine")
    assert pipeline.jars == ("kafka", "delta")


@pytest.mark.parametrize("key", ["steps", "mode", "trigger", "require", "quarantine", "spark"])
def test_a_key_without_a_value_is_as_good_as_none(write: Callable[..., Path], key: str) -> None:
    assert load(write(add=f"{key}:\n")) == load(write())


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_every_example_loads(file: Path) -> None:
    assert load(file, variables={"KAFKA": "localhost:9092"}).name == file.stem


def test_windows_newlines_and_a_byte_order_mark_change_nothing(write: Callable[..., Path]) -> None:
    file = write()
    plain = load(file)
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n"))
    assert load(file) == plain


@pytest.mark.parametrize(
    ("text", "trigger"),
    [
        ("once", Trigger("once")),
        ("available_now", Trigger("available_now")),
        ("available now", Trigger("available_now")),
        ("{every: 1 minute}", Trigger("every", "1 minute")),
    ],
)
def test_triggers_are_read(write: Callable[..., Path], text: str, trigger: Trigger) -> None:
    assert load(write(add=f"trigger: {text}\n")).trigger == trigger


@pytest.mark.parametrize(
    "text", ["10 seconds", "{every: 10}", "{every: 10 parsecs}", "{}", "{every: 1 second, once: x}", "[once]", "always"]
)
def test_a_trigger_that_is_none_shows_how_to_write_one(write: Callable[..., Path], text: str) -> None:
    error = refused(write(add=f"trigger: {text}\n"))
    assert error.line == 7
    assert "{every: 10 seconds}" in error.fix


def test_paths_are_taken_from_the_file_and_not_from_here(
    write: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write("delta: {path: out}", "iceberg: {table: a.b, catalog: {type: hadoop, warehouse: lake}}")
    monkeypatch.chdir("/")
    pipeline = load(file)
    assert pipeline.sink.catalog.warehouse == str(tmp_path / "lake")  # type: ignore[attr-defined]
    assert pipeline.checkpoint == str(tmp_path / "ck")


@pytest.mark.parametrize("text", ["link/ck", "here/../here/ck", "here/ck/", "file:{folder}/here/ck"])
def test_one_checkpoint_has_one_name_however_it_is_written(
    write: Callable[..., Path], tmp_path: Path, text: str
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "link").symlink_to("here")
    pipeline = load(write("checkpoint: ck", f"checkpoint: {text.format(folder=tmp_path)}"))
    assert pipeline.checkpoint == str(tmp_path / "here" / "ck")
    assert pipeline.quarantine == str(tmp_path / "here" / "ck.quarantine")


def test_a_bucket_keeps_its_address_and_needs_the_s3_jars(write: Callable[..., Path]) -> None:
    pipeline = load(write("checkpoint: ck", "checkpoint: s3a://bucket/ck/"))
    assert pipeline.checkpoint == "s3a://bucket/ck"
    assert pipeline.quarantine == "s3a://bucket/ck.quarantine"
    assert "s3" in pipeline.jars


def test_settings_become_the_texts_that_spark_takes(write: Callable[..., Path]) -> None:
    file = write(
        "topic: orders",
        "topic: orders, options: {a: true, b: 100, c: x}",
        add="spark: {spark.a: true, spark.b: 4, spark.c: 0.5}\n",
    )
    pipeline = load(file)
    assert pipeline.spark == {"spark.a": "true", "spark.b": "4", "spark.c": "0.5"}
    assert pipeline.source.options == {"a": "true", "b": "100", "c": "x"}  # type: ignore[attr-defined]


def test_a_short_form_fills_its_field(write: Callable[..., Path]) -> None:
    steps = "steps:\n  - dedupe: id\n  - dedupe: [a, b]\n  - sql: select 1 as x\n  - python: m:f\n"
    first, second, sql, python = load(write(add=steps)).steps
    assert (first.keys, second.keys) == (("id",), ("a", "b"))  # type: ignore[attr-defined]
    assert sql.query == "select 1 as x"  # type: ignore[attr-defined]
    assert python.function == "m:f"  # type: ignore[attr-defined]


CASES = [
    # old, new, added, line, part of what, part of fix
    ("name: orders", "name: 010", "", 1, "'010'", "letter first"),
    ("name: orders", "name: no", "", 1, "False", "quotes"),
    ("name: orders", "name: größe", "", 1, "größe", "letter"),
    ("name: orders", "name: a/b", "", 1, "a/b", "letter"),
    ("name: orders", "name:", "", 1, "'name' is missing", "add `name:`"),
    ("checkpoint: ck", "checkpoint: [a]", "", 6, "must be a path", "data/"),
    ("checkpoint: ck", "checkpoint: ''", "", 6, "'checkpoint' is missing", "add"),
    ("checkpoint: ck\n", "", "", 1, "'checkpoint' is missing", "add"),
    ("", "", "chekpoint: x\n", 7, "unknown key 'chekpoint'", "'checkpoint'"),
    ("", "", "mode: [append]\n", 7, "['append']", "'append'"),
    ("", "", "mode: apend\n", 7, "apend", "'append'"),
    ("", "", "require: exactly once\n", 7, "exactly once", "exactly-once"),
    ("", "", "steps: {sql: x}\n", 7, "must be a list", "- "),
    ("", "", "steps:\n  - sql: select 1\n    dedupe: x\n", 8, "one key", "write one of"),
    ("", "", "steps:\n  -\n", 8, "one key", "write one of"),
    ("", "", "steps:\n  - sql:\n", 8, "sql.query is missing", "query"),
    ("", "", "steps:\n  - sql: 1\n", 8, "sql.query must be text", "quotes"),
    ("", "", "steps:\n  - sql: ''\n", 8, "sql.query must not be empty", ""),
    ("", "", "steps:\n  - dedupe: []\n", 8, "dedupe.keys must not be empty", ""),
    ("", "", "steps:\n  - python: f\n", 8, "python.function", "module:function"),
    ("", "", "steps:\n  - _parsing: {}\n", 8, "unknown step '_parsing'", "'parse'"),
    ("", "", "steps:\n  - watermark: 10 minutes\n", 8, "options by name", "column, delay, late"),
    ("", "", "steps:\n  - watermark:\n      column: t\n      delay: soon\n", 10, "'soon' is not a length of time", ""),
    ("", "", "steps:\n  - parse: {format: json, schema: '{\"type'}\n", 8, "begins like JSON", ""),
    ("", "", "steps:\n  - parse:\n      format: json\n      schema: {type: string}\n", 8, "object", ""),
    ("", "", "steps:\n  - parse: {format: avro, schema: a int}\n", 8, "avro needs its schema as JSON", ""),
    ("", "", "spark: 4\n", 7, "settings by name", "spark."),
    ("", "", "spark: {shuffle: 4}\n", 7, "'shuffle' is not a Spark setting", "spark.shuffle"),
    ("", "", "spark: {spark.x: null}\n", 7, "spark.x has no value", ""),
    ("", "", "spark:\n  spark.y: 1\n  spark.x: [1]\n", 9, "spark.x has no value", ""),
    ("topic: orders", "topic: 123", "", 3, "kafka.topic must be text", "quotes"),
    ("topic: orders", "topic: ''", "", 3, "either topic or pattern", ""),
    ("topic: orders", "topic: ','", "", 3, "either topic or pattern", ""),
    ("topic: orders", "topic: a, pattern: b", "", 3, "either topic or pattern", ""),
    ("topic: orders", "topic: a, start: newest", "", 3, "'earliest' or 'latest'", "earliest"),
    ("topic: orders", "topic: a, start: {a: {0: x}}", "", 3, "kafka.start.a.0 must be a whole number", ""),
    ("topic: orders", "topic: a, max_records_per_batch: 0", "", 3, "must be greater than 0", ""),
    ("topic: orders", "topic: a, headers: maybe", "", 3, "kafka.headers must be true or false", ""),
    ("topic: orders", "topic: a, protocol: SASL_SSL", "", 3, "needs username and password", ""),
    ("topic: orders", "topic: a, options: {x: [1]}", "", 3, "kafka.options.x must be text", ""),
    ("topic: orders", "topic: a, options: [x]", "", 3, "kafka.options must be keys with values", ""),
    ('servers: "localhost:9092", ', "", "", 3, "kafka.servers is missing", "add `servers:`"),
    ("kafka:", "kafak:", "", 3, "unknown source 'kafak'", "'kafka'"),
    ("delta: {path: out}", "delta: {path: ''}", "", 5, "delta.path must not be empty", ""),
    ("delta: {path: out}", "delta: {}", "", 5, "delta.path is missing", "path"),
    ("delta: {path: out}", "delta: {path: out, partition_by: {a: 1}}", "", 5, "must be a list", "[one, two]"),
    ("delta: {path: out}", "delta: {pth: out}", "", 5, "delta has no option 'pth'", "'path'"),
    ("delta: {path: out}", "noop: {x: 1}", "", 5, "noop has no option 'x'", "remove"),
    ("delta: {path: out}", "iceberg: {table: a.b, catalog: lake}", "", 5, "iceberg.catalog must be keys", ""),
    ("delta: {path: out}", "iceberg: {table: a.b, catalog: {typ: rest}}", "", 5, "has no option 'typ'", "'type'"),
    (
        "delta: {path: out}",
        "iceberg:\n    table: a.b\n    catalog:\n      type: hadop\n      warehouse: w",
        "", 8, "iceberg.catalog.type must be 'hadoop'", "",
    ),
    ("delta: {path: out}", "iceberg:\n    table: a.b\n    catalog: {type: jdbc}", "", 7, "needs a warehouse", ""),
    ("delta: {path: out}", "files: {path: x}", "", 5, "unknown sink 'files'", ""),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "add", "line", "what", "fix"), CASES)
def test_a_mistake_is_named_with_its_line_and_cure(
    write: Callable[..., Path], old: str, new: str, add: str, line: int, what: str, fix: str
) -> None:
    error = refused(write(old, new, add=add))
    assert error.line == line
    assert what in error.what
    assert fix in error.fix
    assert "pydantic" not in str(error)
    assert "Input should" not in str(error)


@pytest.mark.parametrize("text", ["~nobody-of-that-name/x", '"a\\0b"'])
@pytest.mark.parametrize(("old", "line"), [("checkpoint: ck", 6), ("path: out", 5)])
def test_a_path_that_can_t_be_is_told(write: Callable[..., Path], old: str, line: int, text: str) -> None:
    error = refused(write(old, f"{old.partition(':')[0]}: {text}"))
    assert error.line == line
    assert "can't be used" in error.what


@pytest.mark.parametrize("text", ["- a\n", "hello\n", "12\n"])
def test_a_file_that_is_no_mapping_is_told(write: Callable[..., Path], text: str) -> None:
    assert "holds no keys" in refused(write(text=text)).what


def test_a_folder_or_another_encoding_is_told(tmp_path: Path, write: Callable[..., Path]) -> None:
    assert "can't be read" in refused(tmp_path).what
    file = write()
    file.write_bytes(file.read_text().encode("utf-16"))
    assert "UTF-8" in refused(file).why
