"""YAML to plain values with the line of each, refusing what a pipeline file has no use for.

Only mappings, sequences and scalars of YAML's core: no tags that build objects, no duplicate keys, and aliases
only as far as the expanded document stays small (a few lines of nested aliases can otherwise fill memory).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from penstock.errors import SpecError

MAX_BYTES = 1 << 20
MAX_NODES = 10_000

Path = tuple[str | int, ...]
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Document:
    """A YAML file's value, and the line on which each part of it begins."""

    value: Any
    lines: dict[Path, int]

    def line(self, path: Path) -> int | None:
        """The line of a part, or of the nearest thing around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path)


def parse(text: str, *, file: str) -> Document:
    """The document in `text`."""
    if len(text.encode()) > MAX_BYTES:
        raise SpecError(
            f"the file is larger than {MAX_BYTES >> 10} KiB",
            file=file,
            why="a pipeline file of this size is a mistake",
            fix="check that this is the file you meant",
        )
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            raise SpecError("the file is empty", file=file, fix="start from `penstock init`")
        lines: dict[Path, int] = {}
        return Document(_Reader(loader, file, lines).read(node, ()), lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise SpecError(
            f"not valid YAML: {error.problem or error.context}",
            file=file,
            line=mark.line + 1 if mark else None,
            why=str(error.context or "YAML can't be read past this line"),
            fix="look at the indentation, quotes and colons on this line and the one above",
        ) from None
    except yaml.YAMLError as error:
        raise SpecError(f"not valid YAML: {error}".splitlines()[0], file=file) from None
    finally:
        loader.dispose()


class _Reader:
    def __init__(self, loader: Any, file: str, lines: dict[Path, int]) -> None:
        self.loader = loader
        self.file = file
        self.lines = lines
        self.nodes = 0

    def read(self, node: Any, path: Path) -> Any:
        line = node.start_mark.line + 1
        self.lines.setdefault(path, line)
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise SpecError(
                f"more than {MAX_NODES} values once its aliases are written out",
                file=self.file,
                line=line,
                why="nested YAML aliases grow without bound",
                fix="write the values out instead of using *aliases",
            )
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.read(child, (*path, index)) for index, child in enumerate(node.value)]
        value = self.loader.construct_object(node)
        # YAML 1.1 reads a bare date as a date object; a pipeline file has only texts, numbers and booleans.
        return value if isinstance(value, str | int | float | bool | None) else str(node.value)

    def _mapping(self, node: Any, path: Path) -> dict[str, Any]:
        result: dict[str, Any] = {}
        first: dict[str, int] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            # YAML 1.1 reads a bare `on` or `yes` as true: the text as written is what was meant.
            key = str(key_node.value)
            if not isinstance(key_node, yaml.ScalarNode) or key == "<<":
                raise SpecError(f"{key[:40]!r} can't be a key here", file=self.file, line=line, fix="use a plain word")
            if key in result:
                raise SpecError(
                    f"{key!r} is there twice",
                    file=self.file,
                    line=line,
                    why=f"it was first given on line {first[key]}; YAML would silently keep only one",
                    fix="remove one of the two",
                )
            first[key] = line
            result[key] = self.read(value_node, (*path, key))
            self.lines[(*path, key)] = line
        return result
