"""A against B, interleaved in one run: medians, their ratio, and how far the pairs spread."""

from __future__ import annotations

import json
import platform
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

MIN_REPEAT = 5
RESULTS = Path(__file__).with_name("results")


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two ways to do the same, each measured by calling it; what it returns is in `unit`."""

    name: str
    unit: str
    ours: Callable[[], float]
    theirs: Callable[[], float]
    # None where the two do not do the same work, and the figure is only worth knowing.
    target: float | None
    # Whether a ratio above the target is good (rows a second), or one below it (seconds).
    more_is_better: bool
    # Unmeasured rounds before the first, so that neither side pays for compiling and caching.
    warm_ups: int = 1


@dataclass(frozen=True, slots=True)
class Result:
    """What a comparison gave."""

    name: str
    unit: str
    ours: list[float]
    theirs: list[float]
    target: float | None
    more_is_better: bool

    @property
    def ratio(self) -> float:
        return statistics.median(self.ours) / statistics.median(self.theirs)

    @property
    def pairs(self) -> list[float]:
        """The ratio of each pair: the two ran one after the other, so a busy moment of the machine hit both."""
        return [ours / theirs for ours, theirs in zip(self.ours, self.theirs, strict=True)]

    @property
    def is_met(self) -> bool:
        if self.target is None:
            return True
        return self.ratio >= self.target if self.more_is_better else self.ratio <= self.target

    @property
    def row(self) -> list[str]:
        sign = "≥" if self.more_is_better else "≤"
        return [
            self.name,
            f"{statistics.median(self.ours):,.4g} {self.unit}",
            f"{statistics.median(self.theirs):,.4g} {self.unit}",
            f"{self.ratio:.3f}",
            f"{min(self.pairs):.2f}–{max(self.pairs):.2f}",
            "" if self.target is None else f"{sign} {self.target:g}",
            "" if self.target is None else "met" if self.is_met else "MISSED",
        ]


def measure(comparison: Comparison, *, repeat: int, tell: Callable[[str], None]) -> Result:
    """Run both sides in turn, `repeat` times each; who goes first alternates."""
    sides = {"ours": comparison.ours, "theirs": comparison.theirs}
    for _ in range(comparison.warm_ups):
        for side in sides.values():
            side()
    found: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(repeat):
        for name in list(sides) if number % 2 == 0 else reversed(list(sides)):
            found[name].append(sides[name]())
            tell(f"{comparison.name}: {number + 1}/{repeat} {name} {found[name][-1]:,.4g} {comparison.unit}")
    return Result(
        comparison.name,
        comparison.unit,
        found["ours"],
        found["theirs"],
        comparison.target,
        comparison.more_is_better,
    )


def save(name: str, results: list[Result]) -> Path:
    """Write what a file of comparisons gave, with what it was measured on."""
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / f"{name}.json"
    document = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "machine": platform.platform(),
        "results": [{**asdict(each), "ratio": each.ratio, "pairs": each.pairs, "met": each.is_met} for each in results],
    }
    file.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return file


def load(file: Path) -> list[Result]:
    """The results in a file that `save` wrote."""
    fields = Result.__dataclass_fields__
    found = json.loads(file.read_text(encoding="utf-8"))["results"]
    return [Result(**{key: value for key, value in each.items() if key in fields}) for each in found]


def table(results: list[Result]) -> str:
    """The results as aligned text."""
    rows = [["", "penstock", "instead", "ratio", "pairs", "target", ""], *(each.row for each in results)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
