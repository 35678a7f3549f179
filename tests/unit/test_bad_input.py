"""Every bad input through the command line: exit code, what / why / fix, file:line, and nothing written."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.engine import java
from penstock.sources import kafka

BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 10)}]\n" for n in range(20)
)


@pytest.fixture
def refuses(penstock: Callable[..., Any], tmp_path: Path) -> Callable[..., str]:
    """Run a command that must refuse, and give what it said on standard error."""

    def refuses(*arguments: object, code: int = 2) -> str:
        before = sorted(tmp_path.rglob("*"))
        ran = penstock(*arguments)
        assert ran.code == code, ran
        assert ran.out == ""
        what, *rest = ran.err.splitlines()
        assert what
        assert [line[:7] for line in rest] == ["  why: ", "  fix: "], ran.err
        assert all(len(line) > 10 for line in rest)
        assert "Traceback" not in ran.err
        assert sorted(tmp_path.rglob("*")) == before
        return str(ran.err)

    return refuses


@pytest.fixture
def _java_17(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Java that only knows its version, so that `run` comes to the checks after it."""
    program = tmp_path / "jdk" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho 'openjdk version \"17.0.1\"' >&2\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))


@pytest.mark.parametrize("command", ["explain", "run"])
def test_a_missing_file(refuses: Callable[..., str], tmp_path: Path, command: str) -> None:
    said = refuses(command, tmp_path / "nothing.yml")
    assert said.startswith(f"{tmp_path}/nothing.yml: there is no such file")
    assert "penstock init" in said


CASES: dict[str, tuple[str, str, str, str]] = {
    # what is replaced, by what, what is added, what must be said
    "yaml_error": ("delta: {path: out}", "delta: {path: out", "", "pipeline.yml:6: not valid YAML"),
    "duplicate_key": ("", "", "name: again\n", "pipeline.yml:7: 'name' is there twice"),
    "alias_bomb": ("", "", BOMB, "more than 10000 values once its aliases are written out"),
    "unknown_source": ("kafka:", "kafak:", "", "pipeline.yml:3: unknown source 'kafak'"),
    "did_you_mean_source": ("kafka:", "kafak:", "", "did you mean 'kafka'?"),
    "unknown_sink": ("delta:", "detla:", "", "did you mean 'delta'?"),
    "unknown_option": ("topic:", "topik:", "", "pipeline.yml:3: kafka has no option 'topik'"),
    "unknown_key": ("", "", "trigerr: once\n", "pipeline.yml:7: unknown key 'trigerr'"),
    "literal_secret": ("topic: orders", "topic: orders, password: hunter2", "", "yml:3: password holds a secret"),
    "missing_variable": ("localhost:9092", "${env:PENSTOCK_NOPE}", "", "the variable PENSTOCK_NOPE is not set"),
    "missing_reference_file": ("localhost:9092", "${file:nope}", "", "nope can't be read"),
    "mode_of_sink": ("", "", "mode: update\n", "pipeline.yml:7: sink delta does not take mode update"),
    "no_watermark": ("", "", "steps: [sql: select count(*) from input]\n", "needs a watermark"),
    "continuous_with_watermark": (
        "delta: {path: out}",
        "console:",
        "trigger: {continuous: 1 second}\nsteps: [watermark: {column: t, delay: 1 minute}]\n",
        "pipeline.yml:8: trigger continuous does not take a watermark step",
    ),
    "real_time_with_delta": ("", "", "trigger: {real_time: 5 minutes}\n", "does not work with sink delta"),
}  # fmt: skip


@pytest.mark.parametrize("command", ["explain", "run", "setup"])
@pytest.mark.parametrize("case", CASES)
def test_a_bad_file_is_refused_by_every_command_that_reads_it(
    refuses: Callable[..., str], write: Callable[..., Path], case: str, command: str
) -> None:
    old, new, add, what = CASES[case]
    said = refuses(command, write(old, new, add=add))
    assert what in said
    assert "hunter2" not in said


def test_a_dotenv_beside_the_file_is_read(penstock: Callable[..., Any], write: Callable[..., Path]) -> None:
    file = write("localhost:9092", "${env:PENSTOCK_FROM_DOTENV}")
    (file.parent / ".env").write_text("PENSTOCK_FROM_DOTENV=localhost:9092\n")
    assert penstock("explain", file).code == 0


