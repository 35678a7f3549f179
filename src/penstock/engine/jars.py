"""The jars that Penstock needs beyond PySpark's own: pinned, fetched once, checked by SHA-256."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.engine.cache import cache_folder, check_sha256, is_verified, scratch, write_stamp
from penstock.engine.ivy import file_name, retrieve
from penstock.engine.java import find_java
from penstock.errors import JarError, UsageError, require

PINS = Path(__file__).with_name("jars.yml")
ANY_SPARK = "any"
_ROOM_MARGIN_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Jar:
    """A pinned jar."""

    coordinate: str
    sha256: str
    size: int

    @property
    def file(self) -> str:
        """The name under which it lies in the cache."""
        return file_name(self.coordinate)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a fetch is."""

    done_bytes: int
    total_bytes: int
    done_jars: int
    total_jars: int


def read_pins(path: Path = PINS) -> dict[str, dict[str, tuple[Jar, ...]]]:
    """Return Spark version (or `any`) -> group -> jars."""
    import yaml

    def jar(entry: dict[str, str | int]) -> Jar:
        return Jar(coordinate=str(entry["jar"]), sha256=str(entry["sha256"]), size=int(entry["bytes"]))

    loaded = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    return {
        str(version): {name: tuple(jar(each) for each in entries) for name, entries in groups.items()}
        for version, groups in loaded.items()
    }


def jars_of(groups: Iterable[str]) -> tuple[Jar, ...]:
    """Return the jars of these groups for the installed Spark: each once, in a stable order."""
    pins = read_pins()
    found: dict[str, Jar] = {}
    for group in groups:
        for jar in pins[ANY_SPARK].get(group) or _for_spark(group, pins=pins):
            found.setdefault(jar.coordinate, jar)
    return tuple(found.values())


def fetch(
    groups: Iterable[str],
    *,
    cache: Path | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> tuple[Path, ...]:
    """Return the local paths of the jars of these groups, fetching those that are not in the cache.

    With all of them in the cache no process is started and the network is not touched.

    Args:
        groups: names of groups in jars.yml, such as `kafka`.
        cache: the cache folder; see `cache_folder` for the default.
        progress: called while a fetch is under way.
    """
    return fetch_jars(jars_of(groups), cache=cache, progress=progress)


def fetch_jars(
    jars: Sequence[Jar],
    *,
    cache: Path | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> tuple[Path, ...]:
    """Do what `fetch` does, for jars that the caller names."""
    folder = cache_folder(cache) / "jars"
    missing = [jar for jar in jars if not is_verified(folder / jar.file, sha256=jar.sha256)]
    if missing:
        _fetch_missing(missing, folder=folder, progress=progress or (lambda _: None))
    return tuple(folder / jar.file for jar in jars)


def _for_spark(group: str, *, pins: dict[str, dict[str, tuple[Jar, ...]]]) -> tuple[Jar, ...]:
    from importlib import metadata

    require("pyspark", extra="spark", needed_for=f"the jars of group {group}")
    version = metadata.version("pyspark")
    known = sorted(set(pins) - {ANY_SPARK})
    if version not in pins:
        raise JarError(
            f"no jars are pinned for Spark {version}",
            why=f"connectors belong to one Spark version; jars.yml has {', '.join(known)}",
            fix=f"pip install pyspark=={known[-1]}",
        )
    if group not in pins[version]:
        groups = sorted({*pins[version], *pins[ANY_SPARK]})
        raise UsageError(f"there is no group of jars named {group}", fix=f"use one of {', '.join(groups)}")
    return pins[version][group]


def _fetch_missing(missing: Sequence[Jar], *, folder: Path, progress: Callable[[Progress], None]) -> None:
    total = sum(jar.size for jar in missing)
    _check_room(folder, total=total)
    java = find_java()

    def poll(size: int, count: int) -> None:
        progress(Progress(min(size, total), total, min(count, len(missing)), len(missing)))

    with scratch(folder) as own:
        poll(0, 0)
        out = retrieve([jar.coordinate for jar in missing], java=java, scratch=own, poll=poll)
        # All are checked before the first gets its name, and a name is given by a rename: a fetch that is
        # killed leaves nothing half-written, and two at once end with the same files.
        for jar in missing:
            check_sha256(out / jar.file, sha256=jar.sha256, named=folder / jar.file)
        for jar in missing:
            os.replace(out / jar.file, folder / jar.file)
            write_stamp(folder / jar.file, sha256=jar.sha256)
    poll(total, len(missing))


def _check_room(folder: Path, *, total: int) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise JarError(
            f"the cache folder {folder} can't be made",
            why=error.strerror or str(error),
            fix="set PENSTOCK_CACHE to a folder that you may write to",
        ) from error
    needed = 2 * total + _ROOM_MARGIN_BYTES  # Ivy holds each jar twice: in its own cache and as its result
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise JarError(
            f"not enough room for {total / 1e6:.0f} MB of jars in {folder}",
            why=f"{needed / 1e6:.0f} MB are needed while fetching, {free / 1e6:.0f} MB are free",
            fix="make room, or set PENSTOCK_CACHE to a folder on a larger disk",
        )
