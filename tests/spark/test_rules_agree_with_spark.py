"""What the file's reader refuses, Spark refuses too, and what it lets pass, Spark starts."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from penstock.engine import build
from penstock.errors import SpecError
from penstock.spec import rules
from penstock.spec.load import load
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
    "window": f"[{WATERMARK}, {{sql: \"select window(timestamp, '1 minute') as w, count(*) as n from input group by 1\"}}]",
    "dedupe": f"[{WATERMARK}, {{dedupe: value}}]",
    "dedupe for ever": "[{dedupe: value}]",
    "distinct": "[{sql: select distinct value from input}]",
    "window function name in text": "[{sql: \"select 'count(*) group by' as t, value from input\"}]",
    "two watermarks": f"[{WATERMARK}, {WATERMARK}]",
}


def refused_by_spark(made: Any, spark: Any, trigger: Trigger) -> str:
    """Why Spark refuses it, or an empty string once it has started."""
    from pyspark.errors import PySparkException

    try:
        built = build.build(made, spark)
        query = build.writer(made, built, trigger).start()
    except (SpecError, PySparkException) as error:
        return str(error)
    query.stop()
    failed = query.exception()
    return str(failed) if failed and "nterrupt" not in str(failed) else ""


@pytest.mark.parametrize(("steps", "mode"), list(itertools.product(STEPS, ("append", "update", "complete"))))
def test_refused_when_read_is_refused_by_spark_and_the_other_way_round(
    steps: str, mode: str, write: Callable[..., Any], spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"name: t\nsource: {{rate: {{}}}}\nsink: {{noop: {{}}}}\nsteps: {STEPS[steps]}\ncheckpoint: ck\nrequire: at-most-once\n"
    file = write(f"{text}mode: {mode}\n")
    ours = ""
    try:
        made = load(file)
    except SpecError as error:
        ours = str(error)
        monkeypatch.setattr(rules, "check", lambda _pipeline: None)
        made = load(file)
    theirs = refused_by_spark(made, spark, Trigger("once"))
    assert bool(ours) == bool(theirs), f"Penstock: {ours or 'lets it pass'}\nSpark: {theirs or 'starts it'}"


@pytest.mark.parametrize("steps", STEPS)
def test_continuous_takes_only_what_spark_takes(
    steps: str, write: Callable[..., Any], spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"name: t\nsource: {{rate: {{}}}}\nsink: {{noop: {{}}}}\nsteps: {STEPS[steps]}\ncheckpoint: ck\nrequire: at-most-once\n"
    file = write(f"{text}mode: update\ntrigger: {{continuous: 1 second}}\n")
    ours = ""
    try:
        made = load(file)
    except SpecError as error:
        ours = str(error)
        monkeypatch.setattr(rules, "check", lambda _pipeline: None)
        made = load(file)
    theirs = refused_by_spark(made, spark, made.trigger)
    assert bool(ours) == bool(theirs), f"Penstock: {ours or 'lets it pass'}\nSpark: {theirs or 'starts it'}"


@pytest.mark.parametrize("sink", ["delta", "parquet"])
def test_continuous_is_refused_for_sinks_that_only_do_batches(
    sink: str, write: Callable[..., Any], spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"name: t\nsource: {{rate: {{}}}}\nsink: {{{sink}: {{path: out}}}}\ncheckpoint: ck\nrequire: at-most-once\n"
    file = write(f"{text}trigger: {{continuous: 1 second}}\n")
    with pytest.raises(SpecError, match="does not work with sink"):
        load(file)
    monkeypatch.setattr(rules, "check", lambda _pipeline: None)
    assert refused_by_spark(load(file), spark, Trigger("continuous", "1 second"))


def test_real_time_is_taken_for_kafka_to_console_and_refused_elsewhere(
    write: Callable[..., Any], spark: Any, broker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock.cluster.kafka_topics import create_topic

    create_topic(broker.bootstrap, name="real_time", partitions=1)
    text = "name: t\nsource: {kafka: {servers: SERVERS, topic: real_time}}\ncheckpoint: ck\nrequire: at-most-once\nmode: update\n"
    text = text.replace("SERVERS", f"'{broker.bootstrap}'") + "trigger: {real_time: 5 minutes}\n"
    assert not refused_by_spark(load(write(text + "sink: {console: {}}\n")), spark, Trigger("real_time", "5 minutes"))
    with pytest.raises(SpecError, match="real_time does not work with sink"):
        load(write(text + "sink: {noop: {}}\n"))
    monkeypatch.setattr(rules, "check", lambda _pipeline: None)
    bad = replace(load(write(text + "sink: {noop: {}}\n")), checkpoint="/nowhere")
    assert refused_by_spark(replace(bad, checkpoint=str(write("", "x").parent / "ck2")), spark, bad.trigger)
