"""`penstock schema` takes the files that penstock takes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock import plugins
from penstock.spec.json_schema import json_schema
from penstock.spec.load import KEYS

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yml"))
TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


def faults(schema: dict[str, Any], value: Any, root: dict[str, Any], where: str = "$") -> list[str]:
    """What a value breaks, for the few words of JSON Schema that ours uses."""
    if "$ref" in schema:
        return faults(root["$defs"][schema["$ref"].removeprefix("#/$defs/")], value, root, where)
    found = []
    kind = schema.get("type")
    if kind and (not isinstance(value, TYPES[kind]) or (kind == "integer" and isinstance(value, bool))):
        return [f"{where} is not {kind}"]
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{where} is not one of {schema['enum']}")
    if "const" in schema and value != schema["const"]:
        found.append(f"{where} is not {schema['const']}")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        found.append(f"{where} does not match")
    for word, fits in (("oneOf", lambda count: count == 1), ("anyOf", lambda count: count > 0)):
        if word in schema and not fits(sum(not faults(each, value, root, where) for each in schema[word])):
            found.append(f"{where} fits {word} wrongly")
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        found += [f"{where}.{key} is missing" for key in schema.get("required", ()) if key not in value]
        if len(value) > schema.get("maxProperties", len(value)) or len(value) < schema.get("minProperties", 0):
            found.append(f"{where} has {len(value)} keys")
        for key, item in value.items():
            if key in properties:
                found += faults(properties[key], item, root, f"{where}.{key}")
            elif schema.get("additionalProperties") is False:
                found.append(f"{where}.{key} is unknown")
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        found += [
            fault for n, item in enumerate(value) for fault in faults(schema["items"], item, root, f"{where}[{n}]")
        ]
    return found


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return json_schema()


def of(schema: dict[str, Any], text: str) -> list[str]:
    return faults(schema, yaml.safe_load(text), schema)


def test_the_command_prints_it(penstock: Callable[..., Any], schema: dict[str, Any]) -> None:
    ran = penstock("schema")
    assert ran.code == 0
    assert json.loads(ran.out) == json.loads(json.dumps(schema))


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_every_example_fits(schema: dict[str, Any], file: Path) -> None:
    assert of(schema, file.read_text()) == []


def test_the_project_of_init_fits(penstock: Callable[..., Any], schema: dict[str, Any], tmp_path: Path) -> None:
    penstock("init", tmp_path)
    assert of(schema, (tmp_path / "pipeline.yml").read_text()) == []


BASE = "name: t\nsource: rate\nsink:\n  noop:\ncheckpoint: ck\n"


@pytest.mark.parametrize(
    "add",
    [
        "",
        "trigger: once\n",
        "trigger: {every: 1 second}\n",
        "mode: complete\n",
        "steps: []\n",
        "steps: [dedupe: id]\n",
        "steps: [dedupe: [a, b]]\n",
        "steps: [dedupe: {keys: id}]\n",
        "steps: [sql: select 1]\n",
        "steps: [python: m:f]\n",
        "steps: [parse: {format: json, schema: {type: object}}]\n",
        "spark: {spark.x: 1}\n",
    ],
)
def test_what_may_be_written_fits(schema: dict[str, Any], add: str) -> None:
    assert of(schema, BASE + add) == []


@pytest.mark.parametrize(
    "text",
    [
        BASE + "chekpoint: x\n",
        BASE + "mode: apend\n",
        BASE + "trigger: {every: 1 second, once: x}\n",
        BASE + "steps: [sqll: x]\n",
        BASE + "steps: [watermark: {column: t}]\n",
        BASE.replace("source: rate", "source: {rate: {rows: 1}}"),
        BASE.replace("source: rate", "source: {rate: {}, files: {path: x}}"),
        BASE.replace("name: t", "name: 1"),
        BASE.replace("checkpoint: ck\n", ""),
    ],
)
def test_what_may_not_be_written_does_not_fit(schema: dict[str, Any], text: str) -> None:
    assert of(schema, text) != []


def test_every_key_and_plug_in_is_in_it(schema: dict[str, Any]) -> None:
    assert tuple(schema["properties"]) == KEYS
    for folder in plugins.FOLDERS:
        for name in plugins.names(folder):
            assert f"{folder}.{name}" in schema["$defs"]
    assert all("description" in item for item in schema["properties"].values())
