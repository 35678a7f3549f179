"""`penstock schema`."""

from __future__ import annotations

import click

from penstock.cli import render


@click.command()
def command() -> None:
    """Print the JSON Schema of pipeline files, for editors.

    Save it and put `# yaml-language-server: $schema=penstock.schema.json` at the top of a pipeline file.
    """
    from penstock.spec.json_schema import json_schema

    render.document(json_schema())
