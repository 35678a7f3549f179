"""What the file's reader refuses, Spark refuses too, and what it lets pass, Spark starts."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from penstock.engine import build
from penstock.errors import SpecError
from penstock.spec import rules
from penstock.spec.pipeline import Trigger

pytestmark = pytest.mark.spark

WATERMARK = "{watermark: {column: timestamp, delay: 1 minute}}"
STEPS = {
    "nothing": "[]",
    "select": "[{sql: select value + 1 as v from input}]",
    "filter with time": "[{sql: select value from input where timestamp < current_timestamp()}]",
    "watermark": f"[{WATERMARK}]",
    "group": "[{sql: 'select value % 3 as k, count(*) as n from input group by 1'}]",
    "global count": "[{sql: 'select count(*) as n from input'}]",
    "window": f"[{WATERMARK}, {{sql: \"select window(timestamp, '1 minute') w, count(*) n from input group by w\"}}]",
    "dedupe": f"[{WATERMARK}, {{dedupe: value}}]",
    "dedupe for ever": "[{dedupe: value}]",
    "distinct": "[{sql: select distinct value from input}]",
    "window function name in text": "[{sql: \"select 'count(*) group by' as t, value from input\"}]",
}


# One batch ends by itself; the others go on until they are stopped.
PATIENCE_S = {"once": 60, "continuous": 3, "real_time": 3}


def refused_by_spark(made: Any, spark: Any, trigger: Trigger, *, start: bool = True) -> str:
    """Why Spark refuses it, or an empty string once it has started."""
    from pyspark.errors import PySparkException

    try:
        built = build.build(made, spark)
        if not start:
            return ""
        query = build.writer(made, built, trigger).start()
        # A refusal may come from the query's own thread, so it gets a moment to speak up.
        query.awaitTermination(PATIENCE_S[trigger.kind])
    except (SpecError, PySparkException) as error:
        return str(error)
    query.stop()
    failed = query.exception()
    return str(failed) if failed else ""


@pytest.fixture
def both(pipeline: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[str, Any]]:
    """Load a pipeline: why Penstock refuses it (or an empty string), and the pipeline all the same."""

    def loaded(*args: Any, **keys: Any) -> tuple[str, Any]:
        try:
            return "", pipeline(*args, **keys)
        except SpecError as error:
            with monkeypatch.context() as patch:
                patch.setattr(rules, "check", lambda _pipeline: None)
                return str(error), pipeline(*args, **keys)

    return loaded


@pytest.mark.parametrize(("steps", "mode"), list(itertools.product(STEPS, ("append", "update", "complete"))))
def test_refused_when_read_is_refused_by_spark_and_the_other_way_round(
    steps: str, mode: str, both: Callable[..., Any], spark: Any
) -> None:
    ours, made = both("{rate: {}}", "{noop: {}}", steps=STEPS[steps], mode=mode)
    theirs = refused_by_spark(made, spark, Trigger("once"))
    assert bool(ours) == bool(theirs), f"Penstock: {ours or 'lets it pass'}\nSpark: {theirs or 'starts it'}"


@pytest.mark.parametrize("steps", STEPS)
def test_continuous_takes_only_what_spark_takes(steps: str, both: Callable[..., Any], spark: Any) -> None:
    ours, made = both("{rate: {}}", "{noop: {}}", steps=STEPS[steps], mode="update", trigger="{continuous: 1 second}")
    # Not started: a continuous query holds a core for each partition until it is stopped.
    theirs = refused_by_spark(made, spark, made.trigger, start=False)
    assert bool(ours) == bool(theirs), f"Penstock: {ours or 'lets it pass'}\nSpark: {theirs or 'starts it'}"


def test_continuous_starts_and_stops(pipeline: Callable[..., Any], spark: Any) -> None:
    made = pipeline("{rate: {partitions: 1}}", "{noop: {}}", trigger="{continuous: 1 second}")
    assert not refused_by_spark(made, spark, made.trigger)


@pytest.mark.parametrize("sink", ["delta", "parquet"])
def test_continuous_is_refused_for_sinks_that_only_do_batches(sink: str, both: Callable[..., Any], spark: Any) -> None:
    ours, made = both("{rate: {}}", f"{{{sink}: {{path: out}}}}", trigger="{continuous: 1 second}")
    assert f"continuous does not work with sink {sink}" in ours
    assert refused_by_spark(made, spark, made.trigger)


@pytest.mark.parametrize(("sink", "taken"), [("console", True), ("noop", False)])
def test_real_time_is_taken_where_spark_takes_it(
    sink: str, taken: bool, both: Callable[..., Any], spark: Any, broker: Any
) -> None:
    from penstock.cluster.kafka_topics import create_topic

    create_topic(broker.bootstrap, name=f"real_time_{sink}", partitions=1)
    source = f"{{kafka: {{servers: '{broker.bootstrap}', topic: real_time_{sink}}}}}"
    ours, made = both(source, f"{{{sink}: {{}}}}", mode="update", trigger="{real_time: 5 minutes}")
    theirs = refused_by_spark(made, spark, made.trigger)
    assert (not ours, not theirs) == (taken, taken), f"Penstock: {ours}\nSpark: {theirs}"
