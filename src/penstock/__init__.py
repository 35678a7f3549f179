"""Penstock: streaming on Spark in which every record counts once, and the tools that prove it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__version__ = "0.1.0"
__all__ = ["__version__", "register"]


def register(spark: SparkSession) -> tuple[str, ...]:
    """Register every format that Penstock adds, so that `format("penstock_…")` works on this session.

    Returns the names that were registered.
    """
    from penstock.formats import register as register_formats

    return register_formats(spark)
