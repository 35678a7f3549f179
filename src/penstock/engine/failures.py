"""Spark's failures as Penstock's errors: what happened, why, what to do, and whether a restart may cure it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.errors import Fenced, PenstockError, RetryableRunError, RunError
from penstock.secrets import hide


@dataclass(frozen=True, slots=True)
class Pattern:
    """A failure that is known by its text."""

    text: re.Pattern[str]
    what: str
    why: str
    fix: str
    error: type[PenstockError] = RunError


def _known(text: str, what: str, why: str, fix: str, *, error: type[PenstockError] = RunError) -> Pattern:
    return Pattern(re.compile(text, re.IGNORECASE | re.DOTALL), what, why, fix, error)


# The first that matches wins: the loud and final ones stand before those that a restart may cure.
PATTERNS = (
    _known(
        r"PENSTOCK_FENCED",
        "this run was replaced",
        "another run took the checkpoint while this one was not answering",
        "nothing to do: the other run goes on from where this one was",
        error=Fenced,
    ),
    _known(
        r"CONCURRENT_STREAM_LOG_UPDATE|Multiple streaming queries are concurrently using",
        "another query writes to the same checkpoint, or its log has a gap",
        "Spark found an entry for this batch that it did not write",
        "stop the other query; if there is none, look at the offsets and commits folders for a missing number",
    ),
    _known(
        r"UnknownTopicOrPartitionException|UNKNOWN_TOPIC_OR_PARTITION|does not host this topic",
        "the topic is no longer there",
        "it was deleted while the query was reading it",
        "restore the topic, or start a new checkpoint for a new one",
    ),
    _known(
        r"KAFKA_DATA_LOSS|Some data may have been lost|offset was changed from|OffsetOutOfRange|"
        r"partitions? .{0,200}(gone|have been missed)|DATA_LOSS",
        "records that were not read yet are gone from the topic",
        "retention removed them, or the topic was recreated under the checkpoint",
        "decide what to do about the lost range; fail_on_data_loss: false would skip it silently",
    ),
    _known(
        r"No space left on device|Disk quota exceeded",
        "the disk is full",
        "a checkpoint, state or sink file could not be written",
        "make room, then start again: nothing of the unfinished batch counts",
    ),
    _known(
        r"(Incomplete log file|Unexpected end-of-input|Malformed log file|Failed to read log file|"
        r"Unsupported log version|Cannot parse offset)",
        "the checkpoint can't be read",
        "a file of its logs is empty, torn or of an unknown version",
        "restore the file that is named below from a copy; don't delete the checkpoint",
    ),
    _known(
        r"STREAMING_STATEFUL_OPERATOR_NOT_MATCH|STATE_STORE_(KEY|VALUE)_SCHEMA_NOT_COMPATIBLE|StateSchemaNotCompatible",
        "the state in the checkpoint does not fit this pipeline",
        "a grouping, a schema or the order of the steps has changed since the checkpoint was made",
        "bring the old steps back, or start a new checkpoint",
    ),
    _known(
        r"OutOfMemoryError",
        "the driver ran out of memory",
        "state or a batch did not fit",
        "give it more (spark.driver.memory), or make batches smaller (max_records_per_batch)",
    ),
    _known(
        r"Permission denied|AccessDenied|Access Denied|403 Forbidden",
        "access was denied",
        "the user of this process may not read or write there",
        "check the rights of the path or bucket that is named below",
    ),
    _known(
        r"TimeoutException|DisconnectException|Connection refused|ConnectException|Connection reset|"
        r"SocketTimeout|UnknownHostException|NoRouteToHost|SlowDown|(?:status|code)\W{0,3}503|503 S|"
        r"Service Unavailable|could not be determined|Broker .{0,80}not available|NotLeaderOrFollower|NetworkException|"
        r"timed out|RetriableException|Please reduce your request rate|ConcurrentAppendException",
        "a service did not answer",
        "the broker or the store was away or slow",
        "Penstock starts the query again from its checkpoint",
        error=RetryableRunError,
    ),
)


def explain_failure(text: str, *, batch: int | None = None) -> PenstockError:
    """The error for a failed query, from the text of Spark's exception."""
    cause = root_cause(text)
    where = f" in batch {batch}" if batch is not None else ""
    for pattern in PATTERNS:
        if pattern.text.search(text):
            return pattern.error(
                f"the query stopped{where}: {pattern.what}",
                why=f"{pattern.why} ({cause})" if cause else pattern.why,
                fix=pattern.fix,
            )
    return RunError(
        f"the query stopped{where}: {cause or 'no cause was given'}",
        why="this failure is not one that Penstock knows",
        fix="the whole stack is in spark.log of the run's folder",
    )


def root_cause(text: str) -> str:
    """The last cause of a Java stack in one line, without class paths, SQLSTATE and stack frames."""
    lines = [line.strip() for line in text.splitlines()]
    causes = [line.removeprefix("Caused by:").strip() for line in lines if line.startswith("Caused by:")]
    line = causes[-1] if causes else next((line for line in lines if line and not line.startswith("at ")), "")
    line = re.sub(r"^\[STREAM_FAILED\] Query \[id = [^]]*\] terminated with exception: ", "", line)
    line = re.sub(r"^(?:[a-z_$][\w$]*\.)+([A-Z][\w$]*):?\s*", r"\1: ", line)
    line = re.sub(r"\s*SQLSTATE: \w+.*$", "", line)
    return hide(line.strip().rstrip(":"))[:400]


def analysis_message(error: Exception) -> str:
    """The first sentence of an AnalysisException or ParseException, with the place in the query if it says."""
    text = str(error)
    first = re.sub(r"^\[[A-Z_0-9.]+\]\s*", "", text.strip())
    first = re.split(r"\s*SQLSTATE:|\n\n|\n== SQL|;\n", first)[0]
    place = re.search(r"\(line (\d+), pos (\d+)\)", text) or re.search(r"line (\d+) pos (\d+)", text)
    suffix = f" (line {place[1]} of the query)" if place and place[1] not in ("0",) else ""
    return hide(" ".join(first.split())) + suffix
