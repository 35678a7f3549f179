"""The offset log: one file a batch, written before the batch runs.

`offsets/N` is a version line (`v1` or `v2`), a line of metadata (watermark, time, settings), then one line per
source with the position up to which the batch reads. From version 2 on a source line begins with its name.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from penstock.errors import StorageError
from penstock.storage import Store


@dataclass(frozen=True, slots=True)
class Offsets:
    """What one batch was planned to read."""

    batch: int
    version: str
    metadata: dict[str, Any]
    sources: tuple[str, ...]

    @property
    def watermark_ms(self) -> int:
        return int(self.metadata.get("batchWatermarkMs", 0))


def parse(data: bytes, *, batch: int, where: str) -> Offsets:
    """The offsets in one file of the log."""
    lines = data.decode("utf-8", errors="replace").split("\n")
    try:
        if lines[0].strip() not in ("v1", "v2"):
            raise ValueError(f"it begins with {lines[0][:20]!r}, not with a version")
        metadata = json.loads(lines[1]) if len(lines) > 1 and lines[1] else {}
        if not isinstance(metadata, dict):
            raise ValueError("its second line is not metadata")
        sources = tuple(line for line in lines[2:] if line)
        if not sources:
            raise ValueError("it ends before the position of a source")
        for line in sources:
            position = line.partition(":")[2] if lines[0].strip() == "v2" else line
            if position.startswith("{"):
                json.loads(position)
    except ValueError as error:
        raise StorageError(
            f"{where}: this is not a whole offset log file",
            why=str(error),
            fix="the checkpoint is damaged: restore the file from a copy before the next start",
        ) from None
    return Offsets(batch, lines[0].strip(), metadata, sources)


def read(checkpoint: Store, batch: int) -> Offsets | None:
    """The offsets of one batch, or None if they are not (or no longer) there."""
    name = f"offsets/{batch}"
    data = checkpoint.get(name)
    return None if data is None else parse(data, batch=batch, where=checkpoint.path(name))


def batches(checkpoint: Store, log: str) -> list[int]:
    """The numbers of the batches in a log (`offsets` or `commits`), ascending."""
    names = (name.rpartition("/")[2] for name in checkpoint.list(f"{log}/"))
    return sorted(int(name) for name in names if name.isdigit())
