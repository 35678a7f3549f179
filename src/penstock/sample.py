"""Made-up events that carry their own truth: which are good, late or malformed is known from their number.

The same number and seed always give the same event, so whoever wrote a million of them can tell which one is
missing. The demo, `penstock init` and the source `events` all use these.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime

FIRST = datetime(2026, 1, 1, tzinfo=UTC)
USERS = 500
# One in so many is malformed, or far behind the others.
MALFORMED_EVERY = 100
LATE_EVERY = 50
_HOUR_S = 3600
_MASK = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Event:
    """One event: the bytes that are sent, and what they stand for.

    `behind` says that it is hours older than its neighbours, so that it may be late; all others never are.
    """

    number: int
    user_id: str
    time_ns: int
    value: bytes
    malformed: bool
    behind: bool

    @property
    def event_id(self) -> str:
        return f"e{self.number:09d}"

    @property
    def hour(self) -> datetime:
        """The hour that a correct count puts it into."""
        return datetime.fromtimestamp(self.time_ns // 1_000_000_000 // _HOUR_S * _HOUR_S, UTC)


def event(number: int, *, step_ms: int = 432, seed: int = 0) -> Event:
    """The event of a number. Times go up by `step_ms` an event, with some disorder and some far too late."""
    chance = _mix(number ^ (seed << 40))
    user_id = f"user{chance % USERS:03d}"
    time_ns = int(FIRST.timestamp()) * 1_000_000_000 + number * step_ms * 1_000_000 + (chance >> 8) % 1_000_000_000
    time_ns -= ((chance >> 12) % 60) * 1_000_000_000
    behind = (chance >> 20) % LATE_EVERY == 0
    if behind:
        # Never before the first hour, so that a late event is late and not simply of another day.
        behind_s = 2 * _HOUR_S + (chance >> 30) % (4 * _HOUR_S)
        time_ns = max(int(FIRST.timestamp()) * 1_000_000_000 + 1, time_ns - behind_s * 1_000_000_000)
    fields = {"event_id": f"e{number:09d}", "user_id": user_id, "event_time": iso(time_ns), "data": f"{chance:016x}"}
    if (chance >> 44) % MALFORMED_EVERY == 0:
        return Event(number, user_id, time_ns, _spoil(fields, (chance >> 54) % 5), malformed=True, behind=behind)
    return Event(number, user_id, time_ns, json.dumps(fields).encode(), malformed=False, behind=behind)


def iso(time_ns: int) -> str:
    """ISO-8601 with nanoseconds."""
    seconds, nanos = divmod(time_ns, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{nanos:09d}Z"


def _spoil(fields: dict[str, str], way: int) -> bytes:
    """One of five ways in which real producers get it wrong."""
    if way == 0:
        return f"event {fields['event_id']} has no JSON".encode()
    whole = json.dumps(fields)
    if way == 1:
        return whole[: len(whole) // 2].encode()
    if way == 2:
        return json.dumps({**fields, "event_time": fields["event_time"].replace("2026-", "2026-13-")}).encode()
    if way == 3:
        return json.dumps({**fields, "event_time": 1_767_225_600_000}).encode()
    return json.dumps({key: value for key, value in fields.items() if key != "user_id"}).encode()


def _mix(number: int) -> int:
    """A number's own dice (splitmix64): spread evenly, and the same everywhere."""
    mixed = (number + 0x9E3779B97F4A7C15) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return mixed ^ (mixed >> 31)
