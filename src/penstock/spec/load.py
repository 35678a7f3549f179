"""A pipeline file to a checked Pipeline, or an error that names file, line and cure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from penstock import plugins
from penstock.errors import SpecError
from penstock.guarantee import Level
from penstock.secrets import Referenced
from penstock.spec import invalid, rules
from penstock.spec.pipeline import MODES, Pipeline, Trigger
from penstock.spec.references import environment, resolve
from penstock.spec.yaml_text import Document, parse
from penstock.storage import absolute

KEYS = ("name", "source", "steps", "sink", "mode", "trigger", "checkpoint", "require", "quarantine", "spark")
REQUIRED = ("name", "source", "sink", "checkpoint")
_FORMS = {
    "trigger": "write {every: 10 seconds}, once, available_now, {continuous: 1 second} or {real_time: 5 minutes}",
    "require": f"write one of: {', '.join(level.label for level in Level)}",
}
_NAME = re.compile(r"^[A-Za-z][A-Za-z0-9_-]{0,63}$")
# Options of plug-ins that are paths, taken from the pipeline file's folder and not from where the command runs:
# a checkpoint that moved with the working directory would be a silent new start.
_SQLITE = "jdbc:sqlite:"
_PATH_FIELDS = ("path", "warehouse", "ca_file")


def load(path: str | Path, *, variables: Mapping[str, str] | None = None) -> Pipeline:
    """Read, resolve and check one pipeline file."""
    file = Path(path).absolute()
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise SpecError(
            "there is no such file",
            file=str(path),
            why=f"it was looked for as {file}",
            fix="check the path, or run `penstock init`",
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise SpecError(
            "the file can't be read",
            file=str(path),
            why=str(reason),
            fix="give the path of a pipeline file, as UTF-8 text",
        ) from None
    document = parse(text, file=str(path))
    if not isinstance(document.value, dict):
        raise SpecError(
            "the file holds no keys",
            file=str(path),
            line=1,
            why="a pipeline file is a mapping of keys to values",
            fix=f"begin with `name:`; keys: {', '.join(KEYS)}",
        )
    value = resolve(document, file=file, variables=environment(file.parent) if variables is None else variables)
    pipeline = _Builder(str(path), file, document).build(value)
    rules.check(pipeline)
    return pipeline


class _Builder:
    def __init__(self, shown: str, file: Path, document: Document) -> None:
        self.shown = shown
        self.file = file
        self.document = document

    def error(self, what: str, *path: str | int, why: str = "", fix: str = "") -> SpecError:
        return SpecError(what, file=self.shown, line=self.document.line(path), why=why, fix=fix)

    def build(self, value: dict[str, Any]) -> Pipeline:
        for key in value:
            if key not in KEYS:
                raise self.error(
                    f"unknown key {key!r}",
                    key,
                    why="a key that is not known would be ignored, and do nothing",
                    fix=plugins.did_you_mean(key, KEYS),
                )
        for key in REQUIRED:
            if value.get(key) in (None, "", {}):
                raise self.error(
                    f"{key!r} is missing",
                    key,
                    why=f"every pipeline has: {', '.join(REQUIRED)}",
                    fix=f"add `{key}:`",
                )
        # A key without a value is as good as no key.
        value = {key: item for key, item in value.items() if item is not None}
        steps = value.get("steps", [])
        if not isinstance(steps, list):
            raise self.error(
                "steps must be a list", "steps", why="they run in their order", fix="begin each step with `- `"
            )
        checkpoint = self._path("checkpoint", value["checkpoint"])
        return Pipeline(
            name=self._name(value["name"]),
            source=self._plugin("sources", value["source"], "source"),
            steps=tuple(self._plugin("steps", step, "steps", number) for number, step in enumerate(steps)),
            sink=self._plugin("sinks", value["sink"], "sink"),
            mode=self._one_of("mode", value.get("mode", "append"), MODES),
            trigger=self._parsed("trigger", value.get("trigger", {"every": "10 seconds"}), Trigger.parse),
            checkpoint=checkpoint,
            require=self._parsed("require", value.get("require", "exactly-once"), _level),
            quarantine=self._path("quarantine", value.get("quarantine") or f"{checkpoint}.quarantine"),
            spark=self._spark(value.get("spark", {})),
            file=self.file,
            lines=self.document.lines,
        )

    def _name(self, value: Any) -> str:
        if not isinstance(value, str) or not _NAME.match(value):
            raise self.error(
                f"name {_shown(value)} can't be used",
                "name",
                why="it names folders, a Spark query and its metrics",
                fix="use letters, digits, - and _, a letter first; in quotes if YAML takes it for something else",
            )
        return value

    def _one_of(self, key: str, value: Any, known: tuple[Any, ...]) -> Any:
        if value not in known:
            raise self.error(
                f"{key} {_shown(value)} is not known",
                key,
                why=f"there are: {', '.join(known)}",
                fix=plugins.did_you_mean(str(value), list(known)),
            )
        return value

    def _parsed(self, key: str, value: Any, parse: Any) -> Any:
        try:
            return parse(value)
        except ValueError as error:
            raise self.error(
                f"{key} {_shown(value)} can't be used", key, why=_why(value, error), fix=_FORMS[key]
            ) from None

    def _path(self, key: str, value: Any) -> str:
        if not isinstance(value, str):
            raise self.error(
                f"{key} must be a path",
                key,
                why=f"it is {_shown(value)}",
                fix=f"write {key}: data/…, or s3a://bucket/…",
            )
        try:
            return absolute(value, folder=self.file.parent)
        except ValueError as error:
            raise self.error(f"{key} can't be used as a path", key, why=str(error), fix="choose another path") from None

    def _spark(self, value: Any) -> dict[str, str]:
        if not isinstance(value, dict):
            raise self.error(
                "spark must be settings by name",
                "spark",
                why=f"it is {_shown(value)}",
                fix="write spark: {spark.sql.shuffle.partitions: 4}",
            )
        for key, item in value.items():
            if not key.startswith("spark."):
                raise self.error(
                    f"{key!r} is not a Spark setting",
                    "spark",
                    key,
                    why="Spark reads only settings whose names begin with `spark.`",
                    fix=f"write spark.{key}, or remove it",
                )
            if not isinstance(item, str | int | float):
                raise self.error(
                    f"{key} has no value that Spark could take",
                    "spark",
                    key,
                    why="a setting is one text, number, true or false",
                    fix="give it one, or remove it",
                )
        return {key: str(item).lower() if isinstance(item, bool) else str(item) for key, item in value.items()}

    def _plugin(self, folder: str, value: Any, *path: str | int) -> Any:
        what = {"sources": "source", "steps": "step", "sinks": "sink"}[folder]
        if isinstance(value, str):
            value = {value: {}}
        if not isinstance(value, dict) or len(value) != 1:
            raise self.error(
                f"a {what} has one key, its kind",
                *path,
                why=f"this one has {', '.join(value) or 'none'}" if isinstance(value, dict) else "this has none",
                fix=f"write one of: {', '.join(plugins.names(folder))}",
            )
        name, options = next(iter(value.items()))
        try:
            cls = plugins.load(folder, name)
        except KeyError:
            known = plugins.names(folder)
            raise self.error(
                f"unknown {what} {name!r}",
                *path,
                name,
                why=f"there are: {', '.join(known)}",
                fix=plugins.did_you_mean(name, known),
            ) from None
        if options is None:
            options = {}
        if not isinstance(options, dict):
            if not cls.shorthand:
                raise self.error(
                    f"{name} needs its options by name",
                    *path,
                    name,
                    why="it has more than one",
                    fix=f"write {name}: {{option: value}}; options: {', '.join(fields(cls)) or 'none'}",
                )
            options = {cls.shorthand: options}
        self._unknown_fields(cls, options, (*path, name))
        try:
            return plugins.validate(cls, _absolute_paths(options, self.file.parent))
        except ValidationError as error:
            raise self._invalid(cls, name, error, options, (*path, name)) from None
        except ValueError as error:
            raise self.error(
                f"a path of {name} can't be used", *path, name, why=str(error), fix="choose another path"
            ) from None

    def _unknown_fields(self, cls: type[Any], options: dict[str, Any], path: tuple[str | int, ...]) -> None:
        known = fields(cls)
        for key in options:
            if key not in known:
                raise self.error(
                    f"{path[-1]} has no option {key!r}",
                    *path,
                    key,
                    why=f"its options are: {', '.join(known) or 'none'}",
                    fix=plugins.did_you_mean(key, known) if known else "remove it",
                )

    def _invalid(
        self, cls: type[Any], name: str, error: ValidationError, options: Any, path: tuple[str | int, ...]
    ) -> SpecError:
        fault = invalid.explain(cls, name, error, secret_texts=_referenced(options))
        return self.error(fault.what, *path, *fault.place, why=fault.why, fix=fault.fix)


def fields(cls: type[Any]) -> list[str]:
    """The options of a plug-in as they are written in a file."""
    return [info.alias or name for name, info in cls.model_fields.items()]


def _shown(value: Any) -> str:
    """A value for a message: what came by reference is shown as the reference, never as what it stands for."""
    if isinstance(value, Referenced):
        return repr(value.reference)
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_shown(item)}' for key, item in value.items())}}}"
    return str(value) if isinstance(value, int | float | list) else repr(value)


def _why(value: Any, error: ValueError) -> str:
    return "what the reference stands for does not fit" if list(_referenced(value)) else str(error)


def _referenced(value: Any) -> Iterator[Referenced]:
    """Every text in a value that came by reference."""
    if isinstance(value, Referenced):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _referenced(item)


def _level(text: Any) -> Level:
    return Level.parse(str(text))


def _absolute_paths(options: dict[str, Any], folder: Path) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in options.items():
        if isinstance(value, dict):
            made[key] = _absolute_paths(value, folder) if key == "catalog" else value
        elif key in _PATH_FIELDS and value and isinstance(value, str):
            made[key] = absolute(value, folder=folder)
        elif key == "uri" and isinstance(value, str) and value.startswith(_SQLITE):
            made[key] = _SQLITE + absolute(value.removeprefix(_SQLITE), folder=folder)
        else:
            made[key] = value
    return made
