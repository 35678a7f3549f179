"""Every sink, found by its file name: what it declares is what a replay shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock import plugins
from penstock.engine import build
from penstock.guarantee import Level
from penstock.spec import rules
from penstock.spec.pipeline import MODES, Trigger

pytestmark = pytest.mark.spark

# How a test writes each sink; a new sink that is not named here is tried with only a path.
SPELLED = {
    "iceberg": "{iceberg: {table: db.t, catalog: {type: hadoop, warehouse: lake, name: lake_NAME}}}",
    "console": "{console: {rows: 1}}",
    "noop": "{noop: {}}",
}
FILES = 4
ROWS_PER_FILE = 25


def unique(folder: Path) -> str:
    """A name of its own for a test's catalog, since the session keeps those of earlier tests."""
    return f"{abs(hash(folder)) % 10**8}"


def spelled(name: str, unique: str) -> str:
    return SPELLED.get(name, f"{{{name}: {{path: out}}}}").replace("NAME", unique)


@pytest.fixture(params=plugins.names("sinks"))
def sink(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def job(sink: str, pipeline: Callable[..., Any], tmp_path: Path) -> Any:
    """Four files of JSON lines, one file a batch, into the sink."""
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(FILES):
        lines = [f'{{"id": {number * ROWS_PER_FILE + row}, "text": "row {row}"}}' for row in range(ROWS_PER_FILE)]
        (folder / f"{number}.json").write_text("\n".join(lines) + "\n")
    return pipeline(
        "{files: {path: in, max_files_per_batch: 1}}",
        spelled(sink, unique(tmp_path)),
        steps="[{parse: {format: json, schema: 'id bigint not null, text string'}}]",
    )


def ids(job: Any, spark: Any) -> Counter[int]:
    return Counter(row["id"] for row in job.sink.read_back(spark).select("id").collect())


def forget_last_commit(job: Any) -> int:
    """Make the checkpoint look as after a crash between the sink's commit and the commit log."""
    commits = Path(job.checkpoint) / "commits"
    last = max(int(file.name) for file in commits.iterdir() if file.name.isdigit())
    (commits / str(last)).unlink()
    (commits / f".{last}.crc").unlink(missing_ok=True)
    return last


def test_every_row_arrives_once_over_several_batches(job: Any, run: Callable[..., Any], spark: Any) -> None:
    done = run(job)
    assert done.batches == FILES
    assert done.rows == FILES * ROWS_PER_FILE
    if job.sink.keeps:
        assert ids(job, spark) == Counter(range(FILES * ROWS_PER_FILE))


def test_replaying_the_last_batch_shows_what_is_declared(job: Any, run: Callable[..., Any], spark: Any) -> None:
    run(job)
    last = forget_last_commit(job)
    again = run(job)
    assert again.batches == 1, f"batch {last} was not replayed, so the test shows nothing"
    if not job.sink.keeps:
        assert job.sink.guarantee.level < Level.EXACTLY_ONCE, "a sink that can't be read back can't prove more"
        return
    seen = ids(job, spark)
    lost = Counter(range(FILES * ROWS_PER_FILE)) - seen
    doubled = seen - Counter(range(FILES * ROWS_PER_FILE))
    assert not lost
    assert bool(doubled) == (job.sink.guarantee.level < Level.EXACTLY_ONCE)


def test_a_restart_without_news_writes_nothing(job: Any, run: Callable[..., Any], spark: Any) -> None:
    run(job)
    assert run(job).rows == 0
    if job.sink.keeps:
        assert ids(job, spark).total() == FILES * ROWS_PER_FILE


def test_edge_values_come_back_as_they_were(
    sink: str, pipeline: Callable[..., Any], run: Callable[..., Any], spark: Any, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    long = "x" * (1 << 20)
    lines = [
        '{"id": 1}',
        '{"id": 9223372036854775807, "text": "🚰"}',
        '{"id": 3, "text": ""}',
        f'{{"id": 4, "text": "{long}"}}',
    ]
    (tmp_path / "in" / "a.json").write_text("\n".join(lines) + "\n")
    job = pipeline(
        "{files: {path: in}}",
        spelled(sink, unique(tmp_path)),
        steps="[{parse: {format: json, schema: 'id bigint not null, text string'}}]",
    )
    run(job)
    if job.sink.keeps:
        rows = {row["id"]: row["text"] for row in job.sink.read_back(spark).collect()}
        assert rows == {1: None, 9223372036854775807: "🚰", 3: "", 4: long}


@pytest.mark.parametrize("mode", MODES)
def test_modes_that_are_declared_are_those_that_spark_takes(
    sink: str, mode: str, pipeline: Callable[..., Any], spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ways: a declared mode starts, another is refused by Spark itself."""
    from pyspark.errors import PySparkException

    monkeypatch.setattr(rules, "check", lambda _pipeline: None)
    made = pipeline(
        "{rate: {rows_per_batch: 5}}",
        spelled(sink, f"{mode}{unique(tmp_path)}"),
        steps="[{watermark: {column: timestamp, delay: 1 second}}, {sql: \"select window(timestamp, '1 hour') as w,"
        ' count(*) as n from input group by 1"}]',
        mode=mode,
    )
    for key, value in made.sink.settings.items():
        if ".catalog.lake" in key:
            spark.conf.set(key, value)
    writer = build.writer(made, build.build(made, spark), Trigger("once"))
    if mode in made.sink.modes:
        query = writer.start()
        query.awaitTermination()
        assert query.exception() is None
    else:
        with pytest.raises(PySparkException):
            writer.start().awaitTermination()
