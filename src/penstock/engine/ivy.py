"""Fetch an explicit list of jars with the Ivy that PySpark ships: Python and Java are all it takes."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import quoteattr

from penstock.engine.java import Java
from penstock.errors import JarError, require

STALL_TIMEOUT_S = 180.0
_POLL_S = 0.1
_QUOTED_LINES = 12

# One request per jar: POMs and checksum files are not asked for, since the list is complete and each jar
# is checked by SHA-256. That is 7 times as fast, and a mirror that lacks some parent POM does no harm.
_SETTINGS = """\
<ivysettings>
  <settings defaultResolver="central"/>
  <timeout-constraints>
    <timeout-constraint name="bounded" connectionTimeout="15000" readTimeout="60000"/>
  </timeout-constraints>
  <resolvers>
    <ibiblio name="central" m2compatible="true" usepoms="false" useMavenMetadata="false"
             checksums="" timeoutConstraint="bounded"/>
  </resolvers>
</ivysettings>
"""


def pyspark_jars() -> Path:
    """Return the folder of the jars that PySpark ships, without importing PySpark."""
    require("pyspark", extra="spark", needed_for="running Spark")
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise JarError("PySpark has no folder", why="it is not installed as plain files", fix="reinstall it")
    return Path(spec.origin).parent / "jars"


def retrieve(
    coordinates: Sequence[str], *, java: Java, scratch: Path, poll: Callable[[int, int], None] | None = None
) -> Path:
    """Fetch `group:artifact:version` each into a folder below `scratch`, and return that folder.

    Ivy's own cache lies in `scratch` too: a broken ~/.m2 or ~/.ivy2 must not matter. What arrived is not
    checked here beyond being there.

    Args:
        coordinates: the jars; nothing that they depend on is added.
        java: the Java to run Ivy with.
        scratch: an empty folder of the caller's.
        poll: called with (bytes, jars) that have arrived so far, about ten times a second.
    """
    out = scratch / "out"
    (scratch / "ivy.xml").write_text(_module(coordinates), encoding="utf-8")
    (scratch / "ivysettings.xml").write_text(_SETTINGS, encoding="utf-8")
    ivy_jar = next(pyspark_jars().glob("ivy-*.jar"), None)
    if ivy_jar is None:
        raise JarError("PySpark ships no Ivy", why=f"no ivy-*.jar in {pyspark_jars()}", fix="reinstall pyspark")
    command = [str(java.path), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-jar", str(ivy_jar)]
    # Relative to the folder that it runs in: brackets in a user's path would be part of the pattern.
    command += ["-settings", _own_settings() or "ivysettings.xml", "-ivy", "ivy.xml", "-cache", "cache"]
    command += ["-retrieve", "out/[artifact]-[revision].[ext]"]
    log = scratch / "ivy.log"
    with log.open("wb") as sink:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, cwd=scratch)
        try:
            stalled = _watch(process, scratch=scratch, poll=poll)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
    missing = [each for each in coordinates if not (out / file_name(each)).is_file()]
    # Ivy ends with 1 when a jar is not to be had; the files are what counts, so they are looked at.
    if missing:
        why = f"nothing arrived for {STALL_TIMEOUT_S:.0f} s" if stalled else _last_lines(log)
        raise JarError(
            f"{len(missing)} of {len(coordinates)} jars can't be fetched: {', '.join(missing)}",
            why=why,
            fix="check the network (a proxy goes into JAVA_TOOL_OPTIONS as -Dhttps.proxyHost=... "
            "-Dhttps.proxyPort=...), or name your own mirror in an Ivy settings file and set "
            "PENSTOCK_IVYSETTINGS to its path",
        )
    return out


def file_name(coordinate: str) -> str:
    """Return `artifact-version.jar` for `group:artifact:version`."""
    _, artifact, version = coordinate.split(":")
    return f"{artifact}-{version}.jar"


def _own_settings() -> str | None:
    """Return the path of the user's own Ivy settings, if there are any."""
    if not (named := os.environ.get("PENSTOCK_IVYSETTINGS")):
        return None
    path = Path(named).expanduser().absolute()
    if not path.is_file():
        raise JarError(
            f"there is no Ivy settings file {path}",
            why="PENSTOCK_IVYSETTINGS names it",
            fix="correct or unset PENSTOCK_IVYSETTINGS",
        )
    return str(path)


def _module(coordinates: Sequence[str]) -> str:
    lines = [
        '<ivy-module version="2.0"><info organisation="penstock" module="jars"/>',
        '<configurations><conf name="default"/></configurations><dependencies>',
    ]
    for coordinate in coordinates:
        org, name, rev = map(quoteattr, coordinate.split(":"))
        # master(default): a resolver that reads POMs has "master", one that does not has only "default".
        where = f"org={org} name={name} rev={rev}"
        lines.append(f'<dependency {where} transitive="false" conf="default->master(default)"/>')
    # Two groups may hold two versions of one jar (a broker's and a client's): each is wanted, none wins.
    lines.append('<conflict manager="all"/></dependencies></ivy-module>\n')
    return "\n".join(lines)


def _watch(process: subprocess.Popen[bytes], *, scratch: Path, poll: Callable[[int, int], None] | None) -> bool:
    """Wait for Ivy, reporting what has arrived; return True when it got stuck."""
    seen, since = -1, time.monotonic()
    while True:
        try:
            process.wait(timeout=_POLL_S)
        except subprocess.TimeoutExpired:
            pass
        else:
            return False
        size, count = _arrived(scratch / "cache")
        if poll is not None:
            poll(size, count)
        if size != seen:
            seen, since = size, time.monotonic()
        elif time.monotonic() - since > STALL_TIMEOUT_S:
            return True


def _arrived(cache: Path) -> tuple[int, int]:
    """Return (bytes, whole jars) in Ivy's cache; a jar under way is a `.jar.part`."""
    size = count = 0
    for folder, _, names in os.walk(cache):
        for name in names:
            if name.endswith((".jar", ".jar.part")):
                try:
                    size += os.stat(os.path.join(folder, name)).st_size
                except FileNotFoundError:
                    continue
                count += name.endswith(".jar")
    return size, count


def _last_lines(log: Path) -> str:
    """Return Ivy's last words, without what a mirror's address may hold: a user, a password, a token."""
    text = log.read_text(encoding="utf-8", errors="replace")
    text = re.sub(r"://[^/@\s]+@", "://***@", text)
    text = re.sub(r"\?\S+", "?***", text)
    lines = [line.strip() for line in text.splitlines() if re.search(r"\w", line)]
    lines = [line for line in lines if not line.startswith(("Picked up ", ":: USE VERBOSE"))]
    return " | ".join(lines[-_QUOTED_LINES:]) or "Ivy said nothing"
