"""The names that others may rely on."""

from __future__ import annotations

import penstock
from penstock import errors


def test_the_public_names_are_these() -> None:
    assert penstock.__all__ == ["__version__", "register"]


def test_the_tree_of_errors_is_the_one_that_is_drawn() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    drawn = {line.strip("│├└─ ").split()[0] for line in (errors.__doc__ or "").splitlines()[2:] if line.strip()}
    assert {kind.__name__ for kind in kinds} == drawn
    assert all(issubclass(kind, errors.PenstockError) for kind in kinds)
    assert {kind.__name__: kind.exit_code for kind in kinds if kind.exit_code != 2} == {
        "GuaranteeError": 1,
        "FenceError": 1,
        "Fenced": 1,
        "RunError": 1,
        "RetryableRunError": 1,
        "VerdictError": 1,
        "UnknownResult": 3,
    }


def test_an_error_is_three_lines_at_most() -> None:
    assert str(errors.PenstockError("w", why="y", fix="f")) == "w\n  why: y\n  fix: f"
    assert str(errors.PenstockError("w")) == "w"
    assert str(errors.SpecError("w", file="a.yml", line=3)) == "a.yml:3: w"
    assert "pip install 'penstock[kafka]'" in str(errors.MissingExtra("x", extra="kafka", needed_for="y"))
