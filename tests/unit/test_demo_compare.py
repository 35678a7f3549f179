"""The demo's verdict: every planted fault is found, and clean data is never accused."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import sample
from penstock.demo import Sums, compare

COUNT = 500
EVENTS = [sample.event(number) for number in range(COUNT)]
GOOD = [event for event in EVENTS if not event.malformed]
SPOILED = [event for event in EVENTS if event.malformed]
BEHIND = [place for place, event in enumerate(GOOD) if event.behind]


@dataclass
class Found:
    """What a table and a quarantine hold."""

    counted: Counter[tuple[float, str]]
    malformed: Counter[str]
    late: Counter[str]

    def sums(self) -> Sums:
        return compare(COUNT, counted=self.counted, malformed=self.malformed, late=self.late)


def key(event: sample.Event) -> tuple[float, str]:
    return (event.hour.timestamp(), event.user_id)


def clean(late: frozenset[int] = frozenset()) -> Found:
    """What a correct run leaves, in which the good events of these places were late."""
    return Found(
        Counter(key(event) for place, event in enumerate(GOOD) if place not in late),
        Counter(event.value.decode() for event in SPOILED),
        Counter(GOOD[place].event_id for place in late),
    )


PLACES = st.frozensets(st.sampled_from(BEHIND))


@given(late=PLACES)
def test_clean_data_is_never_accused(late: frozenset[int]) -> None:
    sums = clean(late).sums()
    assert sums.exact
    assert (sums.lost, sums.duplicated) == (0, 0)
    assert (sums.sent, sums.late, sums.quarantined) == (COUNT, len(late), len(SPOILED))
    assert sums.counted == sums.on_time == COUNT - len(late) - len(SPOILED)


@given(late=PLACES, place=st.integers(0, len(GOOD) - 1), data=st.data())
def test_a_planted_loss_or_duplicate_is_always_found(late: frozenset[int], place: int, data: st.DataObject) -> None:
    found = clean(late)
    event = GOOD[place]
    change = data.draw(st.sampled_from([-1, 1]))
    if place in late:
        found.late[event.event_id] += change
    else:
        found.counted[key(event)] += change
    sums = found.sums()
    assert not sums.exact
    # A late event that is in neither place is expected in the table again, so it counts as lost there.
    assert (sums.lost, sums.duplicated) == ((1, 0) if change < 0 else (0, 1))


def test_a_lost_event_is_found() -> None:
    found = clean()
    found.counted[key(GOOD[7])] -= 1
    assert (found.sums().lost, found.sums().duplicated, found.sums().exact) == (1, 0, False)


def test_a_window_row_that_is_there_twice_is_found() -> None:
    found = clean()
    rows = found.counted[key(GOOD[7])]
    found.counted[key(GOOD[7])] += rows
    assert (found.sums().lost, found.sums().duplicated, found.sums().exact) == (0, rows, False)


def test_a_malformed_row_that_is_missing_is_found() -> None:
    found = clean()
    del found.malformed[SPOILED[0].value.decode()]
    assert (found.sums().lost, found.sums().exact) == (1, False)


def test_a_malformed_row_that_is_there_twice_is_found() -> None:
    found = clean()
    found.malformed[SPOILED[0].value.decode()] += 1
    assert (found.sums().duplicated, found.sums().exact) == (1, False)


def test_a_late_row_that_is_there_twice_is_found() -> None:
    found = clean(frozenset({BEHIND[0]}))
    found.late[GOOD[BEHIND[0]].event_id] += 1
    assert (found.sums().duplicated, found.sums().exact) == (1, False)


def test_a_late_row_that_was_counted_as_well_is_found() -> None:
    found = clean()
    found.late[GOOD[BEHIND[0]].event_id] += 1
    assert (found.sums().duplicated, found.sums().exact) == (1, False)


def test_an_event_on_time_that_was_put_aside_as_late_is_lost() -> None:
    place = next(place for place in range(len(GOOD)) if place not in BEHIND)
    found = clean()
    found.counted[key(GOOD[place])] -= 1
    found.late[GOOD[place].event_id] += 1
    assert (found.sums().lost, found.sums().exact) == (1, False)


def test_an_event_counted_in_the_wrong_hour_is_lost_here_and_doubled_there() -> None:
    found = clean()
    hour, user = key(GOOD[7])
    found.counted[(hour, user)] -= 1
    found.counted[(hour + 3600, user)] += 1
    assert (found.sums().lost, found.sums().duplicated, found.sums().exact) == (1, 1, False)


def test_rows_that_nobody_sent_are_found() -> None:
    found = clean()
    found.counted[(0.0, "nobody")] += 2
    found.malformed["what?"] += 1
    found.late["e999999999"] += 1
    assert (found.sums().duplicated, found.sums().exact) == (4, False)


def test_an_empty_table_has_lost_everything() -> None:
    assert compare(COUNT, counted=Counter(), malformed=Counter(), late=Counter()).lost == COUNT


@given(number=st.integers(0, 10**9), seed=st.integers(0, 1000))
def test_an_event_is_the_same_every_time_and_tells_the_truth_about_itself(number: int, seed: int) -> None:
    event = sample.event(number, seed=seed)
    assert event == sample.event(number, seed=seed)
    assert event.event_id.encode() in event.value or event.malformed
    if not event.malformed:
        fields = json.loads(event.value)
        assert (fields["event_id"], fields["user_id"]) == (event.event_id, event.user_id)
        moment = datetime.fromisoformat(fields["event_time"][:26] + "+00:00")
        assert moment.replace(minute=0, second=0, microsecond=0) == event.hour
        assert len(fields["event_time"]) == len("2026-01-01T00:00:00.000000000Z")


def test_some_events_are_malformed_and_some_far_behind() -> None:
    events = [sample.event(number) for number in range(60_000, 62_000)]
    assert 5 <= sum(event.malformed for event in events) <= 60
    newest = 0
    behind = 0
    for event in events:
        newest = max(newest, event.time_ns)
        behind += newest - event.time_ns > 600 * 10**9
    assert 10 <= behind <= 200
    assert all(event.time_ns >= int(sample.FIRST.timestamp()) * 10**9 - 60 * 10**9 for event in [*events, *EVENTS])


def test_a_malformed_event_differs_in_five_ways() -> None:
    values = [sample.event(number).value for number in range(20_000) if sample.event(number).malformed]
    ways = {"not json" if b"no JSON" in v else "month" if b"2026-13-" in v else "number" if b"1767225600000" in v
            else "user" if b"user_id" not in v and v.endswith(b"}") else "torn" for v in values}  # fmt: skip
    assert ways == {"not json", "month", "number", "user", "torn"}


@pytest.mark.parametrize(
    ("time_ns", "text"),
    [(0, "1970-01-01T00:00:00.000000000Z"), (1_767_225_600_000_000_001, "2026-01-01T00:00:00.000000001Z")],
)
def test_times_have_nanoseconds(time_ns: int, text: str) -> None:
    assert sample.iso(time_ns) == text
