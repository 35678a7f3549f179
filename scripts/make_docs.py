"""Write the pages that are made from the code: one per source, sink and step, the command line, README's table.

A page is made from the plug-in class itself: its docstring, its fields, its example, and the guarantee that the
example gives. Nothing in these pages is written by hand, so they can't disagree with the code; a test compares.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path
from textwrap import indent
from typing import Any

import click

from penstock import plugins
from penstock.cli import COMMANDS, penstock
from penstock.guarantee import Guarantee
from penstock.spec.explain import explain
from penstock.spec.load import load
from penstock.spec.pipeline import Pipeline
from penstock.steps import Step

ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- generated: parts -->", "<!-- /generated -->"
NOTE = "<!-- Made by scripts/make_docs.py from the code. Change the code, then run `make docs`. -->"
# What an example may refer to.
VARIABLES = {"KAFKA": "localhost:9092"}
_ONE = {"sources": "source", "sinks": "sink", "steps": "step"}
_OTHERS = {"source": "rate: {rows_per_second: 100}", "sink": "parquet: {path: data/out}"}
_TYPES = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}


def pages() -> dict[str, str]:
    """Every generated page: path from the root of the project -> text."""
    made = {"docs/cli.md": _cli()}
    for folder in plugins.FOLDERS:
        made[f"docs/{folder}/index.md"] = _index(folder)
        for name in own(folder):
            made[f"docs/{folder}/{name}.md"] = _page(folder, name)
    return made


def with_table(readme: str) -> str:
    """README's text with the table of sources and sinks as it is now."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"README.md has no place for the table: {BEGIN} … {END}")
    return f"{before}{BEGIN}\n{_parts()}{END}{after}"


def own(folder: str) -> list[str]:
    """Penstock's own plug-ins of a folder; those of other packages that happen to be installed are not ours."""
    return [name for name in plugins.names(folder) if plugins.load(folder, name).__module__.startswith("penstock.")]


def example_file(folder: str, name: str) -> str:
    """A whole pipeline file around a plug-in's example."""
    parts = {**_OTHERS, _ONE[folder]: plugins.load(folder, name).example}
    lines = ["name: example", *_under("source", parts["source"])]
    if folder == "steps":
        lines += _under("steps", parts["step"])
    return "\n".join([*lines, *_under("sink", parts["sink"]), "checkpoint: data/checkpoint", ""])


def main() -> None:
    """Write every page, and remove those whose plug-in is gone."""
    made = pages()
    for folder in plugins.FOLDERS:
        for old in (ROOT / "docs" / folder).glob("*.md"):
            if str(old.relative_to(ROOT)) not in made:
                old.unlink()
    for path, text in made.items():
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(text, encoding="utf-8")
    readme = ROOT / "README.md"
    readme.write_text(with_table(readme.read_text(encoding="utf-8")), encoding="utf-8")


def _under(key: str, example: str) -> list[str]:
    """An example below its key, as a person would write it."""
    body = example.strip()
    if key == "steps":
        first, _, rest = body.partition("\n")
        return [f"{key}:", f"  - {first}", *([indent(rest, "    ")] if rest else [])]
    return [f"{key}: {body}"] if ":" not in body else [f"{key}:", indent(body, "  ")]


def _loaded(folder: str, name: str) -> Pipeline:
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch, "example.yml")
        file.write_text(example_file(folder, name), encoding="utf-8")
        return load(file, variables=VARIABLES)


def _guarantee(folder: str, name: str) -> Guarantee:
    found = explain(_loaded(folder, name))
    return next(share.guarantee for share in found.shares if share.part.startswith(_ONE[folder]))


def _page(folder: str, name: str) -> str:
    cls = plugins.load(folder, name)
    key = "steps" if folder == "steps" else _ONE[folder]
    given = _guarantee(folder, name)
    schema = cls.model_json_schema()
    lines = [NOTE, f"# {_ONE[folder]} `{name}`", "", cleandoc(cls.__doc__ or ""), ""]
    lines += ["```yaml", *_under(key, cls.example), "```", ""]
    lines += ["## Options", "", *_options(schema)]
    for title, nested in schema.get("$defs", {}).items():
        lines += [f"### {title}", "", nested.get("description", ""), "", *_options(nested)]
    lines += ["## Guarantee", "", f"As written above: **{given.level.label}**: {given.because}.", ""]
    lines += ["Options and settings can change it; see [guarantees](../guarantees.md).", ""]
    lines += ["## Facts", "", *[f"- {fact}" for fact in _facts(folder, name)], ""]
    return "\n".join(lines)


