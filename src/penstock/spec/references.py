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

_REFERENCE = re.compile(r"\$\{([^}]*)\}")
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
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _DOTENV.match(line)
        if not match:
            raise SpecError(
                "not a NAME=value line", file=str(path), line=number, fix="write NAME=value, or # before it"
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
            return {key: self.walk(item, (*path, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self.walk(item, (*path, index)) for index, item in enumerate(value)]
        key = str(path[-1]) if path else ""
        if isinstance(value, str):
            text = _REFERENCE.sub(lambda match: self._look_up(match[1], path), value)
            if _REFERENCE.search(value):
                return Referenced(text, reference=value)
            self._refuse_literal_secret(key, value, path)
        elif value is not None and not isinstance(value, bool):
            self._refuse_literal_secret(key, str(value), path)
        return value

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
            target = (self.file.parent / name).expanduser()
            try:
                return target.read_text(encoding="utf-8").rstrip("\n")
            except (OSError, UnicodeDecodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
                raise self._error(
                    f"${{{reference}}}: {target} can't be read",
                    path,
                    why=str(reason),
                    fix="check the path; it is taken from the pipeline file's folder",
                ) from None
        raise self._error(f"${{{reference}}} is not a reference", path, fix="write ${env:NAME} or ${file:path}")

    def _refuse_literal_secret(self, key: str, value: str, path: KeyPath) -> None:
        if value and (is_secret_key(key) or holds_secret(value)):
            raise self._error(
                f"{key} holds a secret in plain text",
                path,
                why="the file is read by people and kept in version control",
                fix=f"write {key}: ${{env:NAME}} and set NAME in the environment or in .env",
            )

    def _error(self, what: str, path: KeyPath, *, why: str = "", fix: str = "") -> SpecError:
        return SpecError(what, file=str(self.file), line=self.document.line(path), why=why, fix=fix)
