"""Which Java is taken, and what is said when none will do."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.engine import java
from penstock.engine.java import find_java
from penstock.errors import JavaError


def fake_java(home: Path, *, version: str, exit_code: int = 0, modules: str | None = None) -> Path:
    path = home / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\nexit {exit_code}\n")
    path.chmod(0o755)
    if modules is not None:
        (home / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return path


@pytest.fixture(autouse=True)
def _bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path" / "bin"))
    monkeypatch.setattr(java, "USUAL_PLACES", (str(tmp_path / "jvm" / "*"),))


@pytest.mark.parametrize(("text", "version"), [("17.0.15", 17), ("21", 21), ("21-ea", 21), ("17.0.1+12-LTS", 17)])
def test_java_home_is_taken_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, version: int) -> None:
    path = fake_java(tmp_path / "home", version=text)
    fake_java(tmp_path / "path", version="17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    found = find_java()
    assert (found.path, found.version, found.home) == (path, version, tmp_path / "home")
    assert text in found.text


def test_path_is_next_when_java_home_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = fake_java(tmp_path / "path", version="17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    assert find_java().path == path


def test_a_usual_place_helps_when_path_has_a_java_too_new(tmp_path: Path) -> None:
    fake_java(tmp_path / "path", version="25")
    fake_java(tmp_path / "jvm" / "a-11", version="11.0.2")
    path = fake_java(tmp_path / "jvm" / "b-21", version="21.0.3")
    assert find_java().path == path


def test_no_java_at_all_is_told() -> None:
    with pytest.raises(JavaError, match="no Java was found") as caught:
        find_java()
    assert "JAVA_HOME" in caught.value.fix


@pytest.mark.parametrize(("text", "version"), [("25", 25), ("11.0.2", 11), ("1.8.0_402", 8)])
def test_an_unsuitable_version_is_named_with_its_place(tmp_path: Path, text: str, version: int) -> None:
    path = fake_java(tmp_path / "path", version=text)
    with pytest.raises(JavaError) as caught:
        find_java()
    assert f"Java {version}" in caught.value.why
    assert str(path) in caught.value.why
    assert "17 and 21" in caught.value.why
    assert "JAVA_HOME" in caught.value.fix


def test_a_java_that_does_not_run_is_told(tmp_path: Path) -> None:
    fake_java(tmp_path / "path", version="17.0.1", exit_code=134)
    with pytest.raises(JavaError, match="does not run") as caught:
        find_java()
    assert "134" in caught.value.why


def test_a_file_that_is_no_program_is_told(tmp_path: Path) -> None:
    path = fake_java(tmp_path / "path", version="17.0.1")
    path.write_bytes(b"\x00\x01")
    with pytest.raises(JavaError, match="does not run"):
        find_java()


def test_a_cut_down_java_without_the_vector_module_is_passed_over(tmp_path: Path) -> None:
    fake_java(tmp_path / "path", version="17.0.1", modules="java.base java.xml")
    whole = fake_java(tmp_path / "jvm" / "17", version="17.0.1", modules="java.base jdk.incubator.vector")
    assert find_java().path == whole
    whole.unlink()
    with pytest.raises(JavaError, match=r"jdk\.incubator\.vector"):
        find_java()


def test_options_in_the_environment_are_not_repeated_in_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = fake_java(tmp_path / "path", version="25")
    path.write_text(path.read_text().replace("echo", "echo 'Picked up -Dpassword=hush' >&2; echo", 1))
    with pytest.raises(JavaError) as caught:
        find_java()
    assert "hush" not in str(caught.value)
