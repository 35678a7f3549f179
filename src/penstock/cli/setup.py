"""`penstock setup`."""

from __future__ import annotations

import click

from penstock.cli import render


@click.command()
@click.argument("files", nargs=-1, type=click.Path())
@click.option("--broker", is_flag=True, help="Also the Kafka broker that the demo and the tests start.")
def command(files: tuple[str, ...], broker: bool) -> None:
    """Fetch jars and prepare a quick start.

    `penstock run` does the same when it has to; this does it beforehand, for one or more pipeline FILES.
    """
    from penstock.engine import jars, jvm_classes
    from penstock.engine import run as engine
    from penstock.engine.java import find_java
    from penstock.spec.load import load

    pipelines = [load(file) for file in files]
    groups = [group for pipeline in pipelines for group in pipeline.jars] + (["broker"] if broker else [])
    java = find_java()
    paths = jars.fetch(groups, progress=render.Fetching())
    jvm_classes.build()
    render.line(f"{java.text}; {len(paths)} jars are in place")
    for pipeline in pipelines:
        archive = engine.prepare(pipeline)
        render.line(f"{pipeline.name}: {f'classes are archived in {archive}' if archive else 'no class archive'}")
