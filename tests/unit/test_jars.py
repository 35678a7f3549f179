"""Pinned jars: only what was pinned gets into the cache, and only what was pinned comes out of it."""

from __future__ import annotations

import collections
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from penstock.engine.jars import Jar, Progress, fetch, fetch_jars, jars_of, read_pins
from penstock.errors import JarError, UsageError

CONTENT = b"the jar" * 1000
JAR = Jar("org.example:thing:1.0", sha256=hashlib.sha256(CONTENT).hexdigest(), size=len(CONTENT))
OTHER = Jar("org.example:other:2.0", sha256=hashlib.sha256(CONTENT).hexdigest(), size=len(CONTENT))

# Plays Ivy: finds the folder in the -retrieve pattern, then does what the test says there.
FAKE_JAVA = """#!/bin/sh
if [ "$1" = -version ]; then echo 'openjdk version "17.0.1"' >&2; exit 0; fi
echo "in $PWD: $@" >> {calls}
while [ $# -gt 0 ]; do [ "$1" = -retrieve ] && out=$(dirname "$2"); [ "$1" = -cache ] && cache=$2; shift; done
mkdir -p "$out" "$cache"; cd "$out"
{script}
"""


class Machine:
    """A machine whose java is a script; `calls` grows by a line for each run of Ivy."""

    def __init__(self, folder: Path) -> None:
        self.cache = folder / "cache"
        self.jars = self.cache / "jars"
        self.calls = folder / "calls"
        self.content = folder / "content"
        self.content.write_bytes(CONTENT)
        self._java = folder / "java-home" / "bin" / "java"
        self._java.parent.mkdir(parents=True)
        self.home = folder / "java-home"

    def ivy(self, script: str) -> None:
        self._java.write_text(FAKE_JAVA.format(calls=self.calls, script=script))
        self._java.chmod(0o755)

    def ivy_serves(self, *jars: Jar) -> None:
        self.ivy("\n".join(f"cp {self.content} {jar.file}" for jar in jars))

    @property
    def runs(self) -> int:
        return len(self.calls.read_text().splitlines()) if self.calls.exists() else 0


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine(tmp_path)
    monkeypatch.setenv("JAVA_HOME", str(machine.home))
    monkeypatch.delenv("PENSTOCK_IVYSETTINGS", raising=False)
    return machine


def leftovers(machine: Machine) -> list[str]:
    return [path.name for path in machine.jars.iterdir() if path.name.startswith(".fetch-")]


def test_a_fetched_jar_is_kept_and_the_next_call_starts_no_process(machine: Machine) -> None:
    machine.ivy_serves(JAR, OTHER)
    seen: list[Progress] = []
    paths = fetch_jars([JAR, OTHER], cache=machine.cache, progress=seen.append)
    assert [path.name for path in paths] == ["thing-1.0.jar", "other-2.0.jar"]
    assert paths[0].read_bytes() == CONTENT
    assert seen[0] == Progress(0, 2 * len(CONTENT), 0, 2)
    assert seen[-1] == Progress(2 * len(CONTENT), 2 * len(CONTENT), 2, 2)
    assert leftovers(machine) == []

    shutil.rmtree(machine.home)
    assert fetch_jars([JAR, OTHER], cache=machine.cache) == paths
    assert machine.runs == 1


def test_only_what_is_missing_is_asked_for(machine: Machine) -> None:
    machine.ivy_serves(JAR)
    fetch_jars([JAR], cache=machine.cache)
    machine.ivy(f"grep -q thing ../ivy.xml && exit 1; cp {machine.content} {OTHER.file}")
    assert len(fetch_jars([JAR, OTHER], cache=machine.cache)) == 2


def test_a_wrong_file_never_gets_its_name(machine: Machine) -> None:
    machine.ivy(f"cp {machine.content} {JAR.file}; echo evil > {OTHER.file}")
    with pytest.raises(JarError, match=r"other-2\.0\.jar is not the file that was pinned") as caught:
        fetch_jars([JAR, OTHER], cache=machine.cache)
    assert hashlib.sha256(b"evil\n").hexdigest() in caught.value.why
    assert OTHER.sha256 in caught.value.why
    assert "mirror" in caught.value.fix
    assert list(machine.jars.iterdir()) == []


@pytest.mark.parametrize("set_back", [False, True], ids=["plain", "modification time set back"])
def test_a_jar_tampered_with_in_the_cache_is_caught(machine: Machine, set_back: bool) -> None:
    machine.ivy_serves(JAR)
    (path,) = fetch_jars([JAR], cache=machine.cache)
    before = path.stat()
    time.sleep(0.02)
    path.write_bytes(b"X" + CONTENT[1:])
    if set_back:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(JarError) as caught:
        fetch_jars([JAR], cache=machine.cache)
    assert str(path) in caught.value.what
    assert f"delete {path}" in caught.value.fix
    path.unlink()
    assert fetch_jars([JAR], cache=machine.cache) == (path,)


def test_a_good_jar_whose_stamp_is_lost_is_hashed_and_used(machine: Machine) -> None:
    machine.jars.mkdir(parents=True)
    (machine.jars / JAR.file).write_bytes(CONTENT)
    fetch_jars([JAR], cache=machine.cache)
    assert machine.runs == 0
    assert (machine.jars / f"{JAR.file}.stamp").exists()


