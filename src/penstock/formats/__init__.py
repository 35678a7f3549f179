"""The formats that Penstock adds to Spark, as Python data sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock import plugins

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> tuple[str, ...]:
    """Register the data source of every plug-in that has one; returns their names."""
    registered = []
    for folder in ("sources", "sinks"):
        for name in plugins.names(folder):
            make = getattr(plugins.load(folder, name), "data_source", None)
            if make:
                data_source = make()
                spark.dataSource.register(data_source)
                registered.append(data_source.name())
    return tuple(dict.fromkeys(registered))
