"""What the unit tests share: a pipeline file to change, and the command line in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from penstock import cli

PIPELINE = """\
name: orders
source:
  kafka: {servers: "localhost:9092", topic: orders}
sink:
  delta: {path: out}
checkpoint: ck
"""


class Ran(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a pipeline file: the usual one, with one text replaced by another and lines added."""

    def write(old: str = "", new: str = "", *, add: str = "", text: str | None = None) -> Path:
        assert old in PIPELINE
        file = tmp_path / "pipeline.yml"
        content = text if text is not None else (PIPELINE.replace(old, new) if old else PIPELINE) + add
        file.write_text(content, encoding="utf-8")
        return file

    return write


@pytest.fixture
def penstock(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run the command line as `penstock ARGUMENTS` would."""

    def run(*arguments: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["penstock", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as caught:
            cli.main()
        captured = capsys.readouterr()
        return Ran(int(str(caught.value.code)), captured.out, captured.err)

    return run
