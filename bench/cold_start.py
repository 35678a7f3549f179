"""CPU time of commands that start no JVM ÷ that of importing what any such tool imports."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from bench.harness import Comparison

TARGET = 3.0
# One start is too short to measure well.
STARTS = 5
_EXAMPLE = Path(__file__).parent.parent / "examples" / "hourly_counts.yml"


def comparisons() -> list[Comparison]:
    baseline = _cpu(["-c", "import click, yaml"])
    commands = {"--help": ["--help"], "explain FILE": ["explain", str(_EXAMPLE)]}
    return [
        Comparison(
            name=f"penstock {shown}, CPU",
            unit="s",
            ours=_cpu(["-m", "penstock", *arguments]),
            theirs=baseline,
            target=TARGET,
            more_is_better=False,
        )
        for shown, arguments in commands.items()
    ]


def _cpu(arguments: list[str]) -> Callable[[], float]:
    # Without it an editable install would be compiled anew at each start, which no user's is.
    env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}

    def measured() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        for _ in range(STARTS):
            subprocess.run(
                [sys.executable, *arguments],
                env={**env, "KAFKA": "127.0.0.1:9092"},
                stdout=subprocess.DEVNULL,
                check=True,
            )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) / STARTS

    return measured
