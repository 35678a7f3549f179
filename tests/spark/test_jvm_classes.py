"""Compiling with PySpark's Janino: once, the same each time, and with a clear error."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pytest

from penstock.engine.jvm_classes import build, build_from
from penstock.errors import SetupError

pytestmark = pytest.mark.spark


def test_the_jar_is_built_once_and_the_same_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = build(cache=tmp_path / "a"), build(cache=tmp_path / "b")
    assert one.name == two.name
    assert one.read_bytes() == two.read_bytes()
    assert "penstock/FencedCheckpoints.class" in zipfile.ZipFile(one).namelist()
    assert [path.name for path in one.parent.iterdir()] == [one.name]

    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setenv("PATH", "/nowhere")
    assert build(cache=tmp_path / "a") == one


def test_a_source_that_does_not_compile_is_told_with_its_place(tmp_path: Path) -> None:
    source = tmp_path / "Broken.java"
    source.write_text("package penstock;\npublic class Broken extends NoSuchClass { }\n")
    with pytest.raises(SetupError, match="do not compile") as caught:
        build_from([source], cache=tmp_path / "cache")
    assert "NoSuchClass" in caught.value.why
    assert "Broken.java" in caught.value.why
    assert list((tmp_path / "cache" / "classes").iterdir()) == []
    running = subprocess.run(["ps", "-ef"], capture_output=True, text=True, check=True).stdout
    assert "py4j.GatewayServer" not in running
