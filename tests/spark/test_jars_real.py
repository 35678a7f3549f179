"""The real thing: PySpark's Ivy, the network, a fresh cache."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.engine.jars import Progress, fetch, jars_of
from penstock.errors import JarError

pytestmark = pytest.mark.spark


def test_a_group_is_fetched_through_ivy_into_a_fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Progress] = []
    paths = fetch(["avro", "kafka"], cache=tmp_path, progress=seen.append)
    assert [path.name for path in paths] == [jar.file for jar in jars_of(["avro", "kafka"])]
    assert all(path.stat().st_size == jar.size for path, jar in zip(paths, jars_of(["avro", "kafka"]), strict=True))
    assert [each.done_bytes for each in seen] == sorted(each.done_bytes for each in seen)
    assert seen[-1].done_jars == len(paths)
    assert sorted(os.listdir(tmp_path / "jars")) == sorted(
        [path.name for path in paths] + [f"{path.name}.stamp" for path in paths]
    )

    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setenv("PATH", "/nowhere")
    assert fetch(["avro", "kafka"], cache=tmp_path) == paths


def test_without_a_network_the_missing_jars_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A mirror that nobody serves: the port is refused, as without a network.
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="own"/><resolvers>'
        '<ibiblio name="own" m2compatible="true" root="http://joe:hush@127.0.0.1:9/"/>'
        "</resolvers></ivysettings>"
    )
    monkeypatch.setenv("PENSTOCK_IVYSETTINGS", str(settings))
    with pytest.raises(JarError, match=r"org\.apache\.spark:spark-avro") as caught:
        fetch(["avro"], cache=tmp_path / "cache")
    assert "127.0.0.1" in caught.value.why
    assert "hush" not in str(caught.value)
    assert os.listdir(tmp_path / "cache" / "jars") == []


def test_a_mirror_that_is_a_folder_with_poms_serves_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (jar,) = jars_of(["avro"])
    (path,) = fetch(["avro"], cache=tmp_path / "a (first) [1]")
    group, artifact, version = jar.coordinate.split(":")
    place = tmp_path / "mirror" / group.replace(".", "/") / artifact / version
    place.mkdir(parents=True)
    (place / jar.file).write_bytes(path.read_bytes())
    (place / jar.file).with_suffix(".pom").write_text(
        "<project><modelVersion>4.0.0</modelVersion>"
        f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version></project>"
    )
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="own"/><resolvers>'
        f'<ibiblio name="own" m2compatible="true" root="{(tmp_path / "mirror").as_uri()}"/>'
        "</resolvers></ivysettings>"
    )
    monkeypatch.setenv("PENSTOCK_IVYSETTINGS", str(settings))
    (again,) = fetch(["avro"], cache=tmp_path / "second")
    assert again.read_bytes() == path.read_bytes()