def _facts(folder: str, name: str) -> Iterator[str]:
    cls = plugins.load(folder, name)
    pipeline = _loaded(folder, name)
    part: Any = {"sources": pipeline.source, "sinks": pipeline.sink, "steps": (*pipeline.steps, None)[0]}[folder]
    if folder == "sinks":
        yield f"Modes: {', '.join(cls.modes)}"
        yield f"Can be read back: {'yes' if part.keeps else 'no'}"
    if folder == "steps":
        may_group = cls.aggregates is not Step.aggregates
        yield f"Keeps state between batches: {'yes' if part.keeps_state else 'where it groups' if may_group else 'no'}"
        if cls.shorthand:
            yield f"Short form: `{name}: …` fills `{cls.shorthand}`"
    else:
        triggers = ["every", "once", "available_now"]
        triggers += [kind for kind in ("continuous", "real_time") if getattr(cls, kind)]
        yield f"Triggers: {', '.join(triggers)}"
    if hasattr(cls, "data_source"):
        yield f'In plain PySpark: `format("{cls.data_source().name()}")` after `penstock.register(spark)`'
    jars = ", ".join(f"`{group}`" for group in part.jars)
    yield f"Jars, fetched when needed: {jars or 'none'}"
    yield f"Code: [`src/penstock/{folder}/{name}.py`](../../src/penstock/{folder}/{name}.py)"


def _options(schema: dict[str, Any]) -> list[str]:
    properties = schema.get("properties", {})
    if not properties:
        return ["None.", ""]
    required = schema.get("required", ())
    rows = ["| option | type | default | what it says |", "|---|---|---|---|"]
    for name, field in properties.items():
        default = "required" if name in required else _default(field.get("default"))
        rows.append(f"| `{name}` | {_type(field)} | {default} | {_cell(field.get('description', ''))} |")
    return [*rows, ""]


def _type(field: dict[str, Any]) -> str:
    if "$ref" in field:
        title = field["$ref"].rpartition("/")[2]
        return f"[{title.lower()}](#{title.lower()})"
    if "anyOf" in field:
        return " or ".join(_type(kind) for kind in field["anyOf"] if kind.get("type") != "null")
    if "enum" in field or "const" in field:
        return ", ".join(f"`{value}`" for value in field.get("enum", [field.get("const")]))
    if field.get("format") == "password":
        return "secret, by reference"
    if field.get("type") == "array":
        return f"list of {_type(field['items'])}s"
    if field.get("type") == "object":
        return "values by name"
    word = _TYPES.get(field.get("type", ""), "anything")
    if "exclusiveMinimum" in field:
        return f"{word} above {field['exclusiveMinimum']}"
    return f"{word}, {field['minimum']} or more" if "minimum" in field else word


def _default(value: Any) -> str:
    if value is None or value in ([], {}, ()):
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _index(folder: str) -> str:
    lines = [NOTE, f"# {folder.title()}", ""]
    for name in own(folder):
        summary = cleandoc(plugins.load(folder, name).__doc__ or "").split("\n\n")[0]
        lines.append(f"- [`{name}`]({name}.md): {' '.join(summary.split())}")
    return "\n".join([*lines, ""])


def _parts() -> str:
    lines = ["| part | guarantee | because |", "|---|---|---|"]
    for folder in ("sources", "sinks"):
        for name in own(folder):
            given = _guarantee(folder, name)
            part = f"{_ONE[folder]} [`{name}`](docs/{folder}/{name}.md)"
            lines.append(f"| {part} | {given.level.label} | {_cell(given.because)} |")
    return "\n".join([*lines, ""])


def _cli() -> str:
    context = click.Context(penstock, info_name="penstock")
    lines = [NOTE, "# The command line", "", "`penstock --help` and `explain` start no JVM.", ""]
    lines += ["Exit codes: 0 fine; 1 a finding, a failed run or a guarantee below what is required; 2 a wrong call,"]
    lines += ["file or environment; 3 a check that could not be made.", ""]
    for name in COMMANDS:
        command = penstock.get_command(context, name)
        if command is None:
            raise KeyError(name)
        arguments = [_argument(param) for param in command.params if isinstance(param, click.Argument)]
        options = [param for param in command.params if isinstance(param, click.Option)]
        usage = " ".join(["penstock", name, *(["[OPTIONS]"] if options else []), *arguments])
        lines += [f"## `{usage}`", "", cleandoc(command.help or ""), ""]
        if options:
            lines += ["| option | default | what it does |", "|---|---|---|"]
            for option in options:
                value = "" if option.is_flag else f" {(option.metavar or option.type.name).upper()}"
                default = f"`{option.default}`" if option.show_default else ""
                lines.append(f"| `{', '.join(option.opts)}{value}` | {default} | {_cell(option.help or '')} |")
            lines.append("")
    return "\n".join(lines)


def _argument(argument: click.Argument) -> str:
    name = f"{argument.human_readable_name}{'...' if argument.nargs == -1 else ''}"
    return name if argument.required else f"[{name}]"


if __name__ == "__main__":
    main()
