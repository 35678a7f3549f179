"""`penstock init`."""

from __future__ import annotations

import re
from pathlib import Path

import click

from penstock.cli import render
from penstock.errors import UsageError

TEMPLATES = Path(__file__).parent.parent / "templates"
EVENTS = 5_000


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), default=Path())
def command(folder: Path) -> None:
    """Write a project that runs.

    A pipeline file, a Python step, and some events to read. Nothing that is there is overwritten.
    """
    folder = folder.resolve()
    name = re.sub(r"[^A-Za-z0-9_-]", "_", folder.name)
    name = name if name[:1].isalpha() else f"pipeline_{name}"
    files = _files(name[:64])
    there = [file for file in files if (folder / file).exists()]
    if there:
        raise UsageError(
            f"{folder / there[0]} is there already",
            why="penstock init never overwrites",
            fix="choose an empty folder: penstock init NEW_FOLDER",
        )
    try:
        for file, content in files.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_bytes(content)
    except OSError as error:
        raise UsageError(
            f"{folder}: no project can be written here",
            why=error.strerror or str(error),
            fix="choose a folder that this user may write: penstock init NEW_FOLDER",
        ) from None
    render.line(f"wrote {', '.join(files)} in {folder}")
    render.line()
    if folder != Path.cwd():
        render.line(f"  cd {folder}")
    render.line("  penstock run pipeline.yml --available-now")


def _files(name: str) -> dict[str, bytes]:
    from penstock.sample import event

    def text(template: str) -> bytes:
        return (TEMPLATES / template).read_text(encoding="utf-8").replace("${name}", name).encode()

    lines = b"\n".join(event(number, step_ms=17_280).value for number in range(EVENTS)) + b"\n"
    return {
        "pipeline.yml": text("pipeline.yml"),
        "steps.py": text("steps.py"),
        "README.md": text("README.md"),
        ".gitignore": text("gitignore"),
        "in/events-0001.jsonl": lines,
    }