def test_a_jar_that_can_not_be_had_is_named_and_nothing_leaks(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = machine.home / "own-mirror.xml"
    settings.write_text("<ivysettings/>")
    monkeypatch.setenv("PENSTOCK_IVYSETTINGS", str(settings))
    machine.ivy("echo 'tried https://joe:hush@mirror/thing-1.0.jar?token=hush'; echo ' not found'; exit 1")
    with pytest.raises(JarError, match=r"1 of 1 jars.*org\.example:thing:1\.0") as caught:
        fetch_jars([JAR], cache=machine.cache)
    assert "tried https://***@mirror/thing-1.0.jar?*** | not found" in caught.value.why
    assert "hush" not in str(caught.value)
    assert f"-settings {settings}" in machine.calls.read_text()
    assert leftovers(machine) == []


def test_an_ivy_that_claims_success_without_files_is_not_believed(machine: Machine) -> None:
    machine.ivy("exit 0")
    with pytest.raises(JarError, match="can't be fetched"):
        fetch_jars([JAR], cache=machine.cache)


def test_ivy_keeps_its_hands_off_the_home_folder(machine: Machine) -> None:
    machine.ivy_serves(JAR)
    fetch_jars([JAR], cache=machine.cache)
    call = machine.calls.read_text()
    assert call.startswith(f"in {machine.jars}/.fetch-")
    assert "-cache cache " in call


def test_a_settings_file_that_is_not_there_is_told(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_IVYSETTINGS", "nowhere.xml")
    machine.ivy_serves(JAR)
    with pytest.raises(JarError, match=r"no Ivy settings file .*nowhere\.xml"):
        fetch_jars([JAR], cache=machine.cache)


def test_a_relative_cache_folder_gives_absolute_paths(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    machine.ivy_serves(JAR)
    assert fetch_jars([JAR], cache=Path("near")) == (tmp_path / "near" / "jars" / JAR.file,)


def test_lack_of_room_is_told_before_anything_is_fetched(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = collections.namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**9, 10**9 - 10**6, 10**6))
    machine.ivy_serves(JAR)
    with pytest.raises(JarError, match="not enough room") as caught:
        fetch_jars([JAR], cache=machine.cache)
    assert "1 MB are free" in caught.value.why
    assert machine.runs == 0


def test_a_fetch_that_is_killed_leaves_no_jar_and_the_next_one_clears_up(machine: Machine) -> None:
    machine.ivy(f"cp {machine.content} {JAR.file}; exec sleep 30")
    code = (
        "import sys, pathlib; from penstock.engine.jars import Jar, fetch_jars\n"
        "fetch_jars([Jar(sys.argv[1], sys.argv[2], int(sys.argv[3]))], cache=pathlib.Path(sys.argv[4]))"
    )
    arguments = [JAR.coordinate, JAR.sha256, str(JAR.size), str(machine.cache)]
    process = subprocess.Popen([sys.executable, "-c", code, *arguments], start_new_session=True)
    end = time.monotonic() + 20
    while not list(machine.jars.glob(f".fetch-*/out/{JAR.file}")) and time.monotonic() < end:
        time.sleep(0.02)

    machine.ivy_serves(JAR)
    fetch_jars([JAR], cache=machine.cache)  # a second fetch beside it neither waits nor harms it
    assert len(leftovers(machine)) == 1
    (machine.jars / JAR.file).unlink()

    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (machine.jars / JAR.file).exists()
    fetch_jars([JAR], cache=machine.cache)
    assert leftovers(machine) == []


def test_the_cache_folder_follows_the_environment(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.ivy_serves(JAR)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("PENSTOCK_CACHE", raising=False)
    assert fetch_jars([JAR]) == (tmp_path / "xdg" / "penstock" / "jars" / JAR.file,)
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "own"))
    assert fetch_jars([JAR]) == (tmp_path / "own" / "jars" / JAR.file,)


def test_pins_are_whole_and_no_two_jars_share_a_file_name() -> None:
    names: dict[str, str] = {}
    for groups in read_pins().values():
        for jars in groups.values():
            for jar in jars:
                assert re.fullmatch(r"[0-9a-f]{64}", jar.sha256), jar
                assert jar.size > 0
                assert names.setdefault(jar.file, jar.sha256) == jar.sha256, jar


def test_groups_are_joined_without_doubles_and_unknown_ones_are_refused() -> None:
    jars = jars_of(["delta", "broker", "delta"])
    assert len({jar.coordinate for jar in jars}) == len(jars)
    assert jars[: len(jars_of(["delta"]))] == jars_of(["delta"])
    with pytest.raises(UsageError, match="no group of jars named kafak") as caught:
        fetch(["kafak"])
    assert "kafka" in caught.value.fix


def test_importing_the_module_loads_neither_spark_nor_yaml() -> None:
    code = "import sys, penstock.engine.jars, penstock.engine.jvm_classes, penstock.cluster.kafka\n"
    code += "print([m for m in ('pyspark', 'py4j', 'yaml', 'confluent_kafka') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
