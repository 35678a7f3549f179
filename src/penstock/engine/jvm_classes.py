"""Compile Penstock's few Java classes on the user's machine, so that no binaries are shipped.

Janino, the compiler that Spark generates code with, comes with PySpark: a Java without javac is enough.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from penstock.engine.cache import cache_folder
from penstock.engine.ivy import pyspark_jars
from penstock.engine.java import find_java
from penstock.errors import SetupError

SOURCES = Path(__file__).with_name("jvm")
# A zip can't hold an earlier time; a fixed one makes the same sources give the same bytes.
_TIME = (1980, 1, 1, 0, 0, 0)


def build(*, cache: Path | None = None) -> Path:
    """Return the jar with the classes in `engine/jvm`, compiling it unless the cache has it.

    Raises:
        SetupError: the sources do not compile against the installed PySpark.
    """
    return build_from(sorted(SOURCES.glob("*.java")), cache=cache)


def build_from(sources: Sequence[Path], *, cache: Path | None = None) -> Path:
    """Do what `build` does, for sources that the caller names."""
    folder = cache_folder(cache) / "classes"
    target = folder / f"penstock-{_key(sources)}.jar"
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".build-") as name:
        scratch = Path(name)
        classes = scratch / "classes"
        classes.mkdir()
        _compile(sources, into=classes)
        _zip(classes, into=scratch / "classes.jar")
        os.replace(scratch / "classes.jar", target)
    return target


def _key(sources: Sequence[Path]) -> str:
    """Name what the result depends on: the sources, and the Spark and Janino they are compiled with."""
    digest = hashlib.sha256()
    jars = pyspark_jars()
    for pattern in ("spark-sql_*.jar", "janino-*.jar"):
        digest.update(" ".join(sorted(jar.name for jar in jars.glob(pattern))).encode() + b"\0")
    for source in sources:
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _compile(sources: Sequence[Path], *, into: Path) -> None:
    from py4j.protocol import Py4JError, Py4JJavaError

    fault = ""
    try:
        with _gateway() as gateway:
            try:
                _run_janino(gateway, sources=sources, into=into)
            except Py4JJavaError as error:
                fault = str(error.java_exception.toString())  # asked for while the JVM still lives
    except (Py4JError, OSError, ValueError) as error:
        raise SetupError(
            "the Java that compiles Penstock's classes did not answer",
            why=str(error) or type(error).__name__,
            fix="run again; if it repeats, check that this machine lets processes talk over 127.0.0.1",
        ) from error
    if fault:
        raise SetupError(
            "Penstock's Java classes do not compile",
            why=fault,
            fix="install a Spark version that Penstock supports; if it is one, report this as a fault",
        )


def _run_janino(gateway: Any, *, sources: Sequence[Path], into: Path) -> None:
    jvm = gateway.jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    factory = jvm.org.codehaus.commons.compiler.CompilerFactoryFactory.getDefaultCompilerFactory(loader)
    compiler = factory.newCompiler()
    compiler.setDestinationDirectory(jvm.java.io.File(str(into)), False)
    files = gateway.new_array(jvm.java.io.File, len(sources))
    for at, source in enumerate(sources):
        files[at] = jvm.java.io.File(str(source))
    compiler.compile(files)


@contextmanager
def _gateway() -> Iterator[Any]:
    """A small JVM with PySpark's jars, reached over 127.0.0.1 with a token; it is gone afterwards.

    py4j's launch_gateway would do the same, but leaves pipes and a thread behind.
    """
    from py4j.java_gateway import GatewayParameters, JavaGateway

    command = [str(find_java().path), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"]
    command += ["-cp", str(pyspark_jars() / "*"), "py4j.GatewayServer"]
    # It ends when its standard input, a pipe of ours, breaks: even if we are killed.
    command += ["--die-on-broken-pipe", "--enable-auth", "0"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            port, token = int(process.stdout.readline()), process.stdout.readline().strip()
            parameters = GatewayParameters(address="127.0.0.1", port=port, auth_token=token)
            gateway = JavaGateway(gateway_parameters=parameters)
            try:
                yield gateway
            finally:
                gateway.shutdown()
        finally:
            process.kill()


def _zip(folder: Path, *, into: Path) -> None:
    with zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED) as jar:
        for path in sorted(folder.rglob("*.class")):
            entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), date_time=_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            jar.writestr(entry, path.read_bytes())
