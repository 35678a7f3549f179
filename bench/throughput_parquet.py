"""Rows a second from Kafka through JSON into Parquet: a pipeline file ÷ the same job by hand."""

from __future__ import annotations

from bench._throughput import compare
from bench.harness import Comparison

NEEDS_TOPIC = True


def comparisons() -> list[Comparison]:
    return compare("parquet")
