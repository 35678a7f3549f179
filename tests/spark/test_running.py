"""Pipelines from end to end in one session: sources, steps, late and malformed rows, restarts, faults."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock import sample
from penstock.cluster.kafka_topics import create_topic
from penstock.engine import quarantine
from penstock.engine.run import state_folder
from penstock.engine.stopping import StopRequest
from penstock.errors import Fenced, RunError, SpecError, StorageError
from penstock.spec.pipeline import Trigger

pytestmark = pytest.mark.spark

SCHEMA = "'event_id string not null, user_id string not null, event_time timestamp not null, data string'"
PARSE = f"{{parse: {{format: json, schema: {SCHEMA}}}}}"
WATERMARK = "{watermark: {column: event_time, delay: 10 minutes, late: keep}}"
COUNT = "{sql: \"select window(event_time, '1 hour').start as hour, user_id, count(*) as events from input group by window(event_time, '1 hour'), user_id\"}"  # noqa: E501


def put_file(folder: Path, name: str, numbers: range, **options: Any) -> list[sample.Event]:
    """Write the events of these numbers as one file of JSON lines, so that it appears whole."""
    events = [sample.event(number, **options) for number in numbers]
    folder.mkdir(exist_ok=True)
    hidden = folder / f".{name}"
    hidden.write_bytes(b"\n".join(event.value for event in events) + b"\n")
    hidden.rename(folder / name)
    return events


def aside(job: Any, spark: Any) -> dict[str, Counter[str]]:
    kept: dict[str, Counter[str]] = {"malformed": Counter(), "late": Counter()}
    for row in quarantine.read_back(spark, job.quarantine).collect():
        kept[row["kind"]][row["record"]] += 1
    return kept


def test_every_event_is_in_the_table_or_in_the_quarantine(
    pipeline: Callable[..., Any], run: Callable[..., Any], spark: Any, tmp_path: Path
) -> None:
    events = put_file(tmp_path / "in", "1.jsonl", range(2_000))
    job = pipeline("{files: {path: in}}", "{parquet: {path: out}}", steps=f"[{PARSE}]")
    done = run(job)
    rows = Counter(row["event_id"] for row in job.sink.read_back(spark).collect())
    assert rows == Counter(event.event_id for event in events if not event.malformed)
    assert aside(job, spark)["malformed"] == Counter(event.value.decode() for event in events if event.malformed)
    assert done.malformed == sum(event.malformed for event in events)


@pytest.mark.parametrize("forgotten", ["the note", "the note and half of the rows"])
def test_a_crash_between_commit_and_quarantine_loses_no_malformed_row(
    forgotten: str, pipeline: Callable[..., Any], run: Callable[..., Any], spark: Any, tmp_path: Path
) -> None:
    """What a kill leaves behind: batches are committed, but what was looked through is not written down."""
    events = []
    for number in range(3):
        events += put_file(tmp_path / "in", f"{number}.jsonl", range(number * 500, number * 500 + 500))
    job = pipeline("{files: {path: in, max_files_per_batch: 1}}", "{parquet: {path: out}}", steps=f"[{PARSE}]")
    run(job)
    beside = Path(f"{job.checkpoint}.penstock")
    note = json.loads((beside / "quarantine.json").read_text())
    (beside / "quarantine.json").write_text(json.dumps({**note, "through": 0}))
    if "rows" in forgotten:
        shutil.rmtree(beside / "malformed")
        for folder in Path(job.quarantine).glob("malformed/query=*/batch=[12]"):
            shutil.rmtree(folder)
    run(job)
    assert aside(job, spark)["malformed"] == Counter(event.value.decode() for event in events if event.malformed)
    assert json.loads((beside / "quarantine.json").read_text())["through"] == 2


def test_a_new_checkpoint_beside_old_notes_still_quarantines(
    pipeline: Callable[..., Any], run: Callable[..., Any], spark: Any, tmp_path: Path
) -> None:
    events = put_file(tmp_path / "in", "1.jsonl", range(500))
    job = pipeline("{files: {path: in}}", "{noop: {}}", steps=f"[{PARSE}]")
    run(job)
    shutil.rmtree(job.checkpoint)
    again = run(job)
    spoiled = sum(event.malformed for event in events)
    assert spoiled > 0
    assert again.malformed == spoiled
    assert aside(job, spark)["malformed"].total() == 2 * spoiled, "once for each of the two checkpoints"


def test_late_rows_are_kept_once_each_and_the_counts_add_up(
    pipeline: Callable[..., Any], run: Callable[..., Any], spark: Any, tmp_path: Path
) -> None:
    """A hundred minutes a file; what is hours behind comes after its window was closed. Every row is somewhere once."""
    events = []
    for number in range(5):
        events += put_file(tmp_path / "in", f"{number}.jsonl", range(number * 400, number * 400 + 400), step_ms=15_000)
    put_file(tmp_path / "in", "9.jsonl", range(20_000, 20_001), step_ms=15_000)
    job = pipeline(
        "{files: {path: in, max_files_per_batch: 1}}",
        "{parquet: {path: out}}",
        steps=f"[{PARSE}, {WATERMARK}, {COUNT}]",
    )
    done = run(job)
    kept = aside(job, spark)
    late = Counter(json.loads(record)["event_id"] for record in kept["late"].elements())
    assert late.total() == done.late > 0
    assert max(late.values()) == 1
    good = [event for event in events if not event.malformed]
    expected = Counter((event.hour.timestamp(), event.user_id) for event in good if event.event_id not in late)
    rows = job.sink.read_back(spark).collect()
    assert Counter({(row["hour"].timestamp(), row["user_id"]): row["events"] for row in rows}) == expected
    assert [finding.rule for finding in done.findings] in ([], ["watermark_too_short"])


def test_late_rows_are_found_behind_a_group_that_has_no_name(
    pipeline: Callable[..., Any], run: Callable[..., Any], tmp_path: Path
) -> None:
    for number in range(5):
        put_file(tmp_path / "in", f"{number}.jsonl", range(number * 200, number * 200 + 200), step_ms=30_000)
    count = (
        '{sql: "select count(*) as events from input '
        "group by substring(user_id, 5, 1), window(event_time, '1 hour')\"}"
    )
    job = pipeline(
        "{files: {path: in, max_files_per_batch: 1}}", "{noop: {}}", steps=f"[{PARSE}, {WATERMARK}, {count}]"
    )
    assert run(job).late > 0


def test_spark_drops_exactly_the_rows_that_we_call_late(
    pipeline: Callable[..., Any], run: Callable[..., Any], spark: Any, tmp_path: Path
) -> None:
    """For dedupe Spark counts rows and not groups, so its own count must equal ours."""
    for number in range(5):
        put_file(tmp_path / "in", f"{number}.jsonl", range(number * 400, number * 400 + 400), step_ms=15_000)
    job = pipeline(
        "{files: {path: in, max_files_per_batch: 1}}",
        "{noop: {}}",
        steps=f"[{PARSE}, {WATERMARK}, {{dedupe: event_id}}]",
    )
    done = run(job)
    by_spark = sum(event["late"] for event in _events(job) if event["event"] == "batch")
    assert by_spark == done.late > 0


def test_dedupe_keeps_the_first_of_each_key_across_batches_and_restarts(
    pipeline: Callable[..., Any], run: Callable[..., Any], spark: Any, tmp_path: Path
) -> None:
    job = pipeline(
        "{files: {path: in, max_files_per_batch: 1}}",
        "{parquet: {path: out}}",
        steps=f"[{PARSE}, {{watermark: {{column: event_time, delay: 10 days}}}}, {{dedupe: event_id}}]",
    )
    events = put_file(tmp_path / "in", "1.jsonl", range(300))
    put_file(tmp_path / "in", "2.jsonl", range(200, 400))
    run(job)
    put_file(tmp_path / "in", "3.jsonl", range(400))
    run(job)
    events = [sample.event(number) for number in range(400)]
    rows = Counter(row["event_id"] for row in job.sink.read_back(spark).collect())
    assert rows == Counter(event.event_id for event in events if not event.malformed)


def test_a_python_step_is_found_beside_the_file(
    pipeline: Callable[..., Any], run: Callable[..., Any], spark: Any, tmp_path: Path
) -> None:
    (tmp_path / "own_steps.py").write_text("def upper(df):\n    return df.selectExpr('upper(value) as value')\n")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("a\nb\n")
    job = pipeline("{files: {path: in}}", "{parquet: {path: out}}", steps="[{python: 'own_steps:upper'}]")
    run(job)
    assert sorted(row["value"] for row in job.sink.read_back(spark).collect()) == ["A", "B"]


def test_the_events_source_makes_each_event_once_over_restarts(
    pipeline: Callable[..., Any], run: Callable[..., Any], spark: Any
) -> None:
    job = pipeline("{events: {total: 700, per_batch: 300}}", "{parquet: {path: out}}")
    for _ in range(4):
        run(job, trigger="once")
    offsets = Counter(row["offset"] for row in job.sink.read_back(spark).collect())
    assert offsets == Counter(range(700))


def test_folders_show_any_reader_whole_batches_once(
    pipeline: Callable[..., Any], run: Callable[..., Any], tmp_path: Path
) -> None:
    """What a killed attempt left behind is seen by nobody and cleared away; a replayed batch is left out."""
    import pyarrow.dataset

    for number in range(2):
        put_file(tmp_path / "in", f"{number}.jsonl", range(number * 100, number * 100 + 100))
    job = pipeline("{files: {path: in, max_files_per_batch: 1}}", "{folders: {path: out}}", steps=f"[{PARSE}]")
    run(job)
    query = json.loads((Path(job.checkpoint) / "metadata").read_text())["id"]
    leftover = tmp_path / "out" / "_staging" / query / "part-00000-dead.parquet"
    leftover.parent.mkdir(parents=True)
    shutil.copy(next((tmp_path / "out").glob("query=*/batch=1/*.parquet")), leftover)
    for file in (Path(job.checkpoint) / "commits").glob("*1*"):
        file.unlink()
    assert run(job).batches == 1, "the last batch is replayed"
    rows = pyarrow.dataset.dataset(tmp_path / "out").to_table(columns=["event_id"]).to_pylist()
    expected = Counter(e.event_id for e in map(sample.event, range(200)) if not e.malformed)
    assert Counter(row["event_id"] for row in rows) == expected
    assert not leftover.exists()


def test_plain_pyspark_reads_and_writes_by_format_alone(spark: Any, tmp_path: Path) -> None:
    import penstock

    assert {"penstock_events", "penstock_folders"} <= set(penstock.register(spark))
    query = (
        spark.readStream.format("penstock_events")
        .option("total", 500)
        .option("per_batch", 200)
        .load()
        .writeStream.format("penstock_folders")
        .option("path", str(tmp_path / "out"))
        .option("checkpointLocation", str(tmp_path / "ck"))
        .start()
    )
    query.processAllAvailable()
    query.stop()
    numbers = Counter(row["offset"] for row in spark.read.parquet(str(tmp_path / "out")).collect())
    assert numbers == Counter(range(500))


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_table_that_one_pipeline_writes_is_read_by_the_next(
    kind: str, pipeline: Callable[..., Any], run: Callable[..., Any], spark: Any, tmp_path: Path
) -> None:
    places = {
        "delta": "{delta: {path: table}}",
        "iceberg": "{iceberg: {table: db.t, catalog: "
        "{type: jdbc, uri: 'jdbc:sqlite:cat.db', warehouse: lake, name: chain}}}",
    }
    put_file(tmp_path / "in", "1.jsonl", range(100))
    first = pipeline("{files: {path: in}}", places[kind], steps=f"[{PARSE}]")
    run(first)
    second = pipeline(
        places[kind], "{parquet: {path: out}}", checkpoint="ck2", steps="[{sql: select event_id from input}]"
    )
    run(second)
    put_file(tmp_path / "in", "2.jsonl", range(100, 150))
    run(first)
    run(second)
    rows = Counter(row["event_id"] for row in second.sink.read_back(spark).collect())
    assert rows == Counter(e.event_id for e in map(sample.event, range(150)) if not e.malformed)


def test_kafka_is_read_to_its_end_and_the_broker_may_come_and_go(
    pipeline: Callable[..., Any], run: Callable[..., Any], spark: Any, broker: Any
) -> None:
    """The broker is killed while the query runs and comes back: the query restarts itself and loses nothing."""
    from penstock.demo import send

    create_topic(broker.bootstrap, name="away", partitions=2)
    records = [(str(n).encode(), sample.event(n).value) for n in range(300)]
    send(broker.bootstrap, records, topic="away")
    job = pipeline(
        f"{{kafka: {{servers: '{broker.bootstrap}', topic: away, options: {{kafka.default.api.timeout.ms: 3000, "
        "kafka.request.timeout.ms: 2000, fetchOffset.numRetries: 1}}}",
        "{parquet: {path: out}}",
        steps=f"[{PARSE}]",
    )
    stop = StopRequest()
    outcome: list[Any] = []
    thread = threading.Thread(
        target=lambda: outcome.append(run(job, trigger=Trigger("every", "200 milliseconds"), stop=stop))
    )
    thread.start()

    def rows() -> int:
        return int(job.sink.read_back(spark).count()) if (Path(job.sink.path) / "_spark_metadata" / "0").exists() else 0

    good = sum(not sample.event(n).malformed for n in range(300))
    _until(lambda: rows() == good)
    broker.kill()
    _until(lambda: any(e["event"] == "restarting" for e in _events(job)))
    broker.start()
    send(broker.bootstrap, [(str(n).encode(), sample.event(n).value) for n in range(300, 600)], topic="away")
    good = sum(not sample.event(n).malformed for n in range(600))
    _until(lambda: rows() == good)
    stop.ask()
    thread.join(60)
    assert outcome[0].restarts >= 1
    assert outcome[0].stopped
    seen = Counter(row["event_id"] for row in job.sink.read_back(spark).collect())
    assert seen == Counter(e.event_id for e in map(sample.event, range(600)) if not e.malformed)


def test_a_stop_finishes_the_batch_under_way(
    pipeline: Callable[..., Any], run: Callable[..., Any], spark: Any, tmp_path: Path
) -> None:
    (tmp_path / "slow_steps.py").write_text(
        "import time\n"
        "def slow(df):\n"
        "    def wait(rows):\n"
        "        for batch in rows:\n"
        "            time.sleep(3)\n"
        "            yield batch\n"
        "    return df.mapInPandas(wait, df.schema)\n"
    )
    put_file(tmp_path / "in", "1.jsonl", range(10))
    job = pipeline("{files: {path: in}}", "{parquet: {path: out}}", steps="[{python: 'slow_steps:slow'}]")
    stop = StopRequest()
    outcome: list[Any] = []
    thread = threading.Thread(target=lambda: outcome.append(run(job, trigger=Trigger("every", "1 second"), stop=stop)))
    thread.start()
    planned, committed = Path(job.checkpoint) / "offsets" / "0", Path(job.checkpoint) / "commits" / "0"
    _until(planned.exists)
    assert not committed.exists()
    stop.ask()
    thread.join(60)
    assert committed.exists(), "the batch that was under way is committed"
    assert outcome[0].stopped
    assert job.sink.read_back(spark).count() == 10


def test_a_replaced_run_stops_before_it_writes(
    pipeline: Callable[..., Any], run: Callable[..., Any], tmp_path: Path
) -> None:
    from penstock.engine.fence import Fence

    put_file(tmp_path / "in", "1.jsonl", range(10))
    job = pipeline("{files: {path: in}}", "{parquet: {path: out}}")
    failure: list[Exception] = []

    def first() -> None:
        try:
            run(job, trigger=Trigger("every", "500 milliseconds"))
        except Exception as error:
            failure.append(error)

    thread = threading.Thread(target=first)
    thread.start()
    _until((Path(job.checkpoint) / "commits" / "0").exists)
    taken = Fence.claim(job.checkpoint, pipeline="other", take_over=True)
    put_file(tmp_path / "in", "2.jsonl", range(10, 20))
    thread.join(60)
    assert isinstance(failure[0], Fenced)
    assert not (Path(job.checkpoint) / "commits" / "1").exists()
    taken.check()


def test_a_topic_that_can_not_be_read_at_all_is_an_error_and_nothing_is_lost(
    pipeline: Callable[..., Any], run: Callable[..., Any], spark: Any, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("id;name\n" * 50)
    job = pipeline("{files: {path: in}}", "{parquet: {path: out}}", steps=f"[{PARSE}]")
    with pytest.raises(RunError, match="every one of the 50 records") as caught:
        run(job)
    assert "not valid JSON" in caught.value.why
    assert aside(job, spark)["malformed"].total() == 50


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        ("[{sql: selec value from input}]", "step 1 sql"),
        ("[{sql: select valu from input}]", "valu"),
        ("[{sql: select value from inputs}]", "inputs"),
        ("[{parse: {format: json, schema: 'id strin'}}]", "step 1 parse"),
        ("[{parse: {format: json, schema: 'id string', column: payload}}]", "payload"),
        ("[{watermark: {column: tim, delay: 1 minute}}]", "tim"),
        ("[{dedupe: idd}]", "idd"),
        ("[{python: 'no_such_module:f'}]", "no_such_module"),
    ],
)
def test_what_spark_can_not_analyse_names_the_line_and_writes_nothing(
    steps: str, says: str, pipeline: Callable[..., Any], run: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    job = pipeline("{files: {path: in}}", "{parquet: {path: out}}", steps=steps)
    with pytest.raises(SpecError) as caught:
        run(job)
    assert says in caught.value.what
    assert f"{job.file}:3: " in caught.value.what
    assert not Path(job.checkpoint).exists()
    assert not Path(job.sink.path).exists()


def test_a_torn_offset_file_is_told_before_the_start(
    pipeline: Callable[..., Any], run: Callable[..., Any], tmp_path: Path
) -> None:
    put_file(tmp_path / "in", "1.jsonl", range(10))
    job = pipeline("{files: {path: in}}", "{noop: {}}")
    run(job)
    (Path(job.checkpoint) / "offsets" / "0").write_bytes(b"")
    with pytest.raises(StorageError, match="not a whole offset log file"):
        run(job)


def _events(job: Any) -> list[dict[str, Any]]:
    files = sorted((state_folder(job) / "events").glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def _until(done: Callable[[], bool], timeout_s: float = 90) -> None:
    deadline = time.monotonic() + timeout_s
    while not done():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)
