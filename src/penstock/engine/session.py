"""A Spark session with the jars and settings of one pipeline, and good defaults for streaming."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.engine import class_archive, launch
from penstock.engine.java import Java
from penstock.errors import SetupError, require
from penstock.secrets import holds_secret, is_secret_key
from penstock.spec.pipeline import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EXIT_TIMEOUT_S = 20.0
# Whatever runs on a laptop shares it with other things; a cluster's own defaults are left alone.
_LOCAL = {
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # The web page would listen on every address of the machine.
    "spark.ui.enabled": "false",
}
_STREAMING = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "false",
}


def settings(pipeline: Pipeline) -> dict[str, str]:
    """Every setting of the pipeline's session; the file's own come last and win."""
    master = pipeline.spark.get("spark.master", "local[*]")
    made = {"spark.app.name": f"penstock-{pipeline.name}", "spark.master": master, **_STREAMING}
    if master.startswith("local"):
        made |= _LOCAL
        made["spark.sql.shuffle.partitions"] = str(min(8, max(2, os.cpu_count() or 2)))
    extensions: list[str] = []
    for part in pipeline.parts:
        for key, value in part.settings.items():
            if key == "spark.sql.extensions":
                extensions.append(value)
            else:
                made[key] = value
    if extensions:
        made["spark.sql.extensions"] = ",".join(dict.fromkeys(extensions))
    return made | pipeline.spark


def start(
    pipeline: Pipeline,
    *,
    jars: Sequence[Path],
    log: Path,
    java: Java,
    extra: dict[str, str] | None = None,
    jvm_options: Sequence[str] | None = None,
) -> SparkSession:
    """Start the session; what the JVM has to say goes to `log`.

    Args:
        pipeline: whose session it is.
        jars: beyond PySpark's own.
        log: where Spark's log goes.
        java: the Java to run it with.
        extra: settings that come last.
        jvm_options: for the JVM itself, instead of the class archive.
    """
    require("pyspark", extra="spark", needed_for="running a pipeline")
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    os.environ["JAVA_HOME"] = str(java.home)
    # A function of the pipeline's own modules may run in a worker, which looks for the module by its name.
    os.environ["PYTHONPATH"] = _joined(str(pipeline.folder), os.environ.get("PYTHONPATH"), os.pathsep)
    # Workers must run the same Python as the driver, not the first one on PATH.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    conf = with_jars(settings(pipeline) | (extra or {}), jars)
    logging = shlex.quote(f"-Dlog4j2.configurationFile={_log4j(log)}")
    conf["spark.driver.extraJavaOptions"] = _joined(logging, conf.get("spark.driver.extraJavaOptions"), " ")
    try:
        _connect(conf, java=java, log=log, jvm_options=jvm_options)
        return SparkSession.builder.config(map=dict(conf)).getOrCreate()
    except (PySparkException, OSError) as error:
        raise SetupError(
            "Spark did not start", why=_last_error(log) or str(error), fix=f"the whole story is in {log}"
        ) from None


def stop(spark: SparkSession) -> None:
    """End the session and its JVM, and wait until the JVM is gone: whoever looks next finds nothing running."""
    from pyspark import SparkContext

    context: Any = SparkContext
    gateway = context._gateway
    spark.stop()
    process = getattr(gateway, "proc", None)
    if process is None:
        return
    # A later session of this process starts a JVM of its own.
    context._gateway = context._jvm = None
    with suppress(Exception):
        gateway.shutdown()
    # The JVM ends at the end of its standard input.
    process.stdin.close()
    try:
        process.wait(_EXIT_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def with_jars(conf: dict[str, str], jars: Sequence[Path]) -> dict[str, str]:
    """The settings with these jars on the driver's class path, and on the executors' where there are any."""
    made = dict(conf)
    path = ":".join(str(jar) for jar in jars)
    made["spark.driver.extraClassPath"] = _joined(path, conf.get("spark.driver.extraClassPath"), ":")
    if not conf["spark.master"].startswith("local"):
        made["spark.jars"] = _joined(",".join(str(jar) for jar in jars), conf.get("spark.jars"), ",")
    return made


def _connect(conf: dict[str, str], *, java: Java, log: Path, jvm_options: Sequence[str] | None) -> None:
    """Start a JVM for this process, unless it has one from an earlier session."""
    from pyspark import SparkConf, SparkContext, java_gateway

    context: Any = SparkContext
    pyspark: Any = java_gateway
    if context._gateway is not None:
        return
    if launch.is_possible(conf):
        if jvm_options is None:
            archive = class_archive.find(java, launch.class_path(conf))
            jvm_options = [f"-XX:SharedArchiveFile={archive}"] if archive else []
        gateway = launch.open_gateway(launch.command(conf, java=java.path, options=jvm_options), log=log)
    else:
        # A setting given at launch shows up in the JVM's command line, so secrets follow when it runs.
        shown = SparkConf(loadDefaults=False)
        secret = {key for key, value in conf.items() if is_secret_key(key) or holds_secret(value)}
        shown.setAll([(key, value) for key, value in conf.items() if key not in secret])
        with _stderr_to(log):
            gateway = pyspark.launch_gateway(shown)
    context._ensure_initialized(gateway=gateway)


def _joined(first: str, second: str | None, separator: str) -> str:
    return separator.join(part for part in (first, second) if part)


def _log4j(log: Path) -> Path:
    """Spark's log goes to a file that is rolled, never into the output of the command."""
    file = log.with_name("log4j2.properties")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        f"""rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {log}
appender.file.filePattern = {log}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd'T'HH:mm:ss.SSS}} %p %c{{1}}: %m%n%ex
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 20MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
logger.streams.name = org.apache.spark.sql.execution.streaming
logger.streams.level = warn
""",
        encoding="utf-8",
    )
    return file


def _last_error(log: Path) -> str:
    """The line of the log that most likely says why."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-200:]
    except OSError:
        return ""
    telling = [line.strip() for line in lines if "Exception" in line or "Error" in line or "error" in line]
    return telling[0][:300] if telling else (lines[-1][:300] if lines else "")


@contextmanager
def _stderr_to(file: Path) -> Iterator[None]:
    """Let a child that is started meanwhile write its standard error to a file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    kept = os.dup(2)
    target = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.dup2(target, 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(target)
        os.close(kept)
