"""The JSON Schema of a pipeline file, for editors, made from the plug-ins themselves."""

from __future__ import annotations

from typing import Any

from penstock import plugins
from penstock.guarantee import Level
from penstock.spec.load import REQUIRED
from penstock.spec.pipeline import MODES


def json_schema() -> dict[str, Any]:
    """Everything that a pipeline file may say."""
    duration = {"type": "string", "examples": ["10 seconds", "1 minute"]}
    definitions: dict[str, Any] = {}
    step = _choice("steps", definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Penstock pipeline",
        "type": "object",
        "additionalProperties": False,
        "required": list(REQUIRED),
        "properties": {
            "name": {
                "type": "string",
                "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
                "description": "The pipeline's name.",
            },
            "source": {**_choice("sources", definitions), "description": "Where records come from."},
            "steps": {"type": "array", "items": step, "description": "What happens to them, in order."},
            "sink": {**_choice("sinks", definitions), "description": "Where results go."},
            "mode": {
                "enum": list(MODES),
                "default": "append",
                "description": "Which rows of the result a batch writes.",
            },
            "trigger": {
                "description": "When a batch begins.",
                "default": {"every": "10 seconds"},
                "oneOf": [
                    {"enum": ["once", "available_now"]},
                    *[
                        {
                            "type": "object",
                            "properties": {kind: duration},
                            "required": [kind],
                            "additionalProperties": False,
                        }
                        for kind in ("every", "continuous", "real_time")
                    ],
                ],
            },
            "checkpoint": {
                "type": "string",
                "description": "The folder that holds the query's place and state.",
            },
            "require": {
                "enum": [level.label for level in Level],
                "default": Level.EXACTLY_ONCE.label,
                "description": "The guarantee that the pipeline must give; below it, it does not start.",
            },
            "quarantine": {"type": "string", "description": "The folder for malformed and late records."},
            "spark": {"type": "object", "description": "Further Spark settings, by name."},
        },
        "$defs": definitions,
    }


def _choice(folder: str, definitions: dict[str, Any]) -> dict[str, Any]:
    """One key, which is a plug-in's name, with that plug-in's options."""
    properties: dict[str, Any] = {}
    for name in plugins.names(folder):
        cls = plugins.load(folder, name)
        schema = cls.model_json_schema(ref_template="#/$defs/{model}")
        definitions |= schema.pop("$defs", {})
        own = f"{folder}.{name}"
        definitions[own] = {**schema, "description": (cls.__doc__ or "").split("\n\n")[0]}
        full: dict[str, Any] = {"$ref": f"#/$defs/{own}"}
        if cls.shorthand:
            full = {"anyOf": [full, schema["properties"][cls.shorthand]]}
        elif not schema.get("required"):
            full = {"anyOf": [full, {"type": "null"}]}
        properties[name] = full
    one_of = {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 1,
    }
    bare = [name for name in properties if not plugins.load(folder, name).model_json_schema().get("required")]
    return {"oneOf": [one_of, {"enum": bare}]} if bare else one_of
