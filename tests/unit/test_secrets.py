"""Secrets don't show: not in a repr, not in a masked dict, not in a text that carries one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from penstock.engine.session import settings
from penstock.lakes import Catalog
from penstock.secrets import MASK, hide, masked
from penstock.spec.load import load


def test_masked_keeps_what_is_no_secret() -> None:
    options = {"kafka.sasl.jaas.config": "x", "group": "g", "uri": "https://a:b@h", "ssl.truststore.location": "/ca"}
    assert masked(options) == {
        "kafka.sasl.jaas.config": MASK,
        "group": "g",
        "uri": MASK,
        "ssl.truststore.location": "/ca",
    }


def test_hide_leaves_the_rest_of_a_text() -> None:
    text = "can't reach jdbc:postgresql://h/db?user=me&password=hunter2 (timeout)"
    assert "hunter2" not in hide(text)
    assert hide(text).startswith("can't reach jdbc:postgresql://h/db?user=me")
    assert hide(text).endswith("(timeout)")


def test_a_pipeline_with_secrets_shows_none_of_them(write: Callable[..., Path]) -> None:
    file = write(
        "topic: orders",
        "topic: orders, protocol: SASL_SSL, username: me, password: '${env:P}', "
        "options: {kafka.sasl.jaas.config: '${env:P}'}",
        add="spark: {spark.hadoop.fs.s3a.secret.key: '${env:P}'}\n",
    )
    pipeline = load(file, variables={"P": "hunter2"})
    assert "hunter2" not in repr(pipeline)
    assert "hunter2" not in str(pipeline)
    assert "hunter2" not in str(pipeline.source)
    assert settings(pipeline)["spark.hadoop.fs.s3a.secret.key"] == "hunter2"


def test_a_catalog_shows_no_password_in_its_address() -> None:
    catalog = Catalog(
        type="jdbc", warehouse="w", uri="jdbc:postgresql://h/db?password=hunter2", options={"jdbc.password": "hunter2"}
    )
    assert "hunter2" not in repr(catalog)
