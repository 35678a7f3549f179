"""`${env:VAR}` and `${file:path}` in a pipeline file, and the `.env` beside it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.errors import SpecError
from penstock.secrets import Referenced, holds_secret, is_secret_key
from penstock.spec.yaml_text import Document
from penstock.spec.yaml_text import Path as KeyPath

# `$${` stands for a `${` that is no reference; one that is left open is a slip.
_REFERENCE = re.compile(r"\$\$\{|\$\{([^}]*)(\}?)")
_DOTENV = re.compile(r"^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*$")


def environment(folder: Path) -> dict[str, str]:
    """The process's variables over those of a `.env` in `folder`."""
    return {**_dotenv(folder / ".env"), **os.environ}


def resolve(document: Document, *, file: Path, variables: Mapping[str, str]) -> Any:
    """The document's value with every reference replaced, and every literal secret refused."""
    return _Resolver(document, file, variables).walk(document.value, ())


def _dotenv(path: Path) -> dict[str, str]:
    if not path.is_file():
        return {}
    found: dict[str, str] = {}
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(
            "the file can't be read",
            file=str(path),
            why=str(error.strerror) if isinstance(error, OSError) else "it is not UTF-8 text",
            fix="make it readable UTF-8 text, or remove it",
        ) from None
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _DOTENV.match(line)
        if not match:
            raise SpecError(
                "not a NAME=value line",
                file=str(path),
                line=number,
                why="a .env holds one variable a line",
                fix="write NAME=value, or # before it",
            )
        name, value = match.groups()
        if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        found[name] = value
    return found


class _Resolver:
    def __init__(self, document: Document, file: Path, variables: Mapping[str, str]) -> None:
        self.document = document
        self.file = file
        self.variables = variables

    def walk(self, value: Any, path: KeyPath) -> Any:
        if isinstance(value, dict):
            return {self._plain_key(key, path): self.walk(item, (*path, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self.walk(item, (*path, index)) for index, item in enumerate(value)]
        # The items of a list are named by the list.
        key = next((item for item in reversed(path) if isinstance(item, str)), "")
        if isinstance(value, str):
            if _REFERENCE.search(value):
                self._refuse_literal_secret("", _REFERENCE.sub("", value), path, named=key)
                text = _REFERENCE.sub(lambda match: self._replace(match, path), value)
                return Referenced(text, reference=value) if "${" in value.replace("$${", "") else text
            self._refuse_literal_secret(key, value, path)
        elif value is not None and not isinstance(value, bool):
            self._refuse_literal_secret(key, str(value), path)
        return value

    def _plain_key(self, key: str, path: KeyPath) -> str:
        if _REFERENCE.search(key):
            raise self._error(
                f"the key {key!r} holds a reference",
                (*path, key),
                why="references stand in values; a key is what the file means",
                fix="write the key out",
            )
        return key

    def _replace(self, match: re.Match[str], path: KeyPath) -> str:
        if match[0] == "$${":
            return "${"
        if not match[2]:
            raise self._error(
                f"{match[0][:40]} is not closed",
                path,
                why="a reference ends with }",
                fix="write ${env:NAME} or ${file:path}, or $${ for a plain ${",
            )
        return self._look_up(match[1], path)

    def _look_up(self, reference: str, path: KeyPath) -> str:
        kind, _, name = reference.partition(":")
        if kind == "env" and name:
            if name in self.variables:
                return self.variables[name]
            raise self._error(
                f"${{{reference}}}: the variable {name} is not set",
                path,
                why="it is neither in the environment nor in the .env beside the file",
                fix=f"export {name}=…, or add {name}=… to {self.file.parent / '.env'}",
            )
        if kind == "file" and name:
            target = self.file.parent / Path(name).expanduser()
            try:
                return target.read_text(encoding="utf-8-sig").rstrip("\r\n")
            except (OSError, UnicodeDecodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
                raise self._error(
                    f"${{{reference}}}: {target} can't be read",
                    path,
                    why=str(reason),
                    fix="check the path; it is taken from the pipeline file's folder",
                ) from None
        raise self._error(
            f"${{{reference}}} is not a reference",
            path,
            why="only variables and files can be referred to",
            fix="write ${env:NAME} or ${file:path}, or $${ for a plain ${",
        )

    def _refuse_literal_secret(self, key: str, value: str, path: KeyPath, *, named: str = "") -> None:
        if value and (is_secret_key(key) or holds_secret(value)):
            key = key or named
            raise self._error(
                f"{key} holds a secret in plain text",
                path,
                why="the file is read by people and kept in version control",
                fix=f"write {key}: ${{env:NAME}} and set NAME in the environment or in .env",
            )

    def _error(self, what: str, path: KeyPath, *, why: str = "", fix: str = "") -> SpecError:
        return SpecError(what, file=str(self.file), line=self.document.line(path), why=why, fix=fix)
