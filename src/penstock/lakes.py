"""What the Delta and Iceberg sources and sinks share: session settings and catalogs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from penstock.plugins import Options, Plugin, shown

DELTA_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Delta plans its log replay in 50 tasks by default, which costs more than the batch itself on a small table.
    "spark.databricks.delta.snapshotPartitions": "2",
}
ICEBERG_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"


class OnDelta(Plugin):
    """A part that reads or writes Delta tables."""

    @property
    def jars(self) -> tuple[str, ...]:
        return ("delta",)

    @property
    def settings(self) -> dict[str, str]:
        return DELTA_SETTINGS


class Catalog(BaseModel):
    """An Iceberg catalog."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    name: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", description="The name in SQL.")] = "lake"
    type: Annotated[Literal["hadoop", "jdbc", "rest", "glue"], Field(description="What keeps the table pointers.")]
    warehouse: Annotated[str | None, Field(description="The folder or bucket that holds the tables.")] = None
    uri: Annotated[str | None, Field(description="The catalog's address (jdbc, rest) or endpoint (glue).")] = None
    username: Annotated[str | None, Field(description="The user of a JDBC catalog.")] = None
    password: Annotated[SecretStr | None, Field(description="The password of a JDBC catalog, by reference.")] = None
    token: Annotated[SecretStr | None, Field(description="The bearer token of a REST catalog, by reference.")] = None
    options: Options = Field(default_factory=dict, description="Further catalog properties.")

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        return [(name, shown(value)) for name, value in super().__repr_args__()]

    @model_validator(mode="after")
    def _complete(self) -> Catalog:
        if self.type != "rest" and not self.warehouse:
            raise ValueError(f"a {self.type} catalog needs a warehouse")
        if self.type in ("jdbc", "rest") and not self.uri:
            raise ValueError(f"a {self.type} catalog needs a uri")
        return self


class OnIceberg(Plugin):
    """A part that reads or writes an Iceberg table."""

    table: Annotated[str, Field(min_length=1, description="namespace.table in the catalog.")]
    catalog: Annotated[Catalog, Field(description="Where the table is registered.")]

    @property
    def full_name(self) -> str:
        """The table's name in SQL, with its catalog."""
        return self.table if self.table.startswith(f"{self.catalog.name}.") else f"{self.catalog.name}.{self.table}"

    @property
    def jars(self) -> tuple[str, ...]:
        catalog, groups = self.catalog, ["iceberg"]
        if catalog.type == "jdbc" and (catalog.uri or "").startswith("jdbc:sqlite:"):
            groups.append("sqlite")
        if catalog.type == "glue" or (catalog.warehouse or "").startswith(("s3:", "s3a:")):
            groups.append("iceberg-aws")
        return tuple(groups)

    @property
    def settings(self) -> dict[str, str]:
        return _catalog_settings(self.catalog)


def _catalog_settings(catalog: Catalog) -> dict[str, str]:
    """The session settings that make this catalog known."""
    here = f"spark.sql.catalog.{catalog.name}"
    settings = {
        "spark.sql.extensions": ICEBERG_EXTENSIONS,
        here: "org.apache.iceberg.spark.SparkCatalog",
        f"{here}.type": catalog.type,
    }
    if catalog.warehouse:
        settings[f"{here}.warehouse"] = catalog.warehouse
    if catalog.uri:
        settings[f"{here}.glue.endpoint" if catalog.type == "glue" else f"{here}.uri"] = catalog.uri
    if catalog.username:
        settings[f"{here}.jdbc.user"] = catalog.username
    if catalog.password:
        settings[f"{here}.jdbc.password"] = catalog.password.get_secret_value()
    if catalog.token:
        settings[f"{here}.token"] = catalog.token.get_secret_value()
    return settings | {f"{here}.{key}": value for key, value in catalog.options.items()}
