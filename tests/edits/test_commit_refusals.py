"""Requests that create many runs, where the store refuses a commit or somebody else changes the schedule meanwhile."""

from collections.abc import Callable, Sequence

import pytest

from rota.domain.errors import Conflict, Stale
from rota.domain.identity import ScheduleId
from rota.domain.key_uses import KeyProbe, KeyUse
from rota.service.applying import apply_document
from rota.service.backfill import backfill
from rota.service.changes import RETRIES_MAX
from rota.service.planning import skip_occurrence
from rota.store.memory import MemoryStore
from rota.store.port import ChangeOutcome, Fence, ScheduleChange
from tests.edits.lives import ID, Life, entries_of, rule

COMMITS_MAX = 200


class Watched(MemoryStore):
    """Counts what is looked up and committed, and lets a test meddle before a commit."""

    def __init__(self) -> None:
        super().__init__()
        self.probed = 0
        self.commits = 0
        self.is_blind = False
        self.before_commit: Callable[[int], None] = lambda number: None
        self.refusal: ChangeOutcome | None = None

    def read_key_uses(self, schedule_id: ScheduleId, probes: Sequence[KeyProbe]) -> list[KeyUse | None]:
        self.probed += len(probes)
        return [None] * len(probes) if self.is_blind else super().read_key_uses(schedule_id, probes)

    def commit_change(self, change: ScheduleChange, *, fence: Fence | None = None) -> ChangeOutcome:
        self.commits += 1
        assert self.commits < COMMITS_MAX, "It goes on for ever."
        self.before_commit(self.commits)
        return self.refusal or super().commit_change(change, fence=fence)


def life_in(store: Watched, cron: str = "0 9 * * *", **fields: object) -> Life:
    life = Life(store, start="2026-01-10T12:00:00Z", **{**rule(cron, "UTC"), **fields})
    store.commits = store.probed = 0
    return life


def plan(life: Life) -> None:
    life.plan("2026-01-12T09:00:00Z")


def backfill_two_days(life: Life) -> None:
    backfill(life.context, ID, from_="2026-01-08T09:00:00Z", until="2026-01-09T09:00:00Z")


def skip(life: Life) -> None:
    skip_occurrence(life.context, ID, scheduled_at="2026-01-11T09:00:00Z")


@pytest.mark.parametrize(
    ("ask", "run_id"),
    [
        (plan, "report-7.1.20260111T090000Z"),
        (backfill_two_days, "report-7.1.20260108T090000Z"),
        (skip, "report-7.1.20260111T090000Z"),
    ],
)
def test_a_run_that_is_there_though_nobody_found_it_is_named(
    ask: Callable[[Life], None], run_id: str
) -> None:
    store = Watched()
    life = life_in(store)
    ask(life)
    store.is_blind = True
    with pytest.raises(Conflict, match=f"{run_id} or its period key exists already"):
        (plan if ask is skip else ask)(life)


@pytest.mark.parametrize("ask", [plan, backfill_two_days, skip])
def test_who_is_overtaken_again_and_again_gives_up(ask: Callable[[Life], None]) -> None:
    store = Watched()
    life = life_in(store)
    store.refusal = ChangeOutcome.STALE
    with pytest.raises(Conflict, match="kept changing"):
        ask(life)
    assert store.commits == RETRIES_MAX


def test_retries_are_counted_in_a_row() -> None:
    store = Watched()
    life = life_in(store, "*/10 * * * *")

    def refuse_two_of_three(number: int) -> None:
        store.refusal = ChangeOutcome.STALE if number % 3 else None

    store.before_commit = refuse_two_of_three
    assert life.plan("2026-01-12T12:00:00Z")["created"] == 288
    assert store.commits > RETRIES_MAX


def test_a_long_plan_looks_each_period_up_once() -> None:
    store = Watched()
    life = life_in(store, "*/10 * * * *")
    told = life.plan("2026-01-12T12:00:00Z")
    assert (told["created"], told["existing"], store.probed) == (288, 0, 288)


def test_a_plan_that_somebody_meddles_with_goes_on_from_what_is_there_then() -> None:
    store = Watched()
    life = life_in(store, "*/10 * * * *")

    def skip_one(number: int) -> None:
        if number == 3:
            skip_occurrence(life.context, ID, scheduled_at="2026-01-12T10:00:00Z")

    store.before_commit = skip_one
    told = life.plan("2026-01-12T12:00:00Z")
    assert (told["created"], told["existing"]) == (287, 1)
    assert len({run["run_id"] for run in life.runs()}) == 288


def test_a_plan_goes_on_behind_what_was_admitted_meanwhile() -> None:
    store = Watched()
    life = life_in(store, "* * * * *")

    def let_a_minute_pass(number: int) -> None:
        store.before_commit = lambda _: None
        life.until(life.world.now.replace(minute=number))

    store.before_commit = let_a_minute_pass
    life.plan("2026-01-10T13:00:00Z")
    life.until("2026-01-10T13:00:00Z")
    assert [run["state"] for run in life.runs()] == ["succeeded"] * 60


def test_a_backfill_that_somebody_meddles_with_goes_on_from_what_is_there_then() -> None:
    store = Watched()
    life = life_in(store, "*/10 * * * *")

    def ask_for_the_last_hour(number: int) -> None:
        store.before_commit = lambda _: None
        assert number == 1
        backfill(life.context, ID, from_="2026-01-10T11:00:00Z", until="2026-01-10T11:50:00Z")

    store.before_commit = ask_for_the_last_hour
    told = backfill(life.context, ID, from_="2026-01-10T00:00:00Z", until="2026-01-10T11:50:00Z")
    assert (told["created"], told["left_out"]) == (66, {"period_used": 6, "owed": 0})
    assert len(life.runs()) == 72


def test_a_backfill_counts_what_is_owed_only_as_far_as_it_would_create() -> None:
    life = Life(MemoryStore(), start="2026-01-05T00:00:30Z", timezone="UTC", recurrence={"every": "PT1S"})
    life.world.app.pause(ID)
    life.world.clock.set(life.world.now.replace(day=7))
    told = backfill(
        life.context, ID, from_="2026-01-05T00:00:00Z", until="2026-01-07T00:00:00Z", dry_run=True
    )
    assert told["left_out"] == {"period_used": 0, "owed": 10_000}


def test_an_applied_edit_is_of_the_version_that_was_planned_and_tells_what_was_done_before() -> None:
    store = Watched()
    life = life_in(store)
    other = {"job": "sales_report", "timezone": "UTC", "recurrence": {"cron": "0 7 * * *"}}
    life.world.app.create_schedule(id="other", **other)  # type: ignore[arg-type]

    def edit_the_second(number: int) -> None:
        if number == 1:
            life.edit(params={"by": "somebody else"})

    store.commits, store.before_commit = 0, edit_the_second
    document = {
        "schedules": {
            "other": {**other, "timezone": "Asia/Tokyo"},
            ID: {**other, "gap": "skip", "fold": "first", "params": {"by": "the document"}},
        }
    }
    with pytest.raises(Stale, match=r"report-7: The latest version .* is 2, not 1.*: other \(edited\)\."):
        apply_document(life.context, document)
    assert life.versions()[0]["params"] == {"by": "somebody else"}
    store.before_commit = lambda _: None
    again = apply_document(life.context, document)
    assert [entry["outcome"] for entry in entries_of(again, "schedules")] == ["unchanged", "edited"]
