"""The pure core starts without Spark and all that comes with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import penstock

ROOT = Path(__file__).parents[2]
HEAVY = ("pyspark", "py4j", "pandas", "pyarrow", "numpy", "confluent_kafka", "obstore", "boto3")
SCRIPT = """
import json, sys
sys.argv = ["penstock", *{arguments!r}]
from penstock.cli import main
try:
    main()
except SystemExit as end:
    code = end.code
print(json.dumps({{"code": code, "modules": sorted({{name.partition(".")[0] for name in sys.modules}}),
                  "whole": sorted(sys.modules)}}), file=sys.stderr)
"""


def modules_after(*arguments: str) -> tuple[set[str], set[str]]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(arguments=arguments)],
        env={**os.environ, "KAFKA": "localhost:9092", "PYTHONPATH": str(Path(penstock.__file__).parents[1])},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    said = json.loads(done.stderr.splitlines()[-1])
    assert said["code"] == 0
    return set(said["modules"]), set(said["whole"])


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("--version",),
        ("explain", "examples/hourly_counts.yml"),
        ("schema",),
        ("run", "--help"),
        ("demo", "--help"),
    ],
)
def test_nothing_heavy_is_loaded(arguments: tuple[str, ...]) -> None:
    top, _ = modules_after(*arguments)
    assert not top & set(HEAVY)


def test_help_needs_neither_yaml_nor_pydantic() -> None:
    top, _ = modules_after("--help")
    assert not top & {"yaml", "pydantic", "pydantic_core"}


def test_explain_does_not_read_the_metadata_of_every_package() -> None:
    """An eighth of its time: see `plugins._no_pydantic_plugins`. A new pydantic may look for plug-ins elsewhere."""
    _, whole = modules_after("explain", "examples/hourly_counts.yml")
    assert "importlib.metadata" not in whole
    assert "pydantic.plugin._loader" not in whole
