"""Iceberg catalogs: what each kind needs, and which settings and jars it gives."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from penstock.lakes import Catalog
from penstock.sinks.iceberg import Iceberg

HERE = "spark.sql.catalog.lake"


def iceberg(**catalog: object) -> Iceberg:
    return Iceberg(table="db.t", catalog=Catalog.model_validate(catalog))


@pytest.mark.parametrize(
    ("catalog", "settings", "jars"),
    [
        ({"type": "hadoop", "warehouse": "/w"}, {"type": "hadoop", "warehouse": "/w"}, ("iceberg",)),
        (
            {"type": "jdbc", "uri": "jdbc:sqlite:/w/cat.db", "warehouse": "/w"},
            {"type": "jdbc", "uri": "jdbc:sqlite:/w/cat.db", "warehouse": "/w"},
            ("iceberg", "sqlite"),
        ),
        (
            {"type": "rest", "uri": "http://127.0.0.1:8181", "token": "t", "options": {"oauth2-server-uri": "x"}},
            {"type": "rest", "uri": "http://127.0.0.1:8181", "token": "t", "oauth2-server-uri": "x"},
            ("iceberg",),
        ),
        (
            {"type": "glue", "warehouse": "s3://b/w", "uri": "http://127.0.0.1:5000"},
            {"type": "glue", "warehouse": "s3://b/w", "glue.endpoint": "http://127.0.0.1:5000"},
            ("iceberg", "iceberg-aws"),
        ),
    ],
)
def test_each_kind_of_catalog_gives_its_settings_and_jars(
    catalog: dict[str, object], settings: dict[str, str], jars: tuple[str, ...]
) -> None:
    sink = iceberg(**catalog)
    given = {key.removeprefix(f"{HERE}."): value for key, value in sink.settings.items() if key.startswith(f"{HERE}.")}
    assert given == settings
    assert sink.settings[HERE] == "org.apache.iceberg.spark.SparkCatalog"
    assert sink.jars == jars


@pytest.mark.parametrize(
    ("catalog", "says"),
    [
        ({"type": "hadoop"}, "needs a warehouse"),
        ({"type": "glue"}, "needs a warehouse"),
        ({"type": "rest"}, "needs a uri"),
        ({"type": "jdbc", "warehouse": "/w"}, "needs a uri"),
    ],
)
def test_an_incomplete_catalog_is_refused(catalog: dict[str, object], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        iceberg(**catalog)


def test_a_token_or_password_is_in_no_text() -> None:
    shown = repr(iceberg(type="rest", uri="http://127.0.0.1:8181", token="tell-nobody"))
    assert "tell-nobody" not in shown
