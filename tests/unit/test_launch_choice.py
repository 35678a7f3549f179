"""When the driver's JVM is started directly, with what, and which class archives are kept."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.engine import class_archive, launch
from penstock.engine.cache import write_stamp
from penstock.engine.java import Java

LOCAL = {"spark.master": "local[2]"}
JAVA = Java(path=Path("/opt/java/bin/java"), version=17, text='openjdk version "17"')


@pytest.fixture(autouse=True)
def _no_spark_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*launch._LAUNCHER_VARIABLES, class_archive.SWITCH]:
        monkeypatch.delenv(name, raising=False)


def test_a_local_master_is_started_directly() -> None:
    assert launch.is_possible(LOCAL)


@pytest.mark.parametrize("master", ["yarn", "spark://host:7077", "k8s://host"])
def test_any_other_master_goes_through_spark_submit(master: str) -> None:
    assert not launch.is_possible({"spark.master": master})


@pytest.mark.parametrize("key", ["spark.jars.packages", "spark.files", "spark.submit.pyFiles", "spark.kerberos.keytab"])
def test_what_spark_submit_would_resolve_goes_through_it(key: str) -> None:
    assert not launch.is_possible({**LOCAL, key: "x"})


@pytest.mark.parametrize("variable", ["SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "HADOOP_CONF_DIR"])
def test_spark_variables_of_the_user_are_left_to_spark_submit(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "/somewhere")
    assert not launch.is_possible(LOCAL)


def test_no_setting_is_on_the_command_line() -> None:
    conf = {**LOCAL, "spark.driver.memory": "3g", "spark.hadoop.fs.s3a.secret.key": "hush", "spark.app.name": "orders"}
    command = launch.command(conf, java=JAVA.path)
    assert "-Xmx3g" in command
    assert not any("hush" in part or "orders" in part for part in command)


def test_java_options_of_the_user_come_after_ours_and_keep_their_quotes() -> None:
    conf = {**LOCAL, "spark.driver.extraJavaOptions": "-Dx='a b' -Xss4m"}
    command = launch.command(conf, java=JAVA.path)
    assert command.index("-Xss4m") > command.index("-Xmx1g")
    assert "-Dx=a b" in command


def jars(folder: Path) -> list[Path]:
    folder.mkdir(exist_ok=True)
    made = [folder / "a.jar", folder / "b.jar"]
    for jar in made:
        jar.write_bytes(b"jar")
    return made


def stamped(archive: Path) -> Path:
    archive.parent.mkdir(parents=True, exist_ok=True)
    archive.write_bytes(b"archive")
    write_stamp(archive, sha256="0" * 64)
    return archive


def test_an_archive_is_for_one_java_and_one_class_path(tmp_path: Path) -> None:
    path = jars(tmp_path / "jars")
    place = class_archive._place(JAVA, path, cache=tmp_path)
    assert place is not None
    assert class_archive.find(JAVA, path, cache=tmp_path) is None
    stamped(place)
    assert class_archive.find(JAVA, path, cache=tmp_path) == place
    assert class_archive.find(JAVA, path[::-1], cache=tmp_path) is None
    other = Java(path=JAVA.path, version=17, text='openjdk version "17.0.99"')
    assert class_archive.find(other, path, cache=tmp_path) is None
    path[0].write_bytes(b"another jar")
    assert class_archive.find(JAVA, path, cache=tmp_path) is None


def test_an_archive_that_was_changed_or_never_finished_is_not_used(tmp_path: Path) -> None:
    path = jars(tmp_path / "jars")
    place = class_archive._place(JAVA, path, cache=tmp_path)
    assert place is not None
    stamped(place).write_bytes(b"half")
    assert class_archive.find(JAVA, path, cache=tmp_path) is None
    stamped(place).with_name(f"{place.name}.stamp").unlink()
    assert class_archive.find(JAVA, path, cache=tmp_path) is None


def test_no_archive_for_a_class_path_with_folders(tmp_path: Path) -> None:
    assert class_archive._place(JAVA, [tmp_path], cache=tmp_path) is None


def test_archives_can_be_turned_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = jars(tmp_path / "jars")
    place = class_archive._place(JAVA, path, cache=tmp_path)
    assert place is not None
    stamped(place)
    monkeypatch.setenv(class_archive.SWITCH, "off")
    assert class_archive.find(JAVA, path, cache=tmp_path) is None
    assert class_archive.make(JAVA, path, groups=[], cache=tmp_path) is None


def test_the_archives_that_were_last_of_use_are_kept(tmp_path: Path) -> None:
    made = [stamped(tmp_path / f"{number}.jsa") for number in range(5)]
    for number, archive in enumerate(made):
        os.utime(archive.with_name(f"{archive.name}.stamp"), (number, number))
    class_archive.prune(tmp_path, keep=2)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["3.jsa", "3.jsa.stamp", "4.jsa", "4.jsa.stamp"]


def test_a_rehearsal_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    path = jars(tmp_path / "jars")
    nowhere = Java(path=tmp_path / "java", version=17, text="none")
    assert class_archive.make(nowhere, path, groups=[], cache=tmp_path) is None
    assert list((tmp_path / "archives").iterdir()) == []
