"""What is written about Penstock agrees with Penstock: examples load, generated pages are fresh, links resolve."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from penstock import plugins, sinks
from penstock.guarantee import Level
from penstock.spec.explain import explain
from penstock.spec.load import load

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
VARIABLES = {"KAFKA": "localhost:9092", "KAFKA_PASSWORD": "not-a-real-one"}
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def _make_docs() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_docs", ROOT / "scripts" / "make_docs.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


make_docs = _make_docs()
PLUGINS = [(folder, name) for folder in plugins.FOLDERS for name in make_docs.own(folder)]


def _blocks(page: Path, language: str) -> Iterator[str]:
    return (body for found, body in _FENCE.findall(page.read_text(encoding="utf-8")) if found == language)


def _pipelines() -> list[object]:
    return [
        pytest.param(block, id=f"{page.relative_to(ROOT)}-{number}")
        for page in PAGES
        for number, block in enumerate(_blocks(page, "yaml"))
        if re.match(r"(#[^\n]*\n)*name:", block)
    ]


@pytest.mark.parametrize(("folder", "name"), PLUGINS)
def test_every_plugin_has_an_example_that_loads(folder: str, name: str, tmp_path: Path) -> None:
    assert plugins.load(folder, name).example
    file = tmp_path / "example.yml"
    file.write_text(make_docs.example_file(folder, name), encoding="utf-8")
    pipeline = load(file, variables=VARIABLES)
    assert name in [part.kind() for part in pipeline.parts]


@pytest.mark.parametrize(("folder", "name"), PLUGINS)
def test_every_option_is_described(folder: str, name: str) -> None:
    schema = plugins.load(folder, name).model_json_schema()
    for part in (schema, *schema.get("$defs", {}).values()):
        for option, field in part.get("properties", {}).items():
            assert field.get("description"), f"{name}.{option} has no description"


def test_generated_pages_are_up_to_date() -> None:
    made = make_docs.pages()
    stale = [path for path, text in made.items() if not _same(ROOT / path, text)]
    assert not stale, "run `make docs`"
    there = {str(p.relative_to(ROOT)) for folder in plugins.FOLDERS for p in ROOT.glob(f"docs/{folder}/*.md")}
    assert there <= set(made), "a page is left of a plug-in that is gone; run `make docs`"


def test_the_table_in_the_readme_is_up_to_date() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert make_docs.with_table(readme) == readme, "run `make docs`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_resolves(page: Path) -> None:
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    for link in _LINK.findall(text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link} leads nowhere"
        if anchor:
            assert anchor in _anchors(target), f"{link}: the page has no such heading"


@pytest.mark.parametrize("text", _pipelines())
def test_every_pipeline_in_the_documentation_loads(text: str, tmp_path: Path) -> None:
    file = tmp_path / "pipeline.yml"
    file.write_text(text, encoding="utf-8")
    pipeline = load(file, variables=VARIABLES)
    assert explain(pipeline).level >= pipeline.require


@pytest.mark.parametrize("file", sorted(ROOT.glob("examples/*.yml")), ids=lambda file: file.name)
def test_every_example_gives_what_it_requires(file: Path) -> None:
    pipeline = load(file, variables=VARIABLES)
    assert pipeline.name == file.stem
    assert explain(pipeline).level >= pipeline.require


def test_the_readme_shows_the_file_that_the_demo_runs() -> None:
    shown = list(_blocks(ROOT / "README.md", "yaml"))
    assert (ROOT / "examples" / "hourly_counts.yml").read_text(encoding="utf-8") in shown


def test_the_sink_in_contributing_is_one_file_that_works_when_dropped_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = next(block for block in _blocks(ROOT / "CONTRIBUTING.md", "python") if "(Sink)" in block)
    name = re.search(r"^# src/penstock/sinks/(\w+)\.py$", code, re.MULTILINE)
    assert name
    (tmp_path / f"{name[1]}.py").write_text(code, encoding="utf-8")
    monkeypatch.setattr(sinks, "__path__", [*sinks.__path__, str(tmp_path)])
    plugins.names.cache_clear()
    try:
        assert name[1] in plugins.names("sinks")
        file = tmp_path / "pipeline.yml"
        file.write_text(make_docs.example_file("sinks", name[1]), encoding="utf-8")
        assert explain(load(file, variables={})).level is Level.EXACTLY_ONCE
    finally:
        sys.modules.pop(f"penstock.sinks.{name[1]}", None)
        plugins.names.cache_clear()


def _same(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


def _anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as they are made from their text."""
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
