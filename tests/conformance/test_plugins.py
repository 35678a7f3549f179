"""What every source, step and sink keeps to, found by file name."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from typing import Any, get_args, get_origin

import pytest
from pydantic import BaseModel, SecretStr

from penstock import plugins
from penstock.guarantee import Guarantee, Level
from penstock.plugins import Plugin
from penstock.sinks import Sink
from penstock.sources import Source
from penstock.spec.json_schema import json_schema
from penstock.steps import Step

ALL = [(folder, name) for folder in plugins.FOLDERS for name in plugins.names(folder)]
KINDS: dict[str, type[Plugin]] = {"sources": Source, "steps": Step, "sinks": Sink}
MODES = {"append", "update", "complete"}
HEAVY = ("pyspark", "py4j", "pandas", "pyarrow", "confluent_kafka", "obstore", "boto3")


@pytest.fixture(params=ALL, ids=lambda pair: "-".join(pair))
def place(request: pytest.FixtureRequest) -> tuple[str, str]:
    found: tuple[str, str] = request.param
    return found


@pytest.fixture
def cls(place: tuple[str, str]) -> type[Any]:
    return plugins.load(*place)


def made(cls: type[BaseModel], **given: Any) -> Any:
    """An instance with something in every field that must be given, unchecked."""
    values = {
        info.alias or name: _something(info.annotation) for name, info in cls.model_fields.items() if info.is_required()
    }
    return cls.model_construct(**{**values, **given})


def _something(kind: Any) -> Any:
    if inspect.isclass(kind) and issubclass(kind, BaseModel):
        return made(kind)
    if get_origin(kind) is tuple:
        return ("x",)
    choices = get_args(kind)
    return choices[0] if choices and isinstance(choices[0], str) else "x"


def models(cls: type[BaseModel]) -> list[type[BaseModel]]:
    """A plug-in's model and those nested in it."""
    nested = [info.annotation for info in cls.model_fields.values()]
    return [cls, *[kind for kind in nested if inspect.isclass(kind) and issubclass(kind, BaseModel)]]


def test_the_class_is_named_as_the_file(place: tuple[str, str], cls: type[Any]) -> None:
    folder, name = place
    assert issubclass(cls, KINDS[folder])
    assert cls.__name__ == "".join(word.title() for word in name.split("_"))
    assert cls.kind() == name
    assert not inspect.isabstract(cls)


def test_the_docstrings_say_what_it_is(cls: type[Any]) -> None:
    for text in (cls.__doc__, sys.modules[cls.__module__].__doc__):
        first = (text or "").strip().split("\n\n")[0]
        assert first.endswith((".", ")."))
        assert len(first) > 10
    assert cls.__doc__ != KINDS[cls.__module__.split(".")[1]].__doc__


def test_every_option_is_described(cls: type[Any]) -> None:
    for model in models(cls):
        for name, info in model.model_fields.items():
            assert info.description, f"{model.__name__}.{name}"
            assert info.description.endswith("."), f"{model.__name__}.{name}"


def test_options_are_frozen_and_unknown_ones_refused(cls: type[Any]) -> None:
    for model in models(cls):
        assert model.model_config.get("frozen")
        assert model.model_config.get("extra") == "forbid"


def test_a_short_form_names_an_option(cls: type[Any]) -> None:
    assert cls.shorthand is None or cls.shorthand in {info.alias or name for name, info in cls.model_fields.items()}


def test_the_guarantee_has_a_reason_and_a_way_up(place: tuple[str, str], cls: type[Any]) -> None:
    if place[0] == "steps":
        doubt = made(cls).nondeterminism
        assert not doubt.endswith(".")
        return
    guarantee = made(cls).guarantee
    assert isinstance(guarantee, Guarantee)
    assert len(guarantee.because) > 10
    assert not guarantee.because.endswith(".")
    assert not guarantee.because[0].isupper() or guarantee.because.split()[0].isupper()
    assert (guarantee.level is Level.EXACTLY_ONCE) == (not guarantee.raise_by)
    assert not guarantee.raise_by.endswith(".")


def test_a_sink_says_which_modes_it_takes(place: tuple[str, str], cls: type[Any]) -> None:
    if place[0] == "sinks":
        assert cls.modes
        assert set(cls.modes) <= MODES


def test_a_source_says_what_a_start_without_a_checkpoint_does(place: tuple[str, str], cls: type[Any]) -> None:
    if place[0] == "sources":
        assert made(cls).start_if_lost in ("repeats", "skips")


def test_jars_and_settings_are_texts(cls: type[Any]) -> None:
    part = made(cls)
    assert all(isinstance(group, str) for group in part.jars)
    assert all(isinstance(text, str) for pair in part.settings.items() for text in pair)


def test_a_secret_is_never_shown(cls: type[Any]) -> None:
    for model in models(cls):
        secret = {
            name
            for name, info in model.model_fields.items()
            if SecretStr in (info.annotation, *get_args(info.annotation))
        }
        for name in model.model_fields:
            assert name in secret or name not in ("password", "token", "secret", "access_key"), (
                f"{name} must be a SecretStr"
            )
        given: dict[str, Any] = {name: SecretStr("hunter2") for name in secret}
        if "options" in model.model_fields:
            given["options"] = {"x.secret.key": "hunter2", "uri": "jdbc:x://h/?password=hunter2"}
        part = made(model, **given)
        assert "hunter2" not in repr(part) + str(part)


def test_it_is_in_the_json_schema(place: tuple[str, str], cls: type[Any], schema: dict[str, Any]) -> None:
    own = schema["$defs"][".".join(place)]
    assert set(own.get("properties", {})) == {info.alias or name for name, info in cls.model_fields.items()}
    assert own["description"]
    assert own["additionalProperties"] is False


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return json_schema()


@pytest.fixture(scope="module")
def loads() -> dict[str, list[str]]:
    """The heavy modules that each plug-in's module brings, each told in a process where none was there before."""
    script = (
        "import importlib, json, sys\n"
        "told = {}\n"
        "for name in json.load(sys.stdin):\n"
        "    importlib.import_module(name)\n"
        f"    heavy = [each for each in {HEAVY!r} if each in sys.modules]\n"
        "    told[name] = heavy\n"
        "    for each in list(sys.modules):\n"
        "        if each.partition('.')[0] in heavy:\n"
        "            del sys.modules[each]\n"
        "print(json.dumps(told))\n"
    )
    names = [f"penstock.{folder}.{name}" for folder, name in ALL]
    done = subprocess.run(
        [sys.executable, "-c", script], input=json.dumps(names), capture_output=True, text=True, check=True
    )
    told: dict[str, list[str]] = json.loads(done.stdout)
    return told


def test_its_module_loads_nothing_heavy(place: tuple[str, str], loads: dict[str, list[str]]) -> None:
    assert loads[f"penstock.{place[0]}.{place[1]}"] == []
