"""One small face over local disk and object stores: list, get, put, put_if_absent, delete.

Paths are what Spark takes: a local path, `file:`, `s3a://`, `gs://`, `abfs://`. `put_if_absent` is exclusive on
each of them, which is all that the fence and the ledgers rest on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.errors import StorageError
from penstock.secrets import hide

_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+:")


class AlreadyThereError(Exception):
    """put_if_absent found the object: somebody else was first."""


def is_local(uri: str) -> bool:
    """Whether a path is on this machine's own file systems."""
    return not _SCHEME.match(uri) or uri.startswith("file:")


def local_path(uri: str) -> Path:
    """The path of a local URI."""
    if not uri.startswith("file:"):
        return Path(uri)
    from urllib.parse import unquote, urlsplit

    return Path(unquote(urlsplit(uri).path))


def absolute(uri: str, *, folder: Path) -> str:
    """A local path made absolute from `folder`; anything else as it is, without a trailing slash.

    Raises:
        ValueError: no path can be made of it (a home folder of nobody, a circle of links).
    """
    if is_local(uri):
        try:
            path = local_path(uri).expanduser()
            # Resolved, so that a symbolic link does not give one checkpoint two names and two fences.
            return str((folder / path).resolve())
        except (RuntimeError, OSError) as error:
            raise ValueError(str(error)) from None
    return uri.rstrip("/")


@dataclass(frozen=True)
class Store:
    """A folder in some store; names are relative to it and use `/`."""

    uri: str
    _store: Any

    def list(self, prefix: str = "") -> list[str]:
        """The names under a prefix, sorted."""
        try:
            pages = self._store.list(prefix or None)
            return sorted(entry["path"] for page in pages for entry in page)
        except Exception as error:
            raise self._error("list", prefix, error) from None

    def get(self, name: str) -> bytes | None:
        """The bytes of an object, or None if it is not there."""
        try:
            return bytes(self._store.get(name).bytes())
        except FileNotFoundError:
            return None
        except Exception as error:
            raise self._error("read", name, error) from None

    def put(self, name: str, data: bytes) -> None:
        """Write an object, replacing what was there."""
        try:
            self._store.put(name, data)
        except Exception as error:
            raise self._error("write", name, error) from None

    def put_if_absent(self, name: str, data: bytes) -> None:
        """Write an object that must not be there yet; AlreadyThereError if it is."""
        from obstore.exceptions import AlreadyExistsError

        try:
            self._store.put(name, data, mode="create", use_multipart=False)
        except (AlreadyExistsError, FileExistsError):
            raise AlreadyThereError(name) from None
        except Exception as error:
            raise self._error("write", name, error) from None

    def delete(self, name: str) -> None:
        """Remove an object; no error if it is not there."""
        try:
            self._store.delete(name)
        except FileNotFoundError:
            pass
        except Exception as error:
            raise self._error("delete", name, error) from None

    def path(self, name: str) -> str:
        """The name as Spark would write it."""
        return f"{self.uri}/{name}"

    def _error(self, verb: str, name: str, error: Exception) -> StorageError:
        cause = hide(" ".join(str(error).split()))
        return StorageError(
            f"{self.path(name)}: can't {verb}",
            why=cause[:300],
            fix="check that the path exists and that this user may read and write it",
        )


def open_store(uri: str) -> Store:
    """The store at `uri`; a local folder is created when something is written."""
    if is_local(uri):
        return Store(uri, _local(uri))
    scheme = uri.partition(":")[0].lower()
    if scheme in ("hdfs", "viewfs"):
        raise StorageError(
            f"{uri}: Penstock can't write to HDFS yet",
            why="there is no HDFS client in it",
            fix="use S3 or local disk",
        )
    from obstore.store import from_url

    address = re.sub(r"^s3[an]:", "s3:", uri)
    try:
        return Store(uri, from_url(address))
    except Exception as error:
        raise StorageError(f"{uri}: can't be opened", why=hide(str(error))[:300], fix="check the address") from None


def _local(uri: str) -> Any:
    from obstore.store import LocalStore

    folder = local_path(uri)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"{folder}: can't be created",
            why=error.strerror or str(error),
            fix="choose a path whose parent is a folder that this user may write",
        ) from None
    return LocalStore(str(folder))
