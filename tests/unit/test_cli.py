"""The command line: help, explain, schema, init, and what it says to a slip of the keyboard."""

from __future__ import annotations

import json
import pkgutil
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from penstock import __version__, cli
from penstock.cli import COMMANDS
from penstock.spec.load import load

EXAMPLE = Path(__file__).parents[2] / "examples" / "hourly_counts.yml"


def test_the_table_of_commands_is_the_folder_of_commands() -> None:
    files = {module.name for module in pkgutil.iter_modules(cli.__path__)} - {"render"}
    assert files == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_says_what_the_command_says_of_itself(name: str) -> None:
    assert (import_module(f"penstock.cli.{name}").command.help or "").split("\n")[0] == COMMANDS[name]


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_lists_every_command(penstock: Callable[..., Any], flag: str) -> None:
    ran = penstock(flag)
    assert ran.code == 0
    for name, text in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(text)}$", ran.out, re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(penstock: Callable[..., Any], name: str) -> None:
    ran = penstock(name, "--help")
    assert ran.code == 0
    assert COMMANDS[name] in ran.out


def test_the_version_is_told(penstock: Callable[..., Any]) -> None:
    assert penstock("--version") == (0, f"penstock, version {__version__}\n", "")


@pytest.mark.parametrize(
    ("word", "hint"), [("explan", "Did you mean 'explain'?"), ("rn", "Did you mean 'run'?"), ("xyzzy", "")]
)
def test_an_unknown_command_is_told_with_the_nearest(penstock: Callable[..., Any], word: str, hint: str) -> None:
    ran = penstock(word)
    assert ran.code == 2
    assert f"There is no command '{word}'." in ran.err
    assert hint in ran.err


@pytest.mark.parametrize(
    "arguments",
    [("explain",), ("explain", "a", "b"), ("run", "x", "--nope"), ("run", "x", "--once", "--available-now")],
)
def test_a_wrong_call_exits_2(penstock: Callable[..., Any], arguments: tuple[str, ...]) -> None:
    ran = penstock(*arguments)
    assert ran.code == 2
    assert ran.err.strip()
    assert ran.out == ""


class TestExplain:
    """`penstock explain`."""

    def test_the_example_gives_exactly_once(
        self, penstock: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("KAFKA", "localhost:9092")
        ran = penstock("explain", EXAMPLE)
        assert ran.code == 0
        assert ran.out.startswith("hourly_counts: exactly-once\n")
        for part in (
            "source kafka",
            "step 1 parse",
            "step 3 sql",
            "sink delta",
            "checkpoint",
            "trigger every 2 seconds",
        ):
            assert part in ran.out
        assert "limited by" not in ran.out
        assert "\x1b" not in ran.out

    def test_below_what_is_required_exits_1_and_says_what_limits(
        self, penstock: Callable[..., Any], write: Callable[..., Path]
    ) -> None:
        ran = penstock("explain", write("delta: {path: out}", "console:"))
        assert ran.code == 1
        assert "orders: at-least-once" in ran.out
        assert "limited by sink console: a replayed batch is printed again" in ran.out
        assert "to raise it: write to delta" in ran.out
        assert "refuses to start" in ran.out

    def test_json_says_the_same_to_programs(self, penstock: Callable[..., Any], write: Callable[..., Path]) -> None:
        ran = penstock("explain", "--json", write("delta: {path: out}", "console:", add="steps: [dedupe: id]\n"))
        assert ran.code == 1
        said = json.loads(ran.out)
        assert (said["pipeline"], said["guarantee"], said["require"]) == ("orders", "at-least-once", "exactly-once")
        assert said["limited_by"] == "sink console"
        assert {"part", "guarantee", "because", "raise_by"} == set(said["parts"][0])
        assert said["notes"][0]["rule"] == "state_unbounded"

    def test_a_lower_requirement_is_met(self, penstock: Callable[..., Any], write: Callable[..., Path]) -> None:
        assert penstock("explain", write("delta: {path: out}", "console:", add="require: at-least-once\n")).code == 0

    @pytest.mark.parametrize("flags", [(), ("--json",)])
    def test_a_secret_is_nowhere_in_what_it_says(
        self,
        penstock: Callable[..., Any],
        write: Callable[..., Path],
        monkeypatch: pytest.MonkeyPatch,
        flags: tuple[str, ...],
    ) -> None:
        monkeypatch.setenv("PENSTOCK_P", "hunter2")
        value = "'${env:PENSTOCK_P}'"
        options = f"username: me, password: {value}, protocol: SASL_SSL, options: {{kafka.x.token: {value}}}"
        ran = penstock("explain", *flags, write("topic: orders", f"topic: orders, {options}"))
        assert ran.code == 0
        assert "hunter2" not in ran.out + ran.err


class TestInit:
    """`penstock init`."""

    def test_a_project_is_written_that_can_be_explained(self, penstock: Callable[..., Any], tmp_path: Path) -> None:
        ran = penstock("init", tmp_path / "my orders")
        assert ran.code == 0
        folder = tmp_path / "my orders"
        assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()) == [
            ".gitignore", "README.md", "in/events-0001.jsonl", "pipeline.yml", "steps.py",
        ]  # fmt: skip
        assert load(folder / "pipeline.yml").name == "my_orders"
        assert penstock("explain", folder / "pipeline.yml").code == 0
        assert len((folder / "in" / "events-0001.jsonl").read_bytes().splitlines()) == 5_000
        assert f"cd {folder}" in ran.out

    @pytest.mark.parametrize("name", ["2026", "größe", "a" * 90, "-x-"])
    def test_any_folder_name_gives_a_name_that_is_taken(
        self, penstock: Callable[..., Any], tmp_path: Path, name: str
    ) -> None:
        assert penstock("init", "--", tmp_path / name).code == 0
        assert load(tmp_path / name / "pipeline.yml").name

    def test_nothing_is_overwritten(self, penstock: Callable[..., Any], tmp_path: Path) -> None:
        (tmp_path / "steps.py").write_text("mine")
        ran = penstock("init", tmp_path)
        assert ran.code == 2
        assert f"{tmp_path}/steps.py is there already" in ran.err
        assert "fix: choose an empty folder" in ran.err
        assert [path.name for path in tmp_path.iterdir()] == ["steps.py"]

    def test_a_file_in_the_way_is_told(self, penstock: Callable[..., Any], tmp_path: Path) -> None:
        (tmp_path / "file").write_text("mine")
        ran = penstock("init", tmp_path / "file")
        assert ran.code == 2
        assert "no project can be written here" in ran.err
        assert (tmp_path / "file").read_text() == "mine"
