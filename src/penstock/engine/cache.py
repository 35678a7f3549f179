"""The user's cache folder, and files in it that are known by their SHA-256."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from penstock.errors import JarError


def cache_folder(given: Path | None = None) -> Path:
    """Return `given`, else $PENSTOCK_CACHE, else $XDG_CACHE_HOME/penstock, else ~/.cache/penstock."""
    if given is not None:
        return given.absolute()
    if own := os.environ.get("PENSTOCK_CACHE"):
        return Path(own).expanduser().absolute()
    if xdg := os.environ.get("XDG_CACHE_HOME"):
        return Path(xdg, "penstock").absolute()
    return Path.home() / ".cache" / "penstock"


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_verified(path: Path, *, sha256: str) -> bool:
    """Whether `path` is there with the pinned content; False when it is absent.

    Hashing 100 MB at each start would cost more than it gives, so a stamp beside the file keeps the stat
    that belongs to the last good hash; only a file whose stat has changed is hashed again. The stat holds
    the change time, which (unlike the modification time) can't be set back after tampering.

    Raises:
        JarError: the file is there and its content is another.
    """
    try:
        stat = _stat_line(path, sha256=sha256)
    except FileNotFoundError:
        return False
    with suppress(OSError):
        if _stamp_of(path).read_text(encoding="ascii", errors="replace") == stat:
            return True
    check_sha256(path, sha256=sha256, named=path)
    write_stamp(path, sha256=sha256)
    return True


def is_stamped(path: Path) -> bool:
    """Whether `path` is there as it was when its stamp was written; it is not read for this."""
    try:
        stamp = _stamp_of(path).read_text(encoding="ascii", errors="replace")
        return stamp == _stat_line(path, sha256=stamp.partition(" ")[0])
    except OSError:
        return False


def check_sha256(path: Path, *, sha256: str, named: Path) -> None:
    """Raise JarError, with both hashes, unless the file at `path` (shown as `named`) has this hash."""
    found = sha256_of(path)
    if found != sha256:
        raise JarError(
            f"{named} is not the file that was pinned",
            why=f"its SHA-256 is {found}, and {sha256} was expected",
            fix=f"delete {named} if it is there and run again; "
            "if this repeats, your mirror serves another file under that name",
        )


def write_stamp(path: Path, *, sha256: str) -> None:
    """Note that `path`, as it is now, has this hash."""
    # A read-only cache (one that an administrator filled) still works; it is just hashed each time.
    with suppress(OSError):
        _stamp_of(path).write_text(_stat_line(path, sha256=sha256), encoding="ascii")


@contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """A folder of our own on the cache's file system, and away with those of makers that were killed."""
    import fcntl

    for old in folder.glob(".fetch-*"):
        with suppress(OSError), (old / "lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # refused while its maker lives
            shutil.rmtree(old, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-", ignore_cleanup_errors=True) as name:
        own = Path(name)
        with (own / "lock.new").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            os.rename(lock.name, own / "lock")  # only now, so nobody finds it unlocked
            yield own


def _stamp_of(path: Path) -> Path:
    return path.with_name(path.name + ".stamp")


def _stat_line(path: Path, *, sha256: str) -> str:
    stat = path.stat()
    return f"{sha256} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}\n"
