"""Steps of this pipeline that are easier to say in Python than in SQL."""

from pyspark.sql import DataFrame


def only_known_users(events: DataFrame) -> DataFrame:
    """Leave out events of users that are only there for testing."""
    return events.where("user_id not like 'test%'")
