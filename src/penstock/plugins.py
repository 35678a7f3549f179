"""Plug-ins: one file in one folder each, found by its file name; third parties use entry points.

`sources/kafka.py` holds the class `Kafka`, is written `kafka:` in a pipeline file, and nothing else is edited
to add it. A package outside Penstock names its class under the entry point group `penstock.sources`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema

from penstock.errors import UsageError
from penstock.secrets import hide, masked

FOLDERS = ("sources", "steps", "sinks")


def _as_texts(value: Any) -> Any:
    if value is None:
        return {}
    if not isinstance(value, dict):
        return value
    return {
        key: str(item).lower() if isinstance(item, bool) else str(item) if isinstance(item, int | float) else item
        for key, item in value.items()
    }


# Spark takes every option as text; a file may say `true` or `100`.
Options = Annotated[dict[str, str], BeforeValidator(_as_texts)]
# One name, or a list of them.
Names = Annotated[
    tuple[str, ...],
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]


def shown(value: Any) -> Any:
    """A field's value as it may be shown."""
    return masked(value) if isinstance(value, dict) else hide(value) if isinstance(value, str) else value


class Plugin(BaseModel):
    """A part of a pipeline: its fields are its options, so that configuration and code can't drift."""

    # Built when a file first uses it: pydantic takes longer over a class than over all of a pipeline file.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    # The field that a bare value fills: `sql: select …` is short for `sql: {query: select …}`.
    shorthand: ClassVar[str | None] = None
    # How it is written in a pipeline file; its documentation page shows it, and a test loads it.
    example: ClassVar[str] = ""

    # The name of an entry point, for a plug-in that came by one.
    entry_name: ClassVar[str] = ""

    @classmethod
    def kind(cls) -> str:
        """The name in a pipeline file: the module's own, or the entry point's."""
        return cls.entry_name or cls.__module__.rpartition(".")[2]

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """The fields, without the secrets that came by reference into free options."""
        return [(name, shown(value)) for name, value in super().__repr_args__()]

    @property
    def jars(self) -> tuple[str, ...]:
        """The groups of jars that this part needs on the class path."""
        return ()

    @property
    def settings(self) -> dict[str, str]:
        """The session settings that this part needs."""
        return {}


def validate(cls: type[Any], options: dict[str, Any]) -> Any:
    """A plug-in with these options; pydantic's ValidationError if they don't fit."""
    with _no_pydantic_plugins():
        return cls.model_validate(options)


@contextmanager
def _no_pydantic_plugins() -> Iterator[None]:
    """Build our own models without pydantic's search for plug-ins of its own.

    It imports importlib.metadata and reads every installed package's entry points, which is an eighth of the
    time of `explain`. Only the models that are built meanwhile do without; those of the user's code don't.
    """
    name = "pydantic.plugin._loader"
    if name in sys.modules:
        yield
        return
    sys.modules[name] = stand_in = ModuleType(name)
    vars(stand_in)["get_plugins"] = tuple
    try:
        yield
    finally:
        del sys.modules[name]


@cache
def names(folder: str) -> tuple[str, ...]:
    """Every plug-in of a folder, Penstock's own and third parties', by name."""
    import pkgutil

    package = importlib.import_module(f"penstock.{folder}")
    own = {module.name for module in pkgutil.iter_modules(package.__path__) if not module.name.startswith("_")}
    return tuple(sorted(own | set(_entry_points(folder))))


def load(folder: str, name: str) -> type[Any]:
    """The class of one plug-in; KeyError if there is none of that name."""
    if not name.isidentifier() or name.startswith("_"):
        raise KeyError(name)
    try:
        module = importlib.import_module(f"penstock.{folder}.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"penstock.{folder}.{name}":
            raise
        points = _entry_points(folder)
        if name not in points:
            raise KeyError(name) from None
        return _load_entry_point(folder, points[name])
    found: type[Any] = getattr(module, "".join(word.title() for word in name.split("_")))
    return found


def did_you_mean(word: str, known: tuple[str, ...] | list[str]) -> str:
    """A hint for a near miss, else the list of what there is."""
    from difflib import get_close_matches

    near = get_close_matches(word, known, n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else f"use one of: {', '.join(known)}"


def _load_entry_point(folder: str, point: Any) -> type[Any]:
    try:
        loaded: type[Any] = point.load()
    except (ImportError, AttributeError) as error:
        raise UsageError(
            f"{folder[:-1]} {point.name} can't be loaded",
            why=f"the entry point {point.value} of an installed package fails: {error}",
            fix="reinstall or remove the package that brings it",
        ) from None
    if not isinstance(loaded, type) or not issubclass(loaded, Plugin):
        raise UsageError(
            f"{folder[:-1]} {point.name} is not a plug-in",
            why=f"the entry point {point.value} of an installed package is not a class made from penstock.{folder}",
            fix="reinstall or remove the package that brings it",
        )
    loaded.entry_name = point.name
    return loaded


@cache
def _entry_points(folder: str) -> dict[str, Any]:
    # Reading the metadata of every installed package costs more than all else that `explain` does, so it
    # happens only for a name that Penstock itself does not have.
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=f"penstock.{folder}")}
