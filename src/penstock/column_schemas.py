"""JSON Schema to Spark's schema, for a parse step."""

from __future__ import annotations

from typing import Any

_TYPES = {"string": "string", "integer": "long", "number": "double", "boolean": "boolean"}
_FORMATS = {"date-time": "timestamp", "date": "date"}


def spark_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Spark's schema (as its own JSON) for a JSON Schema object or for what is already one of Spark's."""
    if schema.get("type") == "struct" and "fields" in schema:
        return schema
    converted = _convert(schema, "$")
    if not isinstance(converted, dict) or converted.get("type") != "struct":
        raise ValueError("the schema must describe an object with properties")
    return converted


def _convert(schema: Any, where: str) -> Any:
    if not isinstance(schema, dict):
        raise ValueError(f"{where}: {schema!r} does not describe a column")
    kind = schema.get("type")
    if isinstance(kind, list):
        kinds = [item for item in kind if item != "null"]
        if len(kinds) != 1:
            raise ValueError(f"{where}: a value of several types ({', '.join(map(str, kinds))}) has no column type")
        kind = kinds[0]
    if kind == "string" and schema.get("format") in _FORMATS:
        return _FORMATS[schema["format"]]
    if not isinstance(kind, str):
        raise ValueError(f"{where}: type {kind!r} has no column type")
    if kind in _TYPES:
        return _TYPES[kind]
    if kind == "array" and isinstance(schema.get("items"), dict):
        return {"type": "array", "elementType": _convert(schema["items"], f"{where}[]"), "containsNull": True}
    if kind == "object" and isinstance(schema.get("properties"), dict):
        required = schema.get("required", ())
        return {
            "type": "struct",
            "fields": [
                {
                    "name": name,
                    "type": _convert(item, f"{where}.{name}"),
                    "nullable": name not in required,
                    "metadata": {},
                }
                for name, item in schema["properties"].items()
            ],
        }
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        value = _convert(schema["additionalProperties"], f"{where}.*")
        return {"type": "map", "keyType": "string", "valueType": value, "valueContainsNull": True}
    raise ValueError(f"{where}: type {kind!r} has no column type")
