"""What can be told of a checkpoint before a JVM is started: whether Spark could start from it."""

from __future__ import annotations

import json
import os
from pathlib import Path

from penstock.checkpoint import offsets
from penstock.errors import StorageError
from penstock.storage import is_local, local_path, open_store


def check(checkpoint: str) -> None:
    """Raise if the checkpoint is something that Spark could not start from."""
    if is_local(checkpoint):
        path = local_path(checkpoint)
        if path.exists() and not path.is_dir():
            raise StorageError(
                f"checkpoint {path} is a file", why="a checkpoint is a folder", fix="choose another path"
            )
        if not path.exists():
            _check_parent(path)
            return
    store = open_store(checkpoint)
    planned = offsets.batches(store, "offsets")
    if planned:
        # The last file decides where the next start begins, so a torn one is told before a JVM is started.
        offsets.read(store, planned[-1])
        metadata = store.get("metadata")
        if metadata is None or not _has_id(metadata):
            raise StorageError(
                f"{store.path('metadata')}: the query's id is {'gone' if metadata is None else 'not readable'}",
                why="without it Spark would take this for a new query, and the sink would not know its batches",
                fix="restore the file `metadata` from a copy; don't delete the checkpoint",
            )


def _check_parent(path: Path) -> None:
    """Raise if a folder that is not there yet could not be made."""
    parent = next(folder for folder in path.parents if folder.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise StorageError(
            f"checkpoint {path} can't be created",
            why=f"{parent} is {'not writable for this user' if parent.is_dir() else 'a file, not a folder'}",
            fix="choose a path whose parent is a folder that this user may write",
        )


def _has_id(metadata: bytes) -> bool:
    try:
        return bool(json.loads(metadata)["id"])
    except (ValueError, KeyError, TypeError):
        return False
