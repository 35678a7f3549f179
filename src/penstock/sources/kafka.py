"""Kafka topics, read with Spark's own connector."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, SecretStr, model_validator

from penstock.errors import ServiceError, require
from penstock.guarantee import Guarantee, at_most, exactly
from penstock.plugins import Options
from penstock.sources import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PREFLIGHT_TIMEOUT_S = 15


class Kafka(Source):
    """Records of one or more Kafka topics: key, value, topic, partition, offset, timestamp (and headers).

    A batch is a range of offsets per partition, fixed in the checkpoint before it is read, so a replay reads
    the same records again.
    """

    example: ClassVar[str] = 'kafka: {servers: "${env:KAFKA}", topic: events, start: earliest}'
    continuous: ClassVar[bool] = True
    real_time: ClassVar[bool] = True

    servers: Annotated[str, Field(min_length=1, description="Bootstrap servers, host:port separated by commas.")]
    topic: Annotated[str | None, Field(description="One topic, or several separated by commas.")] = None
    pattern: Annotated[str | None, Field(description="A regular expression over topic names, instead of topic.")] = None
    start: Annotated[
        Literal["earliest", "latest"] | dict[str, dict[str, int]],
        Field(
            description="Where a query without a checkpoint begins: earliest, latest, or {topic: {partition: offset}}."
        ),
    ] = "earliest"
    max_records_per_batch: Annotated[int | None, Field(gt=0, description="At most so many records in one batch.")] = (
        None
    )
    headers: Annotated[bool, Field(description="Also read the record headers.")] = False
    fail_on_data_loss: Annotated[
        bool,
        Field(description="Stop when records that were not read yet are gone. Turning it off loses them silently."),
    ] = True
    protocol: Annotated[
        Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"], Field(description="The security protocol.")
    ] = "PLAINTEXT"
    mechanism: Annotated[
        Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"], Field(description="The SASL mechanism.")
    ] = "PLAIN"
    username: Annotated[str | None, Field(description="The SASL user.")] = None
    password: Annotated[SecretStr | None, Field(description="The SASL password, by reference.")] = None
    ca_file: Annotated[str | None, Field(description="A PEM file of the CA that signed the brokers' certificates.")] = (
        None
    )
    options: Options = Field(default_factory=dict, description="Further options of Spark's connector, as they are.")

    @model_validator(mode="after")
    def _one_subscription(self) -> Kafka:
        if bool(self.topics) == bool(self.pattern):
            raise ValueError("give either topic or pattern")
        if self.protocol.startswith("SASL") and not (self.username and self.password):
            raise ValueError(f"{self.protocol} needs username and password")
        return self

    @property
    def jars(self) -> tuple[str, ...]:
        return ("kafka",)

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(name.strip() for name in (self.topic or "").split(",") if name.strip())

    @property
    def start_if_lost(self) -> str:
        return "skips" if self._option("startingOffsets", self.start) == "latest" else "repeats"

    @property
    def guarantee(self) -> Guarantee:
        if str(self._option("failOnDataLoss", self.fail_on_data_loss)).lower() == "false":
            return at_most(
                "failOnDataLoss=false skips records that retention or a recreated topic took away, without an error",
                raise_by="remove fail_on_data_loss: false",
            )
        return exactly("a batch is a fixed range of offsets per partition, and Kafka reads it again as it was")

    def _option(self, name: str, otherwise: Any) -> Any:
        """A free option, which wins over the field; Spark does not tell capital from small letters."""
        given = {key.lower(): value for key, value in self.options.items()}
        return given.get(name.lower(), otherwise)

    def read(self, spark: SparkSession) -> DataFrame:
        import json

        reader = spark.readStream.format("kafka").options(**self._security())
        reader = reader.option("kafka.bootstrap.servers", self.servers)
        reader = (
            reader.option("subscribe", ",".join(self.topics))
            if self.topic
            else reader.option("subscribePattern", self.pattern)
        )
        start = self.start if isinstance(self.start, str) else json.dumps(self.start)
        reader = reader.option("startingOffsets", start).option("failOnDataLoss", self.fail_on_data_loss)
        if self.max_records_per_batch:
            reader = reader.option("maxOffsetsPerTrigger", self.max_records_per_batch)
        if self.headers:
            reader = reader.option("includeHeaders", True)
        return reader.options(**self.options).load()

    def preflight(self) -> None:
        metadata = self._metadata()
        missing = [name for name in self.topics if name not in metadata.topics or metadata.topics[name].error]
        if missing:
            from penstock.plugins import did_you_mean

            there = sorted(name for name in metadata.topics if not name.startswith("__"))
            raise ServiceError(
                f"kafka {self.servers}: topic {missing[0]} is not there",
                why="the broker answers, but does not know the topic",
                fix=f"create it first; {did_you_mean(missing[0], there)}" if there else "create it first",
            )

    def identity(self) -> dict[str, Any]:
        """The cluster's id and each topic's: a topic that was recreated has another one."""
        from confluent_kafka import TopicCollection

        admin = self._admin()
        described = admin.describe_topics(TopicCollection(list(self.topics)))
        return {
            "cluster_id": self._metadata().cluster_id,
            "topics": {name: str(future.result().topic_id) for name, future in described.items()},
        }

    def positions(self) -> dict[str, Any]:
        """(earliest, latest) of each partition."""
        from confluent_kafka import TopicPartition
        from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

        admin, metadata = self._admin(), self._metadata()
        spec: Any = OffsetSpec
        partitions = [
            TopicPartition(name, number) for name in self.topics for number in metadata.topics[name].partitions
        ]
        earliest = admin.list_offsets({p: spec.earliest() for p in partitions})
        latest = admin.list_offsets({p: spec.latest() for p in partitions})
        return {
            f"{p.topic}-{p.partition}": (earliest[p].result().offset, latest[p].result().offset) for p in partitions
        }

    def _admin(self) -> Any:
        require("confluent_kafka", extra="kafka", needed_for="looking at the topic before the start")
        from confluent_kafka.admin import AdminClient

        return AdminClient(self._client(), logger=_silent())

    def _metadata(self) -> Any:
        admin = self._admin()
        from confluent_kafka import KafkaException

        try:
            return admin.list_topics(timeout=PREFLIGHT_TIMEOUT_S)
        except KafkaException as error:
            raise ServiceError(
                f"kafka {self.servers}: no broker answers",
                why=str(error.args[0].str() if error.args else error),
                fix="check `servers`, that the broker runs, and that this machine may reach it",
            ) from None

    def _client(self) -> dict[str, Any]:
        """The settings of librdkafka that mean the same as those given to Spark."""
        config: dict[str, Any] = {
            "bootstrap.servers": self.servers,
            "security.protocol": self.protocol,
            "socket.timeout.ms": PREFLIGHT_TIMEOUT_S * 1000,
        }
        if self.protocol.startswith("SASL") and self.password:
            config |= {
                "sasl.mechanism": self.mechanism,
                "sasl.username": self.username,
                "sasl.password": self.password.get_secret_value(),
            }
        if self.ca_file:
            config["ssl.ca.location"] = self.ca_file
        return config

    def _security(self) -> dict[str, str]:
        if self.protocol == "PLAINTEXT":
            return {}
        options: dict[str, str] = {"kafka.security.protocol": self.protocol}
        if self.protocol.startswith("SASL") and self.password:
            module = "plain.PlainLoginModule" if self.mechanism == "PLAIN" else "scram.ScramLoginModule"
            quoted = self.password.get_secret_value().replace("\\", "\\\\").replace('"', '\\"')
            options["kafka.sasl.mechanism"] = self.mechanism
            options["kafka.sasl.jaas.config"] = (
                f'org.apache.kafka.common.security.{module} required username="{self.username}" password="{quoted}";'
            )
        if self.ca_file:
            options |= {"kafka.ssl.truststore.type": "PEM", "kafka.ssl.truststore.location": self.ca_file}
        return options


def _silent() -> Any:
    """A logger for librdkafka, which otherwise writes its own lines to standard error."""
    import logging

    return logging.getLogger("penstock.kafka")
