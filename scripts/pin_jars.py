"""Pin jars: fetch the given coordinates and note their SHA-256 and size in engine/jars.yml.

    python scripts/pin_jars.py SPARK GROUP GROUP_ID:ARTIFACT:VERSION ...

SPARK is a Spark version, or `any` for a group that belongs to none. The group's old list is replaced; the
other groups, and the comment at the top of the file, stay. Give the full list: nothing is added to it. To
learn what a jar depends on, ask Maven (`mvn dependency:list`) and leave out what PySpark ships itself.

The registry is Maven Central, or the one that $PENSTOCK_IVYSETTINGS names. A pin is only as good as the
registry that it was made from: compare with a second one before you commit.
"""

from __future__ import annotations

import logging
import sys
import tempfile
from pathlib import Path

from penstock.engine.cache import sha256_of
from penstock.engine.ivy import file_name, retrieve
from penstock.engine.jars import PINS, Jar, read_pins
from penstock.engine.java import find_java
from penstock.errors import PenstockError

log = logging.getLogger("pin_jars")


def main(arguments: list[str]) -> int:
    """Pin one group; return the exit code."""
    if len(arguments) < 3:
        log.error("%s", __doc__)
        return 2
    version, group, *coordinates = arguments
    try:
        jars = pin(coordinates)
    except PenstockError as error:
        log.error("%s", error)
        return error.exit_code
    pins = read_pins() if PINS.exists() else {}
    pins.setdefault(version, {})[group] = jars
    PINS.write_text(dump(pins, heading=heading_of(PINS)), encoding="utf-8")
    log.info("%s %s: %d jars, %.1f MB", version, group, len(jars), sum(jar.size for jar in jars) / 1e6)
    return 0


def pin(coordinates: list[str]) -> tuple[Jar, ...]:
    """Fetch these jars and return them with what was measured."""
    with tempfile.TemporaryDirectory() as scratch:
        out = retrieve(coordinates, java=find_java(), scratch=Path(scratch))
        files = {each: out / file_name(each) for each in coordinates}
        return tuple(
            Jar(coordinate=each, sha256=sha256_of(file), size=file.stat().st_size) for each, file in files.items()
        )


def heading_of(path: Path) -> str:
    """Return the comment at the top of the file."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
    end = next((at for at, line in enumerate(lines) if not line.startswith("#")), len(lines))
    return "".join(lines[:end])


def dump(pins: dict[str, dict[str, tuple[Jar, ...]]], *, heading: str) -> str:
    """Return the pins as YAML, one jar a line, so that a change of one pin is a change of one line."""
    lines = []
    for version in sorted(pins):
        lines.append(f"\n'{version}':")
        for group in sorted(pins[version]):
            lines.append(f"  {group}:")
            lines += [
                f"    - {{jar: '{jar.coordinate}', bytes: {jar.size}, sha256: '{jar.sha256}'}}"
                for jar in pins[version][group]
            ]
    return heading + "\n".join(lines) + "\n"


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    sys.exit(main(sys.argv[1:]))
