"""`penstock run`."""

from __future__ import annotations

from pathlib import Path

import click

from penstock.cli import render
from penstock.spec.explain import explain
from penstock.spec.load import load
from penstock.spec.pipeline import Trigger


@click.command()
@click.argument("file", type=click.Path())
@click.option("--available-now", is_flag=True, help="Read what is there now, then end.")
@click.option("--once", is_flag=True, help="Run one batch, then end.")
@click.option("--dry-run", is_flag=True, help="Print the plan that Spark would run, and start no query.")
@click.option("--take-over", is_flag=True, help="Replace a run that holds the checkpoint and does not answer.")
@click.option("--max-restarts", default=10, show_default=True, help="How many failures in a row to restart after.")
@click.option("--json", "as_json", is_flag=True, help="Progress as JSON lines.")
@click.option("--state", type=click.Path(path_type=Path), help="Where events and logs go [default: .penstock].")
def command(
    file: str,
    available_now: bool,
    once: bool,
    dry_run: bool,
    take_over: bool,
    max_restarts: int,
    as_json: bool,
    state: Path | None,
) -> None:
    """Run a pipeline.

    SIGTERM and Ctrl-C finish the batch under way and stop; a second one stops at once.
    """
    if available_now and once:
        raise click.UsageError("--available-now and --once exclude each other.")
    pipeline = load(file)
    from penstock.engine import run as engine

    if dry_run:
        render.line(engine.dry_run(pipeline, state=state, fetching=render.Fetching()))
        return
    if not as_json:
        for note in explain(pipeline).notes:
            render.finding(note)
    trigger = Trigger("available_now") if available_now else Trigger("once") if once else None
    live = render.Live(pipeline.name, as_json=as_json, counts_groups=pipeline.aggregates)
    options = engine.Options(trigger=trigger, take_over=take_over, max_restarts=max_restarts, state=state)
    reports = engine.Reports(
        batch=live.batch,
        restarting=lambda error, wait_s: live.note(f"{error.what}; again in {wait_s:.0f} s"),
        stopping=lambda: live.note("finishing the batch under way; once more stops at once"),
    )
    live.status("checking source and checkpoint, then starting Spark")
    try:
        done = engine.run(pipeline, options, reports=reports, fetching=render.Fetching())
    finally:
        live.close()
    if as_json:
        live.ended(done)
    else:
        render.summary(pipeline, done)
