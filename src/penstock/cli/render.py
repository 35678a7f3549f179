"""The only place that prints: text for people, JSON for programs, bars and colour only on a terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from penstock.errors import PenstockError
from penstock.guarantee import Level

if TYPE_CHECKING:
    from penstock.engine.events import Batch
    from penstock.engine.jars import Progress
    from penstock.engine.supervise import Summary
    from penstock.finding import Finding
    from penstock.spec.explain import Explanation
    from penstock.spec.pipeline import Pipeline

_COLOURS = {Level.EXACTLY_ONCE: "green", Level.AT_LEAST_ONCE: "yellow", Level.AT_MOST_ONCE: "red"}


def line(text: str = "") -> None:
    """One line of plain text."""
    click.echo(text)


def document(value: Any) -> None:
    """A value as JSON."""
    click.echo(_json(value, indent=2))


def error(problem: PenstockError) -> None:
    """An error in the house form, on standard error."""
    what, *rest = str(problem).split("\n")
    click.secho(what, fg="red", err=True)
    for text in rest:
        click.echo(text, err=True)


def explanation(pipeline: Pipeline, found: Explanation) -> None:
    """The guarantee, part by part."""
    click.echo(f"{pipeline.name}: ", nl=False)
    click.secho(found.level.label, fg=_COLOURS[found.level], bold=True)
    limit = found.limit
    if found.level < Level.EXACTLY_ONCE:
        line(f"  limited by {limit.part}: {limit.guarantee.because}")
        line(f"  to raise it: {limit.guarantee.raise_by}")
    if found.level < pipeline.require:
        line(f"  below what the file requires ({pipeline.require.label}): `penstock run` refuses to start")
    line()
    width = max(len(share.part) for share in found.shares)
    for share in found.shares:
        click.echo(f"  {share.part:{width}}  ", nl=False)
        click.secho(f"{share.guarantee.level.label:13}", fg=_COLOURS[share.guarantee.level], nl=False)
        click.echo(f"  {share.guarantee.because}")
    for note in found.notes:
        finding(note)


def finding(found: Finding) -> None:
    """One finding."""
    line()
    line(f"{found.where}: {found.what} [{found.rule}]")
    line(f"  why: {found.why}")
    line(f"  fix: {found.fix}")


class Fetching:
    """A bar for jars that are being fetched; nothing where they are all there."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._done = 0

    def __call__(self, progress: Progress) -> None:
        if not sys.stderr.isatty():
            if self._bar is None:
                self._bar = True
                click.echo(f"fetching {progress.total_jars} jars, {progress.total_bytes / 1e6:.0f} MB", err=True)
            return
        if self._bar is None:
            label = f"fetching {progress.total_jars} jars, {progress.total_bytes / 1e6:.0f} MB"
            self._bar = click.progressbar(length=progress.total_bytes, label=label, file=sys.stderr)
        self._bar.update(progress.done_bytes - self._done)
        self._done = progress.done_bytes
        if progress.done_bytes >= progress.total_bytes:
            self._bar.render_finish()


class Live:
    """The batches of a running query: one line that is kept up to date on a terminal, log lines elsewhere."""

    def __init__(self, name: str, *, as_json: bool = False, counts_groups: bool = False) -> None:
        self.name = name
        self.as_json = as_json
        # Where rows are grouped, Spark counts late groups, each of which stands for one row or more.
        self.counts_groups = counts_groups
        self._terminal = sys.stdout.isatty() and not as_json
        import threading

        self._lock = threading.Lock()
        self._open = False

    def batch(self, batch: Batch) -> None:
        if self.as_json:
            self._say(_json({"event": "batch", **_facts(batch)}))
            return
        facts = [f"batch {batch.batch}", _counted(batch.rows, "row", "rows"), f"{batch.rows_per_s:,.0f} rows/s"]
        if batch.lag is not None:
            facts.append(f"lag {batch.lag:,}")
        if batch.watermark and not batch.watermark.startswith("1970"):
            facts.append(f"watermark {batch.watermark[:19]}Z")
        if batch.late:
            facts.append(f"late {'at least ' if self.counts_groups else ''}{batch.late:,}")
        if batch.put_aside:
            facts.append(f"malformed {batch.put_aside:,}")
        facts.append(f"{batch.duration_ms / 1000:.1f} s")
        self._say("  ".join(facts), keep=False)

    def status(self, text: str) -> None:
        """What is being done, on a terminal; the next line takes its place."""
        if self._terminal:
            self._say(text, keep=False)

    def note(self, text: str) -> None:
        """A line that stays."""
        if self.as_json:
            self._say(_json({"event": "note", "text": text}))
        else:
            self._say(text)

    def ended(self, done: Summary) -> None:
        """The last line of a run whose output is JSON."""
        from dataclasses import asdict

        findings = [asdict(found) for found in done.findings]
        facts = ("batches", "rows", "malformed", "late", "late_is_exact", "restarts", "stopped")
        self._say(_json({"event": "ended", **{name: getattr(done, name) for name in facts}, "findings": findings}))

    def close(self) -> None:
        if self._open:
            click.echo()
            self._open = False

    def _say(self, text: str, *, keep: bool = True) -> None:
        with self._lock:
            if self._terminal and not keep:
                click.echo(f"\r\x1b[2K{text[: _width() - 1]}", nl=False)
                self._open = True
                return
            if self._open:
                click.echo()
                self._open = False
            click.echo(text if self._terminal or self.as_json else f"{_now()} {self.name} {text}")


def summary(pipeline: Pipeline, done: Summary) -> None:
    """What a run did, at its end."""
    parts = [_counted(done.batches, "batch", "batches"), _counted(done.rows, "row", "rows")]
    if done.malformed:
        parts.append(f"{done.malformed:,} malformed")
    if done.late:
        exact = done.late_is_exact
        parts.append(f"{done.late:,} late" if exact else f"at least {done.late:,} late")
    if done.restarts:
        parts.append(_counted(done.restarts, "restart", "restarts"))
    line(f"{pipeline.name}: {', '.join(parts)}; {'stopped as asked' if done.stopped else 'done'}")
    if done.malformed or (done.late and done.late_is_exact):
        line(f"  quarantine: {pipeline.quarantine}")
    line(f"  events: {done.events}")
    for found in done.findings:
        finding(found)


def _counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _facts(batch: Batch) -> dict[str, Any]:
    return {name: getattr(batch, name) for name in batch.__slots__ if name != "spark"}


def _json(value: Any, *, indent: int | None = None) -> str:
    import json

    return json.dumps(value, indent=indent, default=str)


def _now() -> str:
    from datetime import UTC, datetime

    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _width() -> int:
    import shutil

    return shutil.get_terminal_size((100, 20)).columns
