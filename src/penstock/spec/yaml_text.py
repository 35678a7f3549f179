"""YAML to plain values with the line of each, refusing what a pipeline file has no use for.

Only mappings, sequences and scalars of YAML's core: no tags that build objects, no duplicate keys, and aliases
only as far as the expanded document stays small (a few lines of nested aliases can otherwise fill memory).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import yaml

from penstock.errors import SpecError

MAX_BYTES = 1 << 20
MAX_NODES = 10_000
MAX_DEPTH = 50

Path = tuple[str | int, ...]
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PLAIN_TAGS = tuple(f"tag:yaml.org,2002:{kind}" for kind in ("bool", "int", "float", "null"))
_TEXT_TAGS = tuple(f"tag:yaml.org,2002:{kind}" for kind in ("str", "timestamp", "value", "map", "seq"))
# What looks like a number to a person. YAML 1.1 also takes 010 for eight and 1:30 for ninety.
_NUMBER = re.compile(
    r"[-+]?(0|[1-9][0-9_]{0,30}|0x[0-9a-fA-F]{1,30})|[-+]?([0-9][0-9_]*)?\.[0-9eE+-]*|[-+]?\.(inf|nan)", re.I
)


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
    loader = None
    try:
        _survey(text, file=file)
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            raise SpecError(
                "the file is empty",
                file=file,
                why="there is nothing in it but comments",
                fix="start from `penstock init`",
            )
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
        raise SpecError(
            f"not valid YAML: {str(error).splitlines()[0]}",
            file=file,
            why="the file holds a character that YAML does not allow",
            fix="save it as plain UTF-8 text",
        ) from None
    finally:
        if loader:
            loader.dispose()


def _survey(text: str, *, file: str) -> None:
    """Refuse what is too deep or too long before it is composed: libyaml's composer recurses on the C stack."""
    depth = nodes = 0
    for event in yaml.parse(text, Loader=_Loader):
        nodes += isinstance(event, yaml.NodeEvent)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise _too_deep(file, event.start_mark.line + 1)
        if nodes > MAX_NODES:
            raise _too_many(file, event.start_mark.line + 1)


def _too_deep(file: str, line: int) -> SpecError:
    return SpecError(
        f"nested more than {MAX_DEPTH} deep",
        file=file,
        line=line,
        why="a pipeline file is a few levels deep; brackets are left open, or an alias holds itself",
        fix="look at the brackets, indentation and *aliases on this line",
    )


def _too_many(file: str, line: int) -> SpecError:
    return SpecError(
        f"more than {MAX_NODES} values once its aliases are written out",
        file=file,
        line=line,
        why="nested YAML aliases grow without bound",
        fix="write the values out instead of using *aliases",
    )


class _Reader:
    def __init__(self, loader: Any, file: str, lines: dict[Path, int]) -> None:
        self.loader = loader
        self.file = file
        self.lines = lines
        self.nodes = 0
        self.size = 0

    def read(self, node: Any, path: Path) -> Any:
        line = node.start_mark.line + 1
        self.lines.setdefault(path, line)
        self.nodes += 1
        if len(path) > MAX_DEPTH:
            raise _too_deep(self.file, line)
        if isinstance(node, yaml.ScalarNode):
            self.size += len(node.value)
        if self.nodes > MAX_NODES or self.size > MAX_BYTES:
            raise _too_many(self.file, line)
        if node.tag not in _PLAIN_TAGS + _TEXT_TAGS:
            raise SpecError(
                f"the tag {node.tag} is not taken",
                file=self.file,
                line=line,
                why="a pipeline file holds texts, numbers, lists and mappings, and builds no objects",
                fix="remove the tag",
            )
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.read(child, (*path, index)) for index, child in enumerate(node.value)]
        return self._scalar(node)

    def _scalar(self, node: Any) -> Any:
        # YAML 1.1 reads a bare date as a date object; a pipeline file has only texts, numbers and booleans.
        text = str(node.value)
        if node.tag not in _PLAIN_TAGS:
            return text
        if node.tag.endswith((":int", ":float")) and not _NUMBER.fullmatch(text):
            return text
        try:
            return self.loader.construct_object(node)
        except (ValueError, KeyError):
            return text

    def _mapping(self, node: Any, path: Path) -> dict[str, Any]:
        result: dict[str, Any] = {}
        first: dict[str, int] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            # YAML 1.1 reads a bare `on` or `yes` as true: the text as written is what was meant.
            key = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else "a list or mapping"
            if not isinstance(key_node, yaml.ScalarNode) or key == "<<":
                raise SpecError(
                    f"{key} can't be a key here",
                    file=self.file,
                    line=line,
                    why="a pipeline file has plain words for keys, and no merging of mappings",
                    fix="write the keys out",
                )
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
