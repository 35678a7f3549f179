"""Starts the driver's JVM directly.

PySpark starts it through `bin/spark-submit`: a shell, a first JVM that only puts a command line together, and
then the driver's own. For a local master that command line is known beforehand, so the first JVM can be left
out. Whatever is unusual (another master, Spark's settings files or variables, jars that spark-submit would have
to resolve) takes PySpark's way.

No setting goes on the command line: each is handed over when the JVM runs, so `ps` shows no secret.
"""

from __future__ import annotations

import os
import shlex
import struct
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from penstock.engine.ivy import pyspark_jars

_POLL_S = 0.01
# What spark-submit or its launcher act on; with one of these the way through them is the only right one.
_LAUNCHER_VARIABLES = (
    "HADOOP_CONF_DIR",
    "PYSPARK_GATEWAY_PORT",
    "PYSPARK_SUBMIT_ARGS",
    "SPARK_CONF_DIR",
    "SPARK_DIST_CLASSPATH",
    "SPARK_HOME",
    "SPARK_SUBMIT_OPTS",
    "YARN_CONF_DIR",
)
_LAUNCHER_SETTINGS = (
    "spark.api.mode",
    "spark.archives",
    "spark.driver.extraLibraryPath",
    "spark.driver.userClassPathFirst",
    "spark.files",
    "spark.jars",
    "spark.kerberos.",
    "spark.remote",
    "spark.submit.",
)
_GATEWAY = "org.apache.spark.api.python.PythonGatewayServer"
# The JVM must not hear Ctrl-C, as PySpark also sees to: the driver decides when to stop. Said by a shell, since
# a preexec_fn is unsafe in a program with threads.
_DEAF_TO_CTRL_C = ["/bin/sh", "-c", 'trap "" INT; exec "$@"', "sh"]


def is_possible(conf: Mapping[str, str]) -> bool:
    """Whether the driver's JVM can be started without spark-submit and still be the same."""
    return (
        os.name == "posix"
        and conf.get("spark.master", "").startswith("local")
        and not any(variable in os.environ for variable in _LAUNCHER_VARIABLES)
        and not any(key.startswith(_LAUNCHER_SETTINGS) for key in conf)
        and not pyspark_jars().with_name("conf").exists()
        and bool(module_options())
    )


def command(conf: Mapping[str, str], *, java: Path, options: Sequence[str] = ()) -> list[str]:
    """The driver's command line, as Spark's launcher would make it but for the settings."""
    return [
        str(java),
        # A JVM tells its own warnings on standard output, which belongs to the pipeline.
        "-Xlog:disable",
        "-Xlog:all=warning:stderr",
        *options,
        f"-Xmx{conf.get('spark.driver.memory', '1g')}",
        *module_options(),
        *shlex.split(conf.get("spark.driver.defaultJavaOptions", "")),
        *shlex.split(conf.get("spark.driver.extraJavaOptions", "")),
        "-cp",
        os.pathsep.join(map(str, class_path(conf))),
        _GATEWAY,
    ]


def class_path(conf: Mapping[str, str]) -> tuple[Path, ...]:
    """The session's own jars, then PySpark's, each by name and in a fixed order.

    A class archive holds only for the very path that it was made with, and `jars/*` comes in any order.
    """
    own = conf.get("spark.driver.extraClassPath", "").split(os.pathsep)
    return (*(Path(entry) for entry in own if entry), *sorted(pyspark_jars().glob("*.jar")))


def open_gateway(command: Sequence[str], *, log: Path) -> Any:
    """Start the JVM and connect PySpark's gateway to it; it ends when this process does, however that ends.

    Raises:
        ChildProcessError: it ended before it could be reached; `log` says why.
    """
    from pyspark import java_gateway

    pyspark: Any = java_gateway
    with tempfile.TemporaryDirectory(prefix="penstock-") as folder:
        told = Path(folder, "gateway")
        with log.open("ab") as errors:
            process = _spawn(command, errors=errors, told=told)
        while not told.exists():
            if process.poll() is not None:
                raise ChildProcessError(f"Java ended with {process.returncode}")
            time.sleep(_POLL_S)
        told_bytes = told.read_bytes()
    port, length = struct.unpack_from(">ii", told_bytes)
    secret = told_bytes[8 : 8 + length].decode()
    given = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    os.environ.update(given)
    try:
        gateway: Any = pyspark.launch_gateway()
    finally:
        # Not for the processes that the pipeline may start.
        for name in given:
            del os.environ[name]
    # Keeps the pipe open, at whose end the JVM ends.
    gateway.proc = process
    return gateway


def _spawn(command: Sequence[str], *, errors: IO[bytes], told: Path) -> subprocess.Popen[bytes]:
    env = {
        **os.environ,
        # As bin/spark-submit and PySpark set them; equal texts must have equal hashes in all Python workers.
        "SPARK_HOME": str(pyspark_jars().parent),
        "PYTHONHASHSEED": "0",
        "SPARK_CONNECT_MODE": "0",
        # PythonGatewayServer writes here how to reach it. It ends at the end of its standard input.
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(told),
    }
    return subprocess.Popen([*_DEAF_TO_CTRL_C, *command], stdin=subprocess.PIPE, stderr=errors, env=env)


def module_options() -> list[str]:
    """The options that let Spark into the JDK, as the installed Spark's own launcher would give them.

    They stand as text in its class JavaModuleOptions, and differ between versions of Spark.
    """
    name = "org/apache/spark/launcher/JavaModuleOptions.class"
    for jar in sorted(pyspark_jars().glob("spark-launcher_*.jar")):
        with zipfile.ZipFile(jar) as archive:
            found = [text for text in _texts(archive.read(name)) if text.startswith("-")]
            # SparkSubmitCommandBuilder adds this one.
            return [*found, "-Dderby.connection.requireAuthentication=false"] if found else []
    return []


def _texts(data: bytes) -> list[str]:
    """The texts in a class file's constant pool (JVM specification, 4.4), in their order."""
    sizes = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
    found: list[str] = []
    entry, at = 1, 10
    (count,) = struct.unpack_from(">H", data, 8)
    while entry < count:
        tag = data[at]
        if tag == 1:
            (length,) = struct.unpack_from(">H", data, at + 1)
            found.append(data[at + 3 : at + 3 + length].decode("utf-8", "replace"))
            at += 3 + length
        else:
            at += 1 + sizes[tag]
        # A long or double takes two entries.
        entry += 2 if tag in (5, 6) else 1
    return found
