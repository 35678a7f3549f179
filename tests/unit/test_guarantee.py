"""The guarantee is computed: every part's share, every setting, the part that limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import GuaranteeError
from penstock.guarantee import Guarantee, Level, Share, exactly, weakest
from penstock.sinks import Sink
from penstock.spec import explain as explaining
from penstock.spec.explain import Explanation, demand, explain
from penstock.spec.load import load
from penstock.spec.pipeline import Pipeline


class Strict(Sink):
    """A sink that needs the same rows again, and shows every attempt."""

    needs_determinism: ClassVar[bool] = True
    needs_single_attempts: ClassVar[bool] = True
    async_progress: ClassVar[bool] = True

    @property
    def guarantee(self) -> Guarantee:
        return exactly("made up")

    def attach(self, writer: object) -> object:  # type: ignore[override]
        return writer


def with_strict_sink(pipeline: Pipeline) -> Pipeline:
    return replace(pipeline, sink=Strict())


def share(found: Explanation, part: str) -> Guarantee:
    return next(item.guarantee for item in found.shares if item.part.startswith(part))


@given(levels=st.lists(st.sampled_from(Level), min_size=1))
def test_the_whole_is_as_strong_as_its_weakest_part(levels: list[Level]) -> None:
    shares = [Share(str(number), Guarantee(level, "")) for number, level in enumerate(levels)]
    limit = weakest(shares)
    assert limit.guarantee.level == min(levels)
    assert limit.part == str(levels.index(min(levels)))


@pytest.mark.parametrize("level", Level)
def test_a_level_is_read_as_it_is_written(level: Level) -> None:
    assert Level.parse(level.label) is level


def test_an_unknown_level_lists_those_there_are() -> None:
    with pytest.raises(ValueError, match="at-most-once, at-least-once, exactly-once"):
        Level.parse("once")


def test_the_plain_pipeline_is_exactly_once_in_every_part(write: Callable[..., Path]) -> None:
    found = explain(load(write()))
    assert found.level is Level.EXACTLY_ONCE
    assert [item.part for item in found.shares] == [
        "source kafka",
        "sink delta",
        "checkpoint",
        "trigger every 10 seconds",
    ]
    assert not found.notes or found.notes[0].rule == "checkpoint_in_container"


@pytest.mark.parametrize(
    ("source", "level"),
    [
        ("kafka: {servers: b, topic: t, fail_on_data_loss: false}", Level.AT_MOST_ONCE),
        ("kafka: {servers: b, topic: t, options: {failOnDataLoss: false}}", Level.AT_MOST_ONCE),
        ("kafka: {servers: b, topic: t, options: {FAILONDATALOSS: 'False'}}", Level.AT_MOST_ONCE),
        (
            "kafka: {servers: b, topic: t, fail_on_data_loss: false, options: {failondataloss: true}}",
            Level.EXACTLY_ONCE,
        ),
        ("delta: {path: in, options: {failOnDataLoss: false}}", Level.AT_MOST_ONCE),
        ("delta: {path: in, options: {ignoreChanges: true}}", Level.AT_LEAST_ONCE),
        ("delta: {path: in, options: {ignoreDeletes: true}}", Level.EXACTLY_ONCE),
        ("delta: {path: in}", Level.EXACTLY_ONCE),
        ("files: {path: in}", Level.EXACTLY_ONCE),
        ("files: {path: in, options: {ignoreMissingFiles: true}}", Level.AT_MOST_ONCE),
        ("files: {path: in, options: {ignorecorruptfiles: true}}", Level.AT_MOST_ONCE),
        ("rate:", Level.EXACTLY_ONCE),
        ("events:", Level.EXACTLY_ONCE),
        ("iceberg: {table: a.b, catalog: {type: rest, uri: 'http://h'}}", Level.EXACTLY_ONCE),
        (
            "iceberg: {table: a.b, catalog: {type: rest, uri: 'http://h'}, "
            "options: {Streaming-Skip-Delete-Snapshots: true}}",
            Level.AT_MOST_ONCE,
        ),
    ],
)
def test_a_source_gives_what_its_options_leave(write: Callable[..., Path], source: str, level: Level) -> None:
    file = write('kafka: {servers: "localhost:9092", topic: orders}', source)
    found = explain(load(file))
    assert found.level is level
    if level < Level.EXACTLY_ONCE:
        assert found.limit.part.startswith("source")
        assert found.limit.guarantee.raise_by


@pytest.mark.parametrize(
    ("sink", "level"),
    [
        ("delta: {path: out}", Level.EXACTLY_ONCE),
        ("parquet: {path: out}", Level.EXACTLY_ONCE),
        ("iceberg: {table: a.b, catalog: {type: rest, uri: 'http://h'}}", Level.EXACTLY_ONCE),
        ("console:", Level.AT_LEAST_ONCE),
        ("noop:", Level.AT_MOST_ONCE),
    ],
)
def test_a_sink_gives_what_its_kind_can(write: Callable[..., Path], sink: str, level: Level) -> None:
    assert explain(load(write("delta: {path: out}", sink))).level is level


@pytest.mark.parametrize("step", ["python: m:f", "sql: select uuid() as id, * from input"])
def test_a_nondeterministic_step_matters_where_the_sink_needs_determinism(
    write: Callable[..., Path], step: str
) -> None:
    pipeline = load(write(add=f"steps:\n  - {step}\n"))
    assert explain(pipeline).level is Level.EXACTLY_ONCE
    found = explain(with_strict_sink(pipeline))
    assert found.level is Level.AT_LEAST_ONCE
    assert found.limit.part.startswith("step 1")
    assert "deterministic" in found.limit.guarantee.raise_by


@pytest.mark.parametrize(
    "steps",
    [
        "  - python: m:f\n  - dedupe: id\n",
        "  - watermark: {column: t, delay: 1 minute}\n  - sql: select rand() as r, count(*) from input group by 1\n",
        "  - python: {function: m:f, stateful: true}\n",
        "  - python: m:f\n  - python: {function: m:g, deterministic: true, stateful: true}\n",
    ],
)
def test_a_nondeterministic_step_before_state_limits_any_sink(write: Callable[..., Path], steps: str) -> None:
    found = explain(load(write(add=f"steps:\n{steps}")))
    assert found.level is Level.AT_LEAST_ONCE
    assert found.limit.part.startswith("step")


@pytest.mark.parametrize(
    "steps",
    [
        "  - python: {function: m:f, deterministic: true}\n  - dedupe: id\n",
        "  - dedupe: id\n  - python: m:f\n",
        "  - sql: select current_timestamp() as t from input\n",
    ],
)
def test_a_step_that_replays_alike_is_not_accused(write: Callable[..., Path], steps: str) -> None:
    assert explain(load(write(add=f"steps:\n{steps}"))).level is Level.EXACTLY_ONCE


def test_asynchronous_progress_repeats_batches(write: Callable[..., Path]) -> None:
    pipeline = replace(with_strict_sink(load(write())), spark={"x.asyncProgressTrackingEnabled": "TRUE"})
    found = explain(pipeline)
    assert found.level is Level.AT_LEAST_ONCE
    assert "asyncProgressTracking" in found.limit.part


def test_speculation_counts_where_attempts_show(write: Callable[..., Path]) -> None:
    pipeline = load(write(add="spark: {spark.speculation: true}\n"))
    assert share(explain(pipeline), "setting spark.speculation").level is Level.EXACTLY_ONCE
    assert share(explain(with_strict_sink(pipeline)), "setting spark.speculation").level is Level.AT_LEAST_ONCE


def test_a_checkpoint_manager_that_only_warns_loses_batches(write: Callable[..., Path]) -> None:
    name = "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager"
    found = explain(load(write(add=f"spark: {{spark.sql.streaming.checkpointFileManagerClass: {name}}}\n")))
    assert found.level is Level.AT_MOST_ONCE


@pytest.mark.parametrize(
    ("trigger", "level"),
    [
        ("{every: 1 second}", Level.EXACTLY_ONCE),
        ("once", Level.EXACTLY_ONCE),
        ("available_now", Level.EXACTLY_ONCE),
        ("{continuous: 1 second}", Level.AT_LEAST_ONCE),
        ("{real_time: 5 minutes}", Level.AT_LEAST_ONCE),
    ],
)
def test_a_trigger_gives_what_its_writes_allow(write: Callable[..., Path], trigger: str, level: Level) -> None:
    mode = "update" if "real_time" in trigger else "append"
    found = explain(load(write("delta: {path: out}", "console:", add=f"trigger: {trigger}\nmode: {mode}\n")))
    assert share(found, "trigger").level is level


class TestCheckpoint:
    """A checkpoint that dies with the machine."""

    @pytest.fixture
    def pipeline(self, write: Callable[..., Path]) -> Pipeline:
        return replace(load(write()), file=Path("/home/me/orders.yml"), checkpoint="/home/me/ck")

    @pytest.fixture(autouse=True)
    def _mounts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        kinds = {"/dev/shm": "tmpfs", "/mnt/ram disk": "ramfs"}
        monkeypatch.setattr(
            explaining,
            "_file_system",
            lambda path: next((kind for point, kind in kinds.items() if path.is_relative_to(point)), "ext4"),
        )

    def test_on_disk_it_lasts(self, pipeline: Pipeline) -> None:
        assert explain(pipeline).level is Level.EXACTLY_ONCE

    @pytest.mark.parametrize("place", ["/dev/shm/ck", "/mnt/ram disk/ck", "/tmp/ck", "/var/tmp/x/ck"])
    def test_in_memory_or_a_cleaned_folder_everything_is_read_again(self, pipeline: Pipeline, place: str) -> None:
        found = explain(replace(pipeline, checkpoint=place))
        assert found.level is Level.AT_LEAST_ONCE
        assert found.limit.part == "checkpoint"
        assert "outlives" in found.limit.guarantee.raise_by

    @pytest.mark.parametrize(
        "source",
        [
            "kafka: {servers: b, topic: t, start: latest}",
            "kafka: {servers: b, topic: t, options: {startingoffsets: latest}}",
            "delta: {path: in, options: {startingVersion: latest}}",
        ],
    )
    def test_from_the_newest_record_it_loses_what_came_between(
        self, write: Callable[..., Path], pipeline: Pipeline, source: str
    ) -> None:
        newest = load(write('kafka: {servers: "localhost:9092", topic: orders}', source)).source
        found = explain(replace(pipeline, checkpoint="/dev/shm/ck", source=newest))
        assert found.level is Level.AT_MOST_ONCE

    def test_a_project_that_is_itself_in_tmp_is_left_in_peace(self, pipeline: Pipeline) -> None:
        whole = replace(pipeline, file=Path("/tmp/try/orders.yml"), checkpoint="/tmp/try/ck")
        assert explain(whole).level is Level.EXACTLY_ONCE

    def test_a_local_path_of_a_cluster_is_lost_with_its_machine(self, pipeline: Pipeline) -> None:
        found = explain(replace(pipeline, spark={"spark.master": "yarn"}))
        assert found.level is Level.AT_LEAST_ONCE
        assert "cluster" in found.limit.guarantee.because

    def test_a_bucket_lasts_anywhere(self, pipeline: Pipeline) -> None:
        there = replace(pipeline, checkpoint="s3a://b/ck", spark={"spark.master": "yarn"})
        assert explain(there).level is Level.EXACTLY_ONCE


def test_the_kind_of_file_system_is_that_of_the_nearest_mount(monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = (
        "/dev/a / ext4 rw 0 0\ntmpfs /mnt/ram\\040disk tmpfs rw 0 0\n"
        "tmpfs /run tmpfs rw 0 0\n/dev/b /run/x xfs rw 0 0\n"
    )
    monkeypatch.setattr(Path, "read_text", lambda *_args, **_kwargs: mounts)
    found = [
        explaining._file_system(Path(path)) for path in ("/home/x", "/mnt/ram disk/ck", "/run/y", "/run/x/y", "/runner")
    ]
    assert found == ["ext4", "tmpfs", "tmpfs", "xfs", "ext4"]


@pytest.mark.parametrize("steps", ["  - dedupe: id\n", "  - sql: select count(*) from input\n"])
def test_state_that_grows_for_ever_is_noted(write: Callable[..., Path], steps: str) -> None:
    notes = explain(load(write("delta: {path: out}", "console:", add=f"mode: update\nsteps:\n{steps}"))).notes
    assert notes[0].rule == "state_unbounded"
    assert notes[0].where == "pipeline.yml:8"


def test_below_what_is_required_is_refused_with_the_limit(write: Callable[..., Path]) -> None:
    pipeline = load(write("delta: {path: out}", "console:"))
    with pytest.raises(GuaranteeError) as caught:
        demand(pipeline)
    assert caught.value.exit_code == 1
    assert "gives at-least-once, but requires exactly-once" in caught.value.what
    assert "sink console" in caught.value.why
    assert "require: at-least-once" in caught.value.fix
    assert demand(replace(pipeline, require=Level.AT_LEAST_ONCE)).level is Level.AT_LEAST_ONCE