def test_less_than_is_required_is_refused_by_run(refuses: Callable[..., str], write: Callable[..., Path]) -> None:
    said = refuses("run", write("delta: {path: out}", "console:"), code=1)
    assert "gives at-least-once, but requires exactly-once" in said


def test_no_java(
    refuses: Callable[..., str], write: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java, "USUAL_PLACES", ())
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert "no Java was found" in refuses("run", write())
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nothing"))
    assert f"JAVA_HOME={tmp_path}/nothing" in refuses("run", write())


@pytest.mark.usefixtures("_java_17")
def test_a_wrong_java(
    refuses: Callable[..., str], write: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "jdk" / "bin" / "java"
    program.write_text(program.read_text().replace("17.0.1", "11.0.2"))
    monkeypatch.setattr(java, "USUAL_PLACES", ())
    monkeypatch.setenv("PATH", "")
    said = refuses("run", write())
    assert "Java 11" in said
    assert "install Java 17 or 21" in said


@pytest.mark.usefixtures("_java_17")
def test_a_broker_that_is_not_there(
    refuses: Callable[..., str], write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("confluent_kafka")
    monkeypatch.setattr(kafka, "PREFLIGHT_TIMEOUT_S", 1)
    with socket.socket() as taken:
        # Bound and not listening: whoever connects is refused, and nobody else gets the port meanwhile.
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        said = refuses("run", write("localhost:9092", address))
    assert f"kafka {address}: no broker answers" in said


RATE = "name: t\nsource: rate\nsink:\n  delta: {{path: out}}\ncheckpoint: {checkpoint}\n"


@pytest.mark.usefixtures("_java_17")
def test_a_checkpoint_whose_parent_is_a_file(
    refuses: Callable[..., str], write: Callable[..., Path], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("mine")
    file = write(text=RATE.format(checkpoint="file/deep/ck"))
    said = refuses("run", file)
    assert f"checkpoint {tmp_path}/file/deep/ck can't be created" in said
    assert f"{tmp_path}/file is a file" in said


@pytest.mark.usefixtures("_java_17")
def test_a_checkpoint_that_is_a_file(refuses: Callable[..., str], write: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "ck").write_text("mine")
    assert f"checkpoint {tmp_path}/ck is a file" in refuses("run", write(text=RATE.format(checkpoint="ck")))


@pytest.mark.usefixtures("_java_17")
@pytest.mark.parametrize("content", ["", "v1", 'v1\n{"batchW', "v1\n{}\n", 'v1\n{}\n{"events":{"0":1'])
def test_a_torn_offsets_file(
    refuses: Callable[..., str], write: Callable[..., Path], tmp_path: Path, content: str
) -> None:
    (tmp_path / "ck" / "offsets").mkdir(parents=True)
    (tmp_path / "ck" / "offsets" / "0").write_text("v1\n{}\n12")
    (tmp_path / "ck" / "offsets" / "1").write_text(content)
    (tmp_path / "ck" / "metadata").write_text('{"id":"x"}')
    said = refuses("run", write(text=RATE.format(checkpoint="ck")))
    assert f"{tmp_path}/ck/offsets/1: this is not a whole offset log file" in said


@pytest.mark.usefixtures("_java_17")
@pytest.mark.parametrize("content", [None, "", '{"id":"1b5f', "[]", '{"id":""}'])
def test_a_checkpoint_without_its_query_id(
    refuses: Callable[..., str], write: Callable[..., Path], tmp_path: Path, content: str | None
) -> None:
    (tmp_path / "ck" / "offsets").mkdir(parents=True)
    (tmp_path / "ck" / "offsets" / "0").write_text("v1\n{}\n12")
    if content is not None:
        (tmp_path / "ck" / "metadata").write_text(content)
    assert "the query's id is" in refuses("run", write(text=RATE.format(checkpoint="ck")))


@pytest.mark.usefixtures("_java_17")
def test_a_folder_of_files_that_is_not_there(
    refuses: Callable[..., str], write: Callable[..., Path], tmp_path: Path
) -> None:
    file = write(text=RATE.format(checkpoint="ck").replace("source: rate", "source:\n  files: {path: in}"))
    assert f"mkdir -p {tmp_path}/in" in refuses("run", file)
