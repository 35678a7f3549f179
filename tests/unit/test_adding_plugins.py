"""Adding a plug-in is one file, or one entry point, and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import penstock
from penstock import plugins
from penstock.errors import UsageError
from penstock.spec.load import load

SINK = '''
"""A pigeon."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from penstock.guarantee import Guarantee, at_most
from penstock.sinks import Sink


class {name}(Sink):
    """Sends each row by pigeon."""

    loft: Annotated[str, Field(description="Where the pigeon lives.")]

    @property
    def guarantee(self) -> Guarantee:
        return at_most("a hawk may come between", raise_by="write to delta")

    def attach(self, writer):
        return writer.format("noop")
'''
PIPELINE = "name: t\nsource: rate\nsink:\n  {sink}: {{loft: roof}}\ncheckpoint: ck\nrequire: at-most-once\n"


def penstock_in(folder: Path, *path: Path, arguments: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """The command line of a process of its own, which finds modules in these folders first."""
    search = os.pathsep.join(map(str, [*path, Path(penstock.__file__).parents[1]]))
    return subprocess.run(
        [sys.executable, "-m", "penstock", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": search},
        capture_output=True,
        text=True,
        check=False,
    )


def works(folder: Path, *path: Path, sink: str) -> None:
    """The sink is loaded, explained and listed, and its options are checked."""
    (folder / "p.yml").write_text(PIPELINE.format(sink=sink))
    told = penstock_in(folder, *path, arguments=("explain", "--json", "p.yml"))
    assert told.returncode == 0, told.stderr
    said = json.loads(told.stdout)
    assert said["limited_by"] == f"sink {sink}"
    assert said["guarantee"] == "at-most-once"
    schema = json.loads(penstock_in(folder, *path, arguments=("schema",)).stdout)
    assert schema["$defs"][f"sinks.{sink}"]["description"] == "Sends each row by pigeon."
    assert sink in schema["properties"]["sink"]["oneOf"][0]["properties"]
    (folder / "p.yml").write_text(PIPELINE.format(sink=sink).replace("loft:", "lofd:"))
    refused = penstock_in(folder, *path, arguments=("explain", "p.yml"))
    assert refused.returncode == 2
    assert f"p.yml:4: {sink} has no option 'lofd'" in refused.stderr
    assert "did you mean 'loft'?" in refused.stderr
    (folder / "p.yml").write_text(PIPELINE.format(sink=sink[:-1]))
    assert f"did you mean '{sink}'?" in penstock_in(folder, *path, arguments=("explain", "p.yml")).stderr


def test_a_sink_is_one_file_dropped_into_the_folder(tmp_path: Path) -> None:
    package = tmp_path / "copy" / "penstock"
    shutil.copytree(Path(penstock.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "sinks" / "carrier_pigeon.py").write_text(SINK.format(name="CarrierPigeon"))
    works(tmp_path, tmp_path / "copy", sink="carrier_pigeon")


def test_a_sink_of_a_third_party_is_an_entry_point(tmp_path: Path) -> None:
    install(tmp_path / "site", "pigeonry:Homing")
    works(tmp_path, tmp_path / "site", sink="pigeon")


def install(site: Path, value: str) -> None:
    """Put a package with one entry point where Python finds it."""
    (site / "acme-1.0.dist-info").mkdir(parents=True)
    (site / "acme-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (site / "acme-1.0.dist-info" / "entry_points.txt").write_text(f"[penstock.sinks]\npigeon = {value}\n")
    (site / "pigeonry.py").write_text(SINK.format(name="Homing"))


@pytest.fixture
def _fresh() -> Iterator[None]:
    plugins._entry_points.cache_clear()
    plugins.names.cache_clear()
    yield
    plugins._entry_points.cache_clear()
    plugins.names.cache_clear()


@pytest.mark.usefixtures("_fresh")
@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("nowhere:Pigeon", "can't be loaded"),
        ("pigeonry:Nothing", "can't be loaded"),
        ("json:dumps", "is not a plug-in"),
    ],
)
def test_an_entry_point_that_fails_is_told(
    tmp_path: Path, write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, value: str, what: str
) -> None:
    install(tmp_path / "site", value)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    with pytest.raises(UsageError) as caught:
        load(write(text=PIPELINE.format(sink="pigeon")))
    assert what in caught.value.what
    assert value in caught.value.why


@pytest.mark.parametrize("name", ["", "_parsing", "__init__", "nope", "kafka.x", "a b", "../x", "os"])
def test_only_plug_ins_are_loaded(name: str) -> None:
    with pytest.raises(KeyError):
        plugins.load("sources", name)


@pytest.mark.parametrize(
    ("word", "hint"),
    [("kafak", "did you mean 'kafka'?"), ("zzz", "use one of: delta, kafka"), ("", "use one of: delta, kafka")],
)
def test_a_near_miss_gets_a_hint_and_anything_else_the_list(word: str, hint: str) -> None:
    assert plugins.did_you_mean(word, ("delta", "kafka")) == hint


def test_pydantic_finds_its_own_plug_ins_again_after_our_models_are_built() -> None:
    """In a process of its own, since here pydantic has looked for them long ago."""
    script = (
        "import sys\n"
        "from penstock import plugins\n"
        "plugins.validate(plugins.load('sources', 'rate'), {})\n"
        "assert 'pydantic.plugin._loader' not in sys.modules\n"
        "from pydantic import BaseModel\n"
        "class Theirs(BaseModel):\n    x: int\n"
        "assert Theirs(x=1).x == 1\n"
        "assert sys.modules['pydantic.plugin._loader'].__file__\n"
        "assert plugins.validate(plugins.load('sources', 'events'), {}).total\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
