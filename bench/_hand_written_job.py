"""The job of `first_batch` as a script: `python _hand_written_job.py SERVERS CLASS_PATH`, in the working folder."""

import os
import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

servers, class_path = sys.argv[1:]
os.environ["PYSPARK_PYTHON"] = sys.executable
spark = (
    SparkSession.builder.appName("first_batch")
    .master("local[*]")
    .config("spark.driver.extraClassPath", class_path)
    .config("spark.driver.memory", "1g")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.session.timeZone", "UTC")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .config("spark.databricks.delta.snapshotPartitions", "2")
    .getOrCreate()
)
raw = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", servers)
    .option("subscribe", "small")
    .option("startingOffsets", "earliest")
    .load()
)
schema = "event_id string, user_id string, event_time timestamp, data string"
rows = raw.select(F.from_json(F.col("value").cast("string"), schema).alias("event")).select("event.*")
good = rows.where("event_id is not null and user_id is not null and event_time is not null")
query = (
    good.writeStream.format("delta")
    .option("checkpointLocation", "checkpoint")
    .option("path", "table")
    .trigger(processingTime="1 second")
    .start()
)
query.awaitTermination()
