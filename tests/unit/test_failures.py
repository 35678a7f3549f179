"""Spark's exception texts become the right error, retryable or not."""

from __future__ import annotations

import pytest

from penstock.engine.failures import analysis_message, explain_failure, root_cause
from penstock.errors import Fenced, RetryableRunError, RunError

FAILED = "[STREAM_FAILED] Query [id = 1b5f7d0c-0000, runId = 77aa-0000] terminated with exception: "
STATE = " SQLSTATE: XXKST\n=== Streaming Query ===\nIdentifier: orders [id = 1b5f]"

TEXTS = {
    "fenced": (
        f"{FAILED}PENSTOCK_FENCED: /ck.penstock/epochs/00000002.json is there{STATE}",
        Fenced,
        "replaced",
    ),
    "topic_gone": (
        f"{FAILED}org.apache.kafka.common.errors.UnknownTopicOrPartitionException: This server does not host this "
        f"topic-partition.{STATE}",
        RunError,
        "topic is no longer there",
    ),
    "data_loss": (
        f"{FAILED}[KAFKA_DATA_LOSS.START_OFFSET_RESET] Some data may have been lost because they are not available in "
        f"Kafka any more; Partition events-0's offset was changed from 900 to 0. The operation timed out.{STATE}",
        RunError,
        "records that were not read yet are gone",
    ),
    "partitions_gone": (
        f"{FAILED}Set(events-2) are gone. Kafka option 'kafka.group.id' has been set. Some data may have been missed. "
        f"Some data may have been lost because they are not available in Kafka any more{STATE}",
        RunError,
        "records that were not read yet are gone",
    ),
    "two_queries": (
        f"{FAILED}[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log. Multiple streaming jobs detected for "
        f"41. Please make sure only one streaming job runs on a specific checkpoint location at a time.{STATE}",
        RunError,
        "another query writes",
    ),
    "disk_full": (
        f"{FAILED}Job aborted due to stage failure\nCaused by: java.io.IOException: No space left on device\n"
        f"\tat java.base/sun.nio.ch.FileDispatcherImpl.write0(Native Method){STATE}",
        RunError,
        "disk is full",
    ),
    "torn_log": (f"{FAILED}Incomplete log file in the offset commit log{STATE}", RunError, "checkpoint can't be read"),
    "state_changed": (
        f"{FAILED}[STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA] Streaming stateful operator name does not "
        f"match with the operator in state metadata.{STATE}",
        RunError,
        "state in the checkpoint does not fit",
    ),
    "memory": (f"{FAILED}java.lang.OutOfMemoryError: Java heap space{STATE}", RunError, "out of memory"),
    "denied": (
        f"{FAILED}java.nio.file.AccessDeniedException: s3a://b/ck: getFileStatus: Access Denied (Status Code: 403)",
        RunError,
        "access was denied",
    ),
    "broker_away": (
        f"{FAILED}org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node assignment. Call: "
        f"describeTopics{STATE}",
        RetryableRunError,
        "did not answer",
    ),
    "partition_unknown": (
        "org.apache.kafka.common.errors.TimeoutException: Timeout of 60000ms expired before the position for partition "
        "events-0 could be determined",
        RetryableRunError,
        "did not answer",
    ),
    "refused": (
        f"{FAILED}Job aborted\nCaused by: java.net.ConnectException: Connection refused\n\tat x.y.Z(A.java:1)",
        RetryableRunError,
        "did not answer",
    ),
    "s3_slow": (
        f"{FAILED}software.amazon.awssdk.services.s3.model.S3Exception: Please reduce your request rate. "
        "(Service: S3, Status Code: 503, Request ID: 1)",
        RetryableRunError,
        "did not answer",
    ),
    "s3_unavailable": (
        f"{FAILED}com.x.AmazonS3Exception: 503 Service Unavailable",
        RetryableRunError,
        "did not answer",
    ),
    "users_own": (
        f"{FAILED}[DIVIDE_BY_ZERO] Division by zero. Use try_divide. SQLSTATE: 22012{STATE}",
        RunError,
        "Division by zero",
    ),
    "number_503": (
        f"{FAILED}java.lang.IllegalStateException: row 150342 has 503 columns{STATE}",
        RunError,
        "503 columns",
    ),
}


@pytest.mark.parametrize("case", TEXTS)
def test_a_known_text_becomes_its_error(case: str) -> None:
    text, kind, what = TEXTS[case]
    error = explain_failure(text, batch=41)
    assert type(error) is kind
    assert what in error.what
    assert "in batch 41" in error.what
    assert error.retryable is (kind is RetryableRunError)
    assert error.exit_code == 1
    assert error.why
    assert error.fix
    for noise in ("runId", "\tat ", "org.apache", "SQLSTATE", "=== Streaming"):
        assert noise not in str(error)


def test_a_failure_without_a_text_is_still_told() -> None:
    assert "no cause was given" in explain_failure("").what


def test_the_last_cause_is_the_root() -> None:
    text = (
        "org.apache.spark.SparkException: Job aborted\n\tat a.B.c(D.scala:1)\n"
        "Caused by: java.lang.RuntimeException: middle\n\tat x\n"
        "Caused by: java.io.FileNotFoundException: /data/x (Is a directory)\n\tat y\n\t... 3 more"
    )
    assert root_cause(text) == "FileNotFoundException: /data/x (Is a directory)"


def test_a_cause_shows_no_password() -> None:
    text = "java.sql.SQLException: can't connect to jdbc:postgresql://h/db?user=me&password=hunter2"
    assert "hunter2" not in str(explain_failure(text))
    assert "hunter2" not in analysis_message(RuntimeError(text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter with name `usr` cannot be "
            "resolved. Did you mean one of the following? [`user`]. SQLSTATE: 42703; line 2 pos 7;\n'Project ['usr]\n",
            "A column, variable, or function parameter with name `usr` cannot be resolved. "
            "Did you mean one of the following? [`user`]. (line 2 of the query)",
        ),
        (
            "\n[PARSE_SYNTAX_ERROR] Syntax error at or near 'selct'. SQLSTATE: 42601 (line 1, pos 0)\n\n"
            "== SQL ==\nselct",
            "Syntax error at or near 'selct'. (line 1 of the query)",
        ),
    ],
)
def test_what_the_analyser_says_is_one_sentence(text: str, message: str) -> None:
    assert analysis_message(RuntimeError(text)) == message
