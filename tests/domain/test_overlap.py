"""Who has a place beside an open run: never two are open, at most one waits, and nobody is passed over."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.domain.identity import RunId
from rota.domain.overlap import Places, free_place, take_place, turn_came
from rota.domain.run import Run, RunState
from rota.domain.schedule import Overlap
from tests.contract.builders import new_schedule, run_at

NINE = datetime(2026, 1, 10, 9, tzinfo=UTC)
OVERLAPS: dict[str, Overlap] = {"allow": "allow", "skip": "skip", "queue": "queue"}
A, B, C = RunId("report-7.1.a"), RunId("report-7.1.b"), RunId("report-7.1.c")


@pytest.mark.parametrize(
    ("overlap", "places", "state", "after"),
    [
        ("allow", (), RunState.QUEUED, ()),
        ("allow", (A,), RunState.QUEUED, (A,)),
        ("skip", (), RunState.QUEUED, (C,)),
        ("skip", (A,), None, (A,)),
        ("skip", (A, B), None, (A, B)),
        ("queue", (), RunState.QUEUED, (C,)),
        ("queue", (A,), RunState.WAITING, (A, C)),
        ("queue", (A, B), None, (A, B)),
    ],
)
def test_a_run_that_falls_due_is_queued_waits_or_is_skipped(
    overlap: Overlap, places: Places, state: RunState | None, after: Places
) -> None:
    place = take_place(overlap, places, C)
    assert (place.state, place.places) == (state, after)


@pytest.mark.parametrize(
    ("overlap", "places", "note"),
    [
        ("allow", (A,), None),
        ("skip", (), None),
        ("skip", (A,), "run report-7.1.a is open"),
        ("queue", (A,), None),
        ("queue", (A, B), "run report-7.1.a is open, and run report-7.1.b waits for it"),
    ],
)
def test_a_skip_names_the_runs_that_are_in_the_way(
    overlap: Overlap, places: Places, note: str | None
) -> None:
    assert take_place(overlap, places, C).note == note


@pytest.mark.parametrize(
    ("places", "ended", "after", "next_id"),
    [
        ((A,), A, (), None),
        ((A, B), A, (B,), B),
        ((A, B), B, (A,), None),
        ((A, B), C, (A, B), None),
        ((), C, (), None),
    ],
)
def test_the_end_of_the_open_run_is_the_turn_of_the_one_that_waits(
    places: Places, ended: RunId, after: Places, next_id: RunId | None
) -> None:
    assert free_place(places, ended) == (after, next_id)


def test_the_run_whose_turn_came_is_available_from_then_on() -> None:
    waiting = waiting_run()
    assert (waiting.state, waiting.available_at) == (RunState.WAITING, None)
    queued = turn_came(waiting, now=NINE)
    assert (queued.state, queued.available_at) == (RunState.QUEUED, NINE)


def waiting_run() -> Run:
    run = run_at(new_schedule(due=NINE).schedule, NINE)
    return replace(run, state=RunState.WAITING, available_at=None)


@given(
    st.lists(
        st.sampled_from(["due under skip", "due under queue", "due under allow", "first ends", "last ends"]),
        max_size=40,
    )
)
def test_never_are_two_open_and_at_most_one_waits_and_turns_keep_their_order(events: list[str]) -> None:
    """Whatever falls due under whichever version's rule, and whichever run ends or is cancelled."""
    places: Places = ()
    queued: set[RunId] = set()
    waiting: list[RunId] = []
    for number, event in enumerate(events):
        if event.startswith("due"):
            overlap = OVERLAPS[event.rpartition(" ")[2]]
            run_id = RunId(f"report-7.1.{number}")
            place = take_place(overlap, places, run_id)
            places = place.places
            if place.state is RunState.QUEUED and overlap != "allow":
                queued.add(run_id)
            if place.state is RunState.WAITING:
                waiting.append(run_id)
        elif places:
            ended = places[0] if event == "first ends" else places[-1]
            places, next_id = free_place(places, ended)
            queued.discard(ended)
            if next_id is not None:
                assert next_id == waiting.pop(0)
                queued.add(next_id)
            elif ended in waiting:
                waiting.remove(ended)
        assert len(queued) <= 1
        assert len(waiting) <= 1
        assert places == (*queued, *waiting)
        assert not waiting or queued, "one waits for nobody"
