"""A life of schedules that people work on: edits of every boundary, plans, skips, moves, runs on request, rule changes.

Beside the dispatchers of every life there is one that decides by what it reads, and commits that much later; and a
person whose edit was drafted before others changed the schedule.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice

from rota.dispatch.planning import Plans, judge
from rota.domain.admission import Admission, unchanged
from rota.domain.edit_form import parse_edit
from rota.domain.errors import Conflict, InvalidRequest, NotFound
from rota.domain.instants import format_instant
from rota.domain.run import SETTLED, RunState
from rota.service.backfill import backfill
from rota.service.changes import get_schedule
from rota.service.context import NOBODY, Actor, Context
from rota.service.editing import edit_schedule, plan_edit
from rota.service.idempotency import KeyReused
from rota.service.planning import move_occurrence, plan_occurrences, skip_occurrence
from rota.service.requested import replay_run, request_run
from rota.service.runs import cancel_run
from rota.service.schedules import resume_schedule
from rota.store.port import AdmissionOutcome, ChangeOutcome, Fence, PlannedDue, RunFilter, ScheduleChange
from rota.testing.clock import ManualClock
from tests.simulation.ledger import read_ledger
from tests.simulation.life import HOUR, SECOND, Action, Life, name_of
from tests.simulation.witness import Witness

STEADY = "steady"
"""Its rule only moves between zones, its policy loses nothing, and nobody ends it: it has a run each day."""

PLANNED_ONLY = "other-1"
"""Nobody skips or moves anything of it: both would make admission careful for a month."""

ZONES = (
    "America/New_York",
    "Europe/London",
    "Asia/Tokyo",
    "Pacific/Auckland",
    "America/Los_Angeles",
    "Etc/GMT+12",
    "Pacific/Kiritimati",
    "Australia/Lord_Howe",
)
RULES = {
    "0 9 * * *": "day",
    "30 17 * * *": "day",
    "30 * * * *": "instant",
    "0 9 * * 1,4": "day",
    "15 22 * * 3": "week",
    "45 1 * * *": "day",
    "0 9 12 * *": "month",
    "*/20 8-10 * * *": "instant",
}
"""The rules of the lives, and the coarsest period in which each names one instant."""

POLICIES: tuple[dict[str, object], ...] = (
    {"policy": "catch_up_all"},
    {"policy": "latest_only"},
    {"policy": "expire", "deadline": "PT3H"},
    {"policy": "catch_up_all", "max_age": "PT30H"},
)
WHY = Actor(name="ops", reason="the printer was empty")


class EditedLife(Life):
    """Five schedules, one of them steady."""

    events = 180
    passes = (5 * SECOND, 90 * SECOND, HOUR / 3, HOUR, 3 * HOUR, 7 * HOUR, 13 * HOUR, 30 * HOUR)
    leaps = (-5 * HOUR, -HOUR / 3, 20 * SECOND, 50 * SECOND, 2 * HOUR, 30 * HOUR)
    healing = (3 * HOUR,) * 80

    def __init__(self, context: Context, clock: ManualClock, seed: int) -> None:
        super().__init__(context, clock, seed)
        self.params: dict[tuple[str, int], dict[str, object]] = {
            (id_, 1): {"edit": 0} for id_ in self.schedules
        }
        self.edits = 0
        self.crowded: str | None = None
        self.decisions: list[tuple[Fence, Admission]] = []
        self.drafts: list[tuple[ScheduleChange, dict[str, object]]] = []
        self.witness = Witness(context.store, self.schedules)

    def schedules_to_be(self) -> list[dict[str, object]]:
        rules = ["0 9 * * *", "30 * * * *", "*/20 8-10 * * *", "15 22 * * 3"]
        # Of the four, the second is `PLANNED_ONLY`.
        others = {f"other-{number}": (cron, POLICIES[number]) for number, cron in enumerate(rules)}
        return [
            {
                "id": id_,
                "timezone": ZONES[0],
                "recurrence": {"cron": cron},
                "overdue": policy,
                "params": {"edit": 0},
            }
            for id_, (cron, policy) in {STEADY: ("0 9 * * *", POLICIES[0]), **others}.items()
        ]

    def actions(self) -> dict[Action, float]:
        return {
            **super().actions(),
            self.pass_time_to_due: 2,
            self.fall_due: 5,
            self.edit: 6,
            self.edit_labels: 0.5,
            self.plan: 3,
            self.skip: 2,
            self.move: 2,
            self.fill_back: 2,
            self.run_now: 1,
            self.replay: 1,
            self.decide: 1,
            self.commit: 1,
            self.race: 3,
            self.draft: 1,
            self.post: 1,
            self.overtake: 2,
            self.crowd: 3,
        }

    def look(self, event: str) -> None:
        self.witness.look(event)

    def some_schedule(self) -> str:
        """Often the steady one: it is the one that tells what is lost."""
        if self.crowded is not None:
            return self.crowded
        return STEADY if self.random.random() < 0.4 else self.random.choice(self.schedules)

    @property
    def mortals(self) -> list[str]:
        return [id_ for id_ in self.schedules if id_ != STEADY]

    def resume(self) -> bool:
        id_ = self.some_schedule()
        return self.try_to(
            lambda context, id_: resume_schedule(context, id_, apply_overdue=self.applies_overdue(id_)), id_
        )

    def resume_one(self, id_: str) -> None:
        resume_schedule(self.context, id_, apply_overdue=self.applies_overdue(id_))

    def applies_overdue(self, id_: str) -> bool:
        return id_ == STEADY or self.random.random() < 0.4

    def edit(self) -> bool:
        id_ = self.some_schedule()
        patch, params = self._patch(id_)

        def change() -> None:
            self._note(id_, edit_schedule(self.context, id_, parse_edit(patch))["latest_version"], params)

        return self.asks(change)

    def edit_labels(self) -> bool:
        id_ = self.some_schedule()
        patch = {"labels": {"colour": self.random.choice(["red", "blue", None])}}
        return self.asks(lambda: edit_schedule(self.context, id_, parse_edit(patch)))

    def plan(self) -> bool:
        id_ = self.some_schedule()
        until = self._in_hours(1, self.random.choice([20, 70, 240]))
        return self.asks(lambda: plan_occurrences(self.context, id_, until=format_instant(until)))

    def skip(self) -> bool:
        return self._with_occurrence(lambda id_, at: skip_occurrence(self.context, id_, scheduled_at=at))

    def move(self) -> bool:
        to = format_instant(self._in_hours(1, 40))
        return self._with_occurrence(
            lambda id_, at: move_occurrence(self.context, id_, scheduled_at=at, to=to)
        )

    def fill_back(self) -> bool:
        id_ = self.some_schedule()
        hours = sorted(self.random.sample(range(70), 2))
        until, from_ = (format_instant(self._in_hours(-number, -number)) for number in hours)
        return self.asks(lambda: backfill(self.context, id_, from_=from_, until=until))

    def run_now(self) -> bool:
        id_, key = self.some_schedule(), f"order-{self.random.randrange(30)}"
        return self.asks(lambda: request_run(self.context, id_, idempotency_key=key))

    def replay(self) -> bool:
        runs = self.context.store.list_runs(RunFilter(), before=None, limit=50)
        settled = [run.run_id for run in runs if run.state in SETTLED]
        if not settled:
            return False
        run_id = self.random.choice(settled)
        return self.asks(lambda: replay_run(self.context, run_id, actor=WHY))

    def decide(self) -> None:
        """Another process decides by what it reads now, perhaps with a clock that is ahead, and falls asleep."""
        store, cadences = self.context.store, self.context.cadences
        later = self.clock.now() + self.random.choice([0, 1, 30]) * HOUR
        plans = Plans(store, cadences, now=later)
        for state in store.list_partitions():
            fence = Fence(partition=state.partition, epoch=state.epoch)
            for row in store.read_due(state.partition, now=later, limit=10):
                plan = plans.plan(row)
                assert isinstance(plan, Admission)
                self.decisions.append((fence, plan))
            for planned in store.read_planned(state.partition, now=later, limit=50):
                assert isinstance(planned, PlannedDue)
                change = judge(store, cadences, planned.due, planned.run, now=later).change
                admission = replace(unchanged(planned.due.schedule), run_changes=(change,))
                self.decisions.append((fence, admission))

    def commit(self) -> bool:
        """It wakes up and commits what it decided; where anything moved meanwhile, that changes nothing."""
        decisions, self.decisions = self.decisions, []
        for fence, admission in decisions:
            [outcome] = self.context.store.commit_admissions(fence, [admission], now=self.clock.now())
            refused = (AdmissionOutcome.STALE, AdmissionOutcome.FENCED)
            assert outcome in (AdmissionOutcome.ADMITTED, *refused), admission
        return bool(decisions)

    def race(self) -> None:
        """A decision, something that is done to the schedules, and the commit of that decision."""
        self.decide()
        changes = [
            *(self.edit, self.pause, self.resume, self.plan, self.skip, self.move),
            *(self.cancel_decided, self.cancel_decided, self.dispatch),  # none of them raises the revision
        ]
        change: Callable[[], object] = self.random.choice(changes)
        change()
        self.look(name_of(change))
        self.commit()

    def cancel_decided(self) -> None:
        """A planned run about which somebody else has just decided."""
        decided = [change.run for _, admission in self.decisions for change in admission.run_changes]
        if decided:
            with suppress(Conflict):  # it has been settled meanwhile
                cancel_run(self.context, self.random.choice(decided).run_id)

    def draft(self) -> bool:
        """Somebody decides about an edit by what is stored now, and posts it later."""
        id_ = self.some_schedule()
        patch, params = self._patch(id_)

        def keep() -> None:
            record = get_schedule(self.context, id_)
            planned = plan_edit(self.context, record, parse_edit(patch), actor=NOBODY, now=self.clock.now())
            assert planned is not None
            self.drafts.append((planned.change, params))

        return self.asks(keep)

    def post(self) -> bool:
        if not self.drafts:
            return False
        change, params = self.drafts.pop()
        if self.context.store.commit_change(change) is ChangeOutcome.CHANGED:
            self._note(change.schedule_id, change.versions[0].version.number, params)
        return True

    def overtake(self) -> bool:
        """A dispatcher moves the schedule between somebody's decision and its commit."""
        if not self.draft():
            return False
        self.pass_time_to_due()
        self.dispatch()
        self.look("dispatch")
        return self.post()

    def crowd(self) -> None:
        """Several people are at one schedule."""
        self.crowded = self.some_schedule()
        doings: list[Action] = [
            *(self.plan, self.pause, self.resume, self.edit, self.fill_back),
            *(self.skip, self.move, self.cancel, self.fall_due, self.fall_due),
        ]
        for doing in self.random.choices(doings, k=8):
            doing()
            self.look(name_of(doing))
        self.crowded = None

    def asks(self, request: Callable[[], object]) -> bool:
        """Whether it was done: what cannot be done as things stand is refused by name."""
        try:
            request()
        except (Conflict, InvalidRequest, NotFound, KeyReused):
            return False
        return True

    def _patch(self, id_: str) -> tuple[dict[str, object], dict[str, object]]:
        """An edit in wire form, always with params of its own, and these."""
        self.edits += 1
        params: dict[str, object] = {"edit": self.edits}
        patch: dict[str, object] = {"params": params, "replaces_pending": self.random.random() < 0.6}
        if self.random.random() < 0.7:
            patch["timezone"] = self.random.choice(ZONES)
        if self.random.random() < 0.4:
            patch["effective_from"] = format_instant(self._in_hours(1, 50))
        else:
            patch["at_once"] = self.random.random() < 0.7
        if id_ != STEADY:
            if self.random.random() < 0.5:
                patch["recurrence"] = {"cron": self.random.choice(list(RULES))}
            if self.random.random() < 0.2:
                patch["overdue"] = self.random.choice(POLICIES)
            if "effective_from" not in patch and self.random.random() < 0.3:
                patch["boundary"] = "now"
        return patch, params

    def _note(self, id_: str, number: object, params: dict[str, object]) -> None:
        assert isinstance(number, int)
        assert (id_, number) not in self.params
        self.params[id_, number] = params

    def _in_hours(self, least: int, most: int) -> datetime:
        return self.clock.now().replace(microsecond=0) + self.random.randint(least, most) * HOUR

    def _with_occurrence(self, request: Callable[[str, str], object]) -> bool:
        """One that is planned, or one of the next that the version in force, or the one that waits, names."""
        id_, now = self.some_schedule(), self.clock.now()
        if id_ == PLANNED_ONLY:
            return False
        ledger = read_ledger(self.context.store, id_)
        number = self.random.choice([ledger.record.version.number, ledger.latest])
        named = ledger.rule(number).between(now, now + timedelta(days=8))
        instants = [occurrence.instant for occurrence in islice(named, 4)]
        instants += [
            run.scheduled_at
            for run in ledger.runs.values()
            if run.state is RunState.PLANNED or run.reason == "on_request"
        ]
        if not instants:
            return False
        at = format_instant(self.random.choice(instants))
        return self.asks(lambda: request(id_, at))
