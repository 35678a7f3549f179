"""Class archives (AppCDS): what the JVM makes of the jars' classes at each start, kept on disk.

Loading and checking some 15,000 classes is half of the time that Spark takes to its first batch. An archive holds
only for one Java and one class path, so it is named after both; it is made by a rehearsal in a JVM of its own
(`penstock setup`), never by a run. A run takes the one that fits, if there is one:

    ~/.cache/penstock/archives/3f6c0a….jsa          and .stamp, the size and times it had when it was made

Java checks by itself that the jars are those of the archive, and goes on without it if not.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from penstock.engine.cache import cache_folder, is_stamped, scratch, sha256_of, write_stamp
from penstock.engine.java import Java

log = logging.getLogger("penstock.engine")
KEEP = 3
# Set to `off`, no archive is used or made.
SWITCH = "PENSTOCK_CLASS_ARCHIVE"
_REHEARSAL_TIMEOUT_S = 600.0


def is_on() -> bool:
    """Whether the user has not turned archives off."""
    return os.environ.get(SWITCH, "").lower() != "off"


def find(java: Java, path: Sequence[Path], *, cache: Path | None = None) -> Path | None:
    """The archive for this Java and class path; None if there is none, or if it is not as it was made."""
    if not is_on():
        return None
    archive = _place(java, path, cache=cache)
    if archive is None or not is_stamped(archive):
        return None
    # The stamp's time says when it was last of use; the archive's own must stay as they are.
    with suppress(OSError):
        os.utime(archive.with_name(f"{archive.name}.stamp"))
    return archive


def make(java: Java, path: Sequence[Path], *, groups: Sequence[str], cache: Path | None = None) -> Path | None:
    """Make the archive unless it is there; None if it can't be had, which only costs time at each start.

    Args:
        java: the Java that will run the pipeline.
        path: the class path of the session, in its order.
        groups: the groups of jars in it, which tell the rehearsal what there is to play.
        cache: the cache folder.
    """
    archive = _place(java, path, cache=cache)
    if archive is None or not is_on():
        return None
    if is_stamped(archive):
        return archive
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
        with scratch(archive.parent) as folder:
            made = folder / "made.jsa"
            _rehearse(java, path, groups=groups, folder=folder, into=made)
            _sync(made)
            # An archive that was damaged is in the way; a JVM that has it open keeps what it has.
            os.replace(made, archive)
            write_stamp(archive, sha256=sha256_of(archive))
    except (OSError, subprocess.SubprocessError) as error:
        log.warning("no class archive was made: %s", error)
        return None
    prune(archive.parent)
    return archive


def prune(folder: Path, *, keep: int = KEEP) -> None:
    """Delete all but the archives that were last of use."""

    def last_use(archive: Path) -> float:
        try:
            return archive.with_name(f"{archive.name}.stamp").stat().st_mtime
        except OSError:
            return 0.0

    for old in sorted(folder.glob("*.jsa"), key=last_use, reverse=True)[keep:]:
        for file in (old, old.with_name(f"{old.name}.stamp")):
            file.unlink(missing_ok=True)


def _place(java: Java, path: Sequence[Path], *, cache: Path | None) -> Path | None:
    """Where the archive for this Java and class path lies, or would; None where Java could not use one."""
    digest = hashlib.sha256(f"{java.path.resolve()}\0{java.text}".encode())
    for jar in path:
        try:
            stat = jar.stat()
        except OSError:
            return None
        if jar.suffix != ".jar":
            return None
        digest.update(f"\0{jar}\0{stat.st_size}\0{stat.st_mtime_ns}".encode())
    return cache_folder(cache) / "archives" / f"{digest.hexdigest()[:32]}.jsa"


def _rehearse(java: Java, path: Sequence[Path], *, groups: Sequence[str], folder: Path, into: Path) -> None:
    task = {
        "java": str(java.path),
        "path": [str(jar) for jar in path],
        "groups": list(groups),
        "folder": str(folder),
        "into": str(into),
    }
    output = folder / "output"
    with output.open("wb") as sink:
        done = subprocess.run(
            [sys.executable, "-m", "penstock.engine.rehearsal"],
            input=json.dumps(task).encode(),
            stdout=sink,
            stderr=subprocess.STDOUT,
            timeout=_REHEARSAL_TIMEOUT_S,
            check=False,
        )
    if done.returncode != 0 or not into.exists():
        last = output.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
        raise OSError(f"the rehearsal ended with {done.returncode}: {''.join(last)[:300]}")


def _sync(file: Path) -> None:
    """Have it on disk before it gets its name: half an archive would pass Java's checks and crash it."""
    with file.open("rb") as stream:
        os.fsync(stream.fileno())
