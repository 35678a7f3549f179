"""`penstock demo`."""

from __future__ import annotations

import time
from pathlib import Path

import click

from penstock.cli import render
from penstock.errors import VerdictError


@click.command()
@click.option(
    "--folder", type=click.Path(path_type=Path), default=Path("demo"), show_default=True, help="Where to work."
)
@click.option("--events", default=200_000, show_default=True, help="How many events to send.")
def command(folder: Path, events: int) -> None:
    """Kill a real job in mid-batch and count every record.

    Starts a real Kafka broker, runs the example hourly_counts.yml, kills its driver with SIGKILL while a batch
    runs, starts it again, and compares the table with what was sent. Exits 0 only if the sums are exact.
    """
    from penstock import demo
    from penstock.engine import jars
    from penstock.engine import run as engine

    file = demo.prepare(folder.resolve())
    example = demo.load_example(file, bootstrap="not-yet:0")
    jars.fetch(["broker", *example.jars], progress=render.Fetching())
    render.line("setup    jars are in place; the first time, a rehearsal makes later starts quick")
    engine.prepare(example)
    began = time.monotonic()
    broker = demo.start_broker(file.parent)
    job = None
    try:
        render.line(f"broker   Kafka at {broker.bootstrap}, topic {demo.TOPIC} with {demo.PARTITIONS} partitions")
        sent = demo.produce(broker.bootstrap, range(events))
        render.line(f"sent     {sent:,} events, some late, some malformed")
        pipeline = demo.load_example(file, bootstrap=broker.bootstrap)
        environment = {"KAFKA": broker.bootstrap}

        job = demo.Job(pipeline, environment=environment)
        render.line(f"run      penstock run {file.name} (process {job.process.pid})")
        killed = job.kill_in_batch(demo.KILL_IN_BATCH)
        render.line(
            f"kill     signal {killed.signal} to process {killed.pid} and its JVM in batch {killed.batch}: "
            f"offsets/{killed.batch} is written, commits/{killed.batch} is not"
        )

        job = demo.Job(pipeline, environment=environment)
        render.line(f"run      the same again (process {job.process.pid}); it replays batch {killed.batch}")
        job.wait_until("the end of the topic", lambda event: event["lag"] == 0)
        closing = demo.produce_closing(broker.bootstrap, after=events)
        job.wait_until("the last windows to close", lambda event: (event["watermark"] or "") > closing[:10])
        code = job.stop()
        render.line(f"stop     SIGTERM; it finished its batch and ended with exit {code}")
        sums = demo.settle(pipeline, sent)
    finally:
        if job:
            job.abandon()
        broker.stop()

    render.line()
    for name in ("sent", "on_time", "late", "quarantined", "counted", "lost", "duplicated"):
        render.line(f"  {name.replace('_', ' '):12} {getattr(sums, name):>9,}")
    render.line()
    if code != 0 or sent != events or not sums.exact:
        raise VerdictError(
            "the sums are not exact",
            why="sent must be on time + late + quarantined, counted must be on time, and lost and duplicated 0",
            fix=f"look at {file.parent / 'job.log'} and {file.parent / '.penstock'}",
        )
    render.line(f"every record counted once, across a SIGKILL, in {time.monotonic() - began:.0f} s")
    render.line()
    render.line("what to try next")
    render.line(f"  penstock explain {_shown(file)}")
    render.line(f"  head {_shown(Path(pipeline.quarantine))}/malformed/*/*/*.json")
    render.line("  penstock init my_pipeline")


def _shown(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
