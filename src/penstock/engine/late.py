"""Late rows: which rows of a batch Spark dropped because their window was closed already.

Spark only counts them, and for an aggregation it counts groups and not rows. Its rule can be applied again:
the first stateful operator drops a row when its window's end (or its event time) is not after the watermark
that the batch before was planned with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MARK = "spark.watermarkDelayMs"
_NAMED = "org.apache.spark.sql.catalyst.expressions.NamedExpression"
_STATEFUL = ("Aggregate", "Deduplicate", "DeduplicateWithinWatermark")


@dataclass(frozen=True, slots=True)
class LateRule:
    """The stream as it comes into the first stateful operator, and the columns that decide whether a row is late."""

    rows: DataFrame
    deadline: str

    def dropped(self, watermark_ms: int) -> DataFrame:
        """The rows that are late against a watermark."""
        from pyspark.sql import functions as F

        return self.rows.where(F.expr(self.deadline) <= F.timestamp_millis(F.lit(watermark_ms)))


def late_rule(frame: DataFrame) -> LateRule | None:
    """How to find the late rows of a stream; None where nothing is dropped for being late."""
    from py4j.java_gateway import is_instance_of
    from pyspark.sql import DataFrame

    gateway: Any = frame.sparkSession.sparkContext._gateway
    analyzed = frame._jdf.queryExecution().analyzed()
    operator = next((node for node in _bottom_up(analyzed) if node.nodeName() in _STATEFUL), None)
    if operator is None:
        return None
    child = operator.children().apply(0)
    keys = operator.groupingExpressions() if operator.nodeName() == "Aggregate" else operator.keys()
    if operator.nodeName() == "DeduplicateWithinWatermark":
        keys = child.output()
    for number in range(keys.size()):
        key = keys.apply(number)
        # `group by user_id % 3` is an expression without a name, and so without a mark.
        if not is_instance_of(gateway, key, _NAMED) or not key.metadata().contains(_MARK):
            continue
        name = str(key.name()).replace("`", "``")
        deadline = f"`{name}`.end" if key.dataType().typeName() == "struct" else f"`{name}`"
        spark: Any = frame.sparkSession
        rows = spark._jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, child)
        return LateRule(DataFrame(rows, spark), deadline)
    return None


def _bottom_up(plan: Any) -> Iterator[Any]:
    children = plan.children()
    for number in range(children.size()):
        yield from _bottom_up(children.apply(number))
    yield plan
