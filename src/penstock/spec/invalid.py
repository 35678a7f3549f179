"""Pydantic's complaints in the house form: which option, what is wrong with it, what to write instead."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from pydantic import ValidationError

from penstock import plugins
from penstock.secrets import Referenced

_WORDS = (
    (r"^Value error, ", ""),
    (r"^Field required$", "is missing"),
    (r"^(Input|String|Value|Tuple) should ", "must "),
    (r"be a valid string$", "be text"),
    (r"be a valid tuple$", "be a list"),
    (r"be a valid dictionary$", "be keys with values"),
    (r"be a valid dictionary or instance of .*$", "be keys with values"),
    (r"be a valid integer.*$", "be a whole number"),
    (r"be a valid boolean.*$", "be true or false"),
    (r"have at least 1 (character|item).*$", "not be empty"),
    (r"match pattern '(.*)'$", r"match \1"),
)
_FIXES = {
    "string_type": "write it in quotes if it is meant as text",
    "tuple_type": "write [one, two]",
    "dict_type": "write {name: value}",
    "model_type": "write {name: value}",
}


class Fault(NamedTuple):
    """One complaint, and where in the options it belongs."""

    what: str
    why: str
    fix: str
    place: tuple[str | int, ...]


def explain(cls: type[Any], name: str, error: ValidationError, *, secret_texts: Iterable[Referenced]) -> Fault:
    """The most telling complaint of a validation: an unknown key first, then the deepest one."""
    complaints = error.errors(include_url=False)
    first = min(complaints, key=lambda item: (item["type"] != "extra_forbidden", -len(item["loc"])))
    # Pydantic puts the branch of a union it tried (`dict[str,int]`) among the keys.
    place = tuple(item for item in first["loc"] if not str(item).endswith("]"))
    label = ".".join(str(item) for item in (name, *place))
    message = first["msg"]
    for pattern, words in _WORDS:
        message = re.sub(pattern, words, message)
    more = len(complaints) - 1
    why = f"the {name} options don't fit" + (f", and {more} more like it" if more else "")
    if first["type"] == "extra_forbidden":
        known = _options_at(cls, place[:-1])
        inner = ".".join(str(item) for item in (name, *place[:-1]))
        return Fault(
            f"{inner} has no option {place[-1]!r}",
            f"its options are: {', '.join(known)}",
            plugins.did_you_mean(str(place[-1]), known),
            place,
        )
    if first["type"] == "missing":
        return Fault(f"{label} is missing", f"{name} can't do without it", f"add `{place[-1]}:`", place)
    fix = _FIXES.get(first["type"]) or _description(cls, place) or "see `penstock schema` for what it may be"
    for text in secret_texts:
        message = message.replace(text, text.reference) if len(text) > 1 else message
    return Fault(f"{label}: {message}" if message[:5] != "must " else f"{label} {message}", why, fix, place)


def _description(cls: type[Any], place: tuple[str | int, ...]) -> str:
    found = next((info for name, info in cls.model_fields.items() if place and (info.alias or name) == place[0]), None)
    return f"{place[0]}: {found.description}".rstrip(".") if found and found.description else ""


def _options_at(cls: type[Any], place: tuple[str | int, ...]) -> list[str]:
    """The options of the model that is nested at a place in a plug-in."""
    for key in place:
        found = next((info for name, info in cls.model_fields.items() if (info.alias or name) == key), None)
        cls = found.annotation if found and hasattr(found.annotation, "model_fields") else cls
    return [info.alias or name for name, info in cls.model_fields.items()]
