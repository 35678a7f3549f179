"""`penstock explain`."""

from __future__ import annotations

import sys

import click

from penstock.cli import render
from penstock.spec.explain import explain
from penstock.spec.load import load


@click.command()
@click.argument("file", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def command(file: str, as_json: bool) -> None:
    """Say which guarantee a pipeline gives, and why.

    Exits 1 if it is below what the file requires.
    """
    pipeline = load(file)
    found = explain(pipeline)
    if as_json:
        render.document(
            {
                "pipeline": pipeline.name,
                "guarantee": found.level.label,
                "require": pipeline.require.label,
                "limited_by": found.limit.part,
                "parts": [
                    {
                        "part": share.part,
                        "guarantee": share.guarantee.level.label,
                        "because": share.guarantee.because,
                        "raise_by": share.guarantee.raise_by,
                    }
                    for share in found.shares
                ],
                "notes": [{"rule": note.rule, "what": note.what, "fix": note.fix} for note in found.notes],
            }
        )
    else:
        render.explanation(pipeline, found)
    if found.level < pipeline.require:
        sys.exit(1)
