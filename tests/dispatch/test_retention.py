"""What a dispatcher gives up of old history, and when: batch by batch, then a rest."""

from datetime import UTC, datetime, timedelta

import pytest

from rota.dispatch.dispatcher import PRUNE_PAUSE
from rota.dispatch.retention import REST, Retention, prune
from rota.service.context import Context
from rota.service.creation import create_schedule
from rota.store.port import LedgerKey, PruneOutcome
from rota.testing.clock import ManualClock
from tests.contract.builders import DAY, MINUTE, NINE, SECOND
from tests.dispatch.conftest import dispatcher_on, save

PLACE = LedgerKey(instant=NINE, id_="report-7.1")


class Answers:
    """A store that answers as it was told, and notes what it was asked."""

    def __init__(self, *outcomes: PruneOutcome) -> None:
        self.outcomes = list(outcomes)
        self.asked: list[tuple[datetime, LedgerKey | None, int]] = []

    def prune_history(self, *, before: datetime, after: LedgerKey | None, limit: int) -> PruneOutcome:
        self.asked.append((before, after, limit))
        return self.outcomes.pop(0) if self.outcomes else PruneOutcome()


def test_one_batch_of_what_is_older_is_given_up() -> None:
    store = Answers(PruneOutcome(runs=3, reached=PLACE))
    assert prune(store, now=NINE, keep=30 * DAY, limit=7).runs == 3
    assert store.asked == [(NINE - 30 * DAY, None, 7)]


def test_without_a_setting_everything_is_kept() -> None:
    store = Answers()
    assert Retention(store, keep=None, limit=7).step(NINE) is None
    assert store.asked == []


def test_each_step_goes_on_where_the_one_before_ended() -> None:
    store = Answers(PruneOutcome(runs=2, reached=PLACE), PruneOutcome(runs=1))
    retention = Retention(store, keep=DAY, limit=7)
    for seconds in range(3):
        retention.step(NINE + seconds * SECOND)
    assert [after for _, after, _ in store.asked] == [None, PLACE, None]


def test_where_nothing_is_left_it_rests_for_a_while() -> None:
    store = Answers(PruneOutcome(runs=1))
    retention = Retention(store, keep=DAY, limit=7)
    done = [retention.step(NINE + after) for after in (timedelta(0), SECOND, 2 * SECOND, REST, REST + SECOND)]
    assert [outcome is not None for outcome in done] == [True, True, False, False, True]


def test_a_clock_that_goes_back_ends_the_rest() -> None:
    store = Answers()
    retention = Retention(store, keep=DAY, limit=7)
    assert [retention.step(NINE) is None, retention.step(NINE - SECOND) is None] == [False, False]


@pytest.mark.parametrize("context", ["memory"], indirect=True)
def test_a_dispatcher_prunes_while_nothing_falls_due(
    context: Context, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(context, "report", "0 9 * * *")
    answers = Answers(*[PruneOutcome(runs=2, reached=PLACE)] * 3)
    monkeypatch.setattr(context.store, "prune_history", answers.prune_history)
    dispatcher = dispatcher_on(context, poll=MINUTE, keep=DAY)
    clock.set(nine := datetime(2025, 6, 10, 9, tzinfo=UTC))
    assert dispatcher.step(nine - SECOND).wake_at == nine - SECOND + PRUNE_PAUSE
    assert answers.asked == [(nine - SECOND - DAY, None, 100)]
    just_before = nine - timedelta(milliseconds=100)
    assert dispatcher.step(just_before).wake_at == nine
    assert len(answers.asked) == 1, "nine is near"

    assert dispatcher.step(nine).admitted == 1
    assert len(answers.asked) == 1
    assert dispatcher.step(nine).wake_at == nine + PRUNE_PAUSE
    assert answers.asked[1:] == [(nine - DAY, PLACE, 100)]


@pytest.mark.parametrize("context", ["memory"], indirect=True)
def test_what_falls_due_each_second_leaves_time_to_prune(
    context: Context, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_schedule(context, {"job": "sales_report", "timezone": "UTC", "recurrence": {"every": "PT1S"}})
    answers = Answers(*[PruneOutcome(runs=100, reached=PLACE)] * 1_000)
    monkeypatch.setattr(context.store, "prune_history", answers.prune_history)
    dispatcher = dispatcher_on(context, poll=MINUTE, keep=DAY)
    end = clock.now() + 10 * SECOND
    while clock.now() < end:
        clock.set(max(clock.now(), min(end, dispatcher.step(clock.now()).wake_at)))
    assert len(answers.asked) > 50
