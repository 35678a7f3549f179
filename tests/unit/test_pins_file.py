"""jars.yml is what scripts/pin_jars.py writes, so that the next pin changes only its own lines."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from penstock.engine.jars import PINS, read_pins

SCRIPT = Path(__file__).parents[2] / "scripts" / "pin_jars.py"


def test_the_pins_are_written_back_as_they_were_read() -> None:
    spec = importlib.util.spec_from_file_location("pin_jars", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.dump(read_pins(), heading=script.heading_of(PINS)) == PINS.read_text(encoding="utf-8")
