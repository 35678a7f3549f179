"""`python -m bench [NAME…]`: run the comparisons; exit 1 if a target is missed."""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import harness
from bench._topic import QUICK_EVENTS, TOPIC_EVENTS, Topic


def names() -> list[str]:
    """Every comparison: the files beside this one, but for the harness and what begins with `_`."""
    own = (file.stem for file in Path(__file__).parent.glob("*.py"))
    return sorted(name for name in own if not name.startswith("_") and name != "harness")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Ratios against hand-written PySpark.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one or more of {', '.join(names())}")
    parser.add_argument("--repeat", type=int, default=harness.MIN_REPEAT, help="measured runs of each side")
    parser.add_argument("--quick", action="store_true", help="small data, two runs: to see that it works")
    parser.add_argument("--in-this-process", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    chosen = given.names or names()
    if unknown := set(chosen) - set(names()):
        parser.error(f"no comparison is named {', '.join(sorted(unknown))}")
    repeat = 2 if given.quick else max(harness.MIN_REPEAT, given.repeat)
    if given.in_this_process:
        return _run(chosen[0], repeat=repeat)

    results: list[harness.Result] = []
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        topic = Topic(Path(folder), events=QUICK_EVENTS if given.quick else TOPIC_EVENTS)
        try:
            for name in chosen:
                results += _in_own_process(name, topic, folder=Path(folder), repeat=repeat, quick=given.quick)
        finally:
            topic.close()
    print()
    print(harness.table(results))
    return 0 if all(each.is_met for each in results) else 1


def _in_own_process(name: str, topic: Topic, *, folder: Path, repeat: int, quick: bool) -> list[harness.Result]:
    """Each file in a process of its own: a JVM's warmth must not pass from one comparison to the next."""
    variables = topic.variables() if getattr(_module(name), "NEEDS_TOPIC", False) else {}
    command = [sys.executable, "-m", "bench", name, "--in-this-process", "--repeat", str(repeat)]
    # Penstock and the hand-written jobs keep their tables and checkpoints below the working folder.
    env = {**os.environ, **variables, "BENCH_FOLDER": str(folder)}
    began = time.monotonic()
    subprocess.run([*command, *(["--quick"] if quick else [])], env=env, check=True)
    print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)
    return harness.load(harness.RESULTS / f"{name}.json")


def _run(name: str, *, repeat: int) -> int:
    tell = lambda text: print(text, flush=True)  # noqa: E731
    harness.save(name, [harness.measure(each, repeat=repeat, tell=tell) for each in _module(name).comparisons()])
    return 0


def _module(name: str):  # type: ignore[no-untyped-def]
    return importlib.import_module(f"bench.{name}")


if __name__ == "__main__":
    sys.exit(main())
