"""The command line: one file a command, loaded only when it is called."""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from typing import NoReturn

import click

from penstock import __version__
from penstock.errors import PenstockError

# Shown by `penstock --help` without importing the commands themselves, whose first docstring line must agree
# (a test compares them).
COMMANDS = {
    "init": "Write a project that runs.",
    "run": "Run a pipeline.",
    "explain": "Say which guarantee a pipeline gives, and why.",
    "schema": "Print the JSON Schema of pipeline files, for editors.",
    "setup": "Fetch jars and prepare a quick start.",
    "demo": "Kill a real job in mid-batch and count every record.",
}


class Commands(click.Group):
    """Finds `penstock run` in `cli/run.py`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"penstock.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(f"There is no command {args[0]!r}.{hint}", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="penstock")
def penstock() -> None:
    """Streaming on Spark in which every record counts once."""


def main() -> NoReturn:
    """Run the command line; every PenstockError becomes its text and its exit code."""
    # Importing makes many objects and hardly any garbage: looking for it every 700 objects is a tenth of `explain`.
    gc.set_threshold(50_000, 20, 100)
    try:
        penstock(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except click.Abort:
        sys.exit(130)
    except PenstockError as error:
        from penstock.cli import render

        render.error(error)
        sys.exit(error.exit_code)
    sys.exit(0)
