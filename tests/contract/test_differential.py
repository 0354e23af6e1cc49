"""Every protocol: a SQL store answers a random life as the memory store does, operation by operation (the oracle)."""

from collections import Counter
from itertools import product
from random import Random

import pytest

from rota.domain.delivery import DeliveryState
from rota.domain.identity import RunId, ScheduleId
from rota.domain.job import Job, RetryPolicy
from rota.domain.key_uses import KeyProbe
from rota.domain.overdue import CatchUpAll, Expire, LatestOnly, OverduePolicy
from rota.domain.run import RunState
from rota.domain.schedule import ScheduleStatus
from rota.store.memory import MemoryStore
from rota.store.port import (
    AttemptKey,
    ClockReading,
    DeliveryFilter,
    LedgerKey,
    RunFilter,
    ScheduleFilter,
    Store,
)
from tests.conftest import OpenStore
from tests.contract.builders import HOUR, MINUTE, SECOND, idempotency_record
from tests.contract.life import Life
from tests.contract.life_known import IDS, JOBS, KEYS, NEWER_RULES, PARTITIONS, ROME_RULES, UTC_RULES
from tests.contract.life_sending import LifeOfMessages
from tests.contract.twins import Twins, methods_that_succeeded

SEEDS = range(3)
STEPS = 400
POLICIES: list[OverduePolicy] = [LatestOnly(), Expire(deadline=MINUTE), CatchUpAll(max_age=HOUR)]
WITHOUT_EFFECT = {"ping", "close", "read_time", "subscribe"}
EVERY_OUTCOME = {
    "commit_creation": {"created", "id_taken", "key_taken"},
    "commit_change": {"changed", "stale", "key_used", "pruned", "key_taken"},
    "commit_idempotency": {"True", "False"},
    "commit_admissions": {"admitted", "stale", "fenced", "pruned", "not_owned", "key_used"},
    "commit_beats": {"admitted", "fenced", "key_used", "0"},
    "commit_planned": {"queued", "held", "dropped", "0"},
    "commit_openings": {"OpenedAttempt", "None"},
    "commit_answers": {"True", "False"},
    "commit_heartbeats": {"current", "cancel_requested", "stale"},
    "commit_settlements": {"True", "False"},
    "commit_cancel": {"Run", "None"},
    "commit_takes": {"TakenDelivery"},
    "commit_delivery_ends": {"True", "False"},
    "commit_redrive": {"Delivery", "None"},
    "commit_effect_begin": {"new", "in_doubt", "recorded", "stale"},
    "commit_effect": {"True", "False"},
}


def port_methods() -> set[str]:
    return {name for name in dir(Store) if not name.startswith("_") and callable(getattr(Store, name))}


def write_settings(life: Life) -> None:
    """A job, and what is kept about the clock."""
    both, random, now = life.both, life.random, life.now
    job = Job(
        name=random.choice(JOBS[:2]),
        overdue=random.choice(POLICIES),
        retry=RetryPolicy(max_attempts=random.randrange(1, 5)),
        lease=random.choice([20, 90]) * SECOND,
    )
    reading = ClockReading(wall=now, boot_seconds=random.random(), boot_id="boot-1")
    both.commit_job(job, now=now)
    both.commit_clock_reading(reading)
    if random.random() < 0.2:
        both.commit_clock_confirmation(reading)
    record = idempotency_record(
        f"kept-{random.randrange(2)}", expires_at=now + random.choice([1, 10_000]) * SECOND
    )
    both.commit_idempotency(record, now=now)


def read_schedules(life: Life) -> None:
    both, label = life.both, ("customer", "acme")
    after = ScheduleId(life.random.choice(IDS))
    for filter_ in (
        ScheduleFilter(),
        ScheduleFilter(label=label),
        ScheduleFilter(status=ScheduleStatus.ACTIVE),
    ):
        both.list_schedules(filter_, after=None, limit=100)
        both.list_schedules(filter_, after=after, limit=2)
    for id_ in map(ScheduleId, IDS):
        versions = both.list_versions(id_, before=None, limit=100)
        both.list_versions(id_, before=life.random.randrange(5), limit=2)
        for version in versions[:3]:
            both.get_version(id_, version.number)
            both.read_cadences([version.cadence_id, "unknown"])
        both.list_audit(id_, limit=100)
    for key in KEYS:
        both.get_idempotency(key, now=life.now)


def read_zone_rules(life: Life) -> None:
    both = life.both
    after = ScheduleId(life.random.choice(IDS))
    both.list_zone_rules()
    for rules in (UTC_RULES, ROME_RULES, NEWER_RULES):
        both.get_zone_rules(rules.timezone, rules.fingerprint)
        both.list_computed_with(rules, after=None, limit=100)
        both.list_computed_with(rules, after=after, limit=2)


def read_outcomes(life: Life) -> None:
    """What is decided ahead of each schedule, and which runs use which periods."""
    both, random = life.both, life.random
    for id_ in map(ScheduleId, IDS):
        both.list_ahead(id_, from_=life.soon(), limit=100)
        both.list_ahead(id_, from_=life.soon(), limit=2)
        both.get_last_run_time(id_)
        both.read_places(id_)
        ids = [run.run_id for run in both.list_runs(RunFilter(schedule_id=id_), before=None, limit=100)]
        probes = []
        for _ in range(10):
            scheduled_from, named_from = life.soon(), life.soon().replace(tzinfo=None)
            probe = KeyProbe(
                run_id=random.choice([RunId("unknown"), RunId("unknown"), *ids[:1]]),
                scheduled_from=scheduled_from,
                scheduled_until=scheduled_from + random.choice([MINUTE, HOUR, 9 * HOUR]),
                named_from=named_from,
                named_until=named_from + random.choice([MINUTE, HOUR, 9 * HOUR]),
                second_pass=random.choice([None, False, True]),
            )
            probes.append(probe)
        both.read_key_uses(id_, probes)


def read_runs(life: Life) -> None:
    both = life.both
    filters = [
        RunFilter(job="mail"),
        RunFilter(label=("customer", "zeta"), state=RunState.QUEUED),
        RunFilter(from_=life.soon(), until=life.soon() + HOUR),
        RunFilter(state=RunState.WAITING),
    ]
    runs = both.list_runs(RunFilter(), before=None, limit=1000)
    before = None
    if runs:
        start = life.random.choice(runs)
        before = LedgerKey(instant=start.scheduled_at, id_=start.run_id)
    for filter_ in filters:
        both.list_runs(filter_, before=before, limit=5)
    for run in runs:
        both.get_run(run.run_id)
    for id_ in map(ScheduleId, IDS):
        both.list_ledger(id_, before=None, limit=1000)
        both.list_ledger(id_, before=before, limit=3)


def read_work(life: Life) -> None:
    both, partitions, now = life.both, range(PARTITIONS), life.now
    both.list_partitions()
    both.list_present(now=now)
    both.count_due(partitions, now=now, limit=2)
    both.read_due_times(partitions)
    both.read_due_times(partitions, after=now)
    both.read_lost(partitions, now=now + HOUR, limit=3)
    for jobs in (JOBS, JOBS[:1], []):
        both.read_intents(jobs, now=now + HOUR, limit=100)
        both.read_next_intent_time(jobs)
        both.read_next_delivery_time(jobs)
    keys = [AttemptKey(run_id=run_id, attempt=attempt) for run_id, attempt in life.attempts]
    both.read_open_attempts(keys)
    for state in (None, *DeliveryState):
        both.list_deliveries(DeliveryFilter(state=state), after=None, limit=100)
    for delivery in both.list_deliveries(DeliveryFilter(), after=None, limit=2):
        both.list_deliveries(
            DeliveryFilter(job=delivery.job, schedule_id=delivery.schedule_id), after=None, limit=2
        )
        both.list_deliveries(DeliveryFilter(), after=delivery.run_id, limit=2)


def read_settings(life: Life) -> None:
    both = life.both
    both.list_jobs(after=None, limit=10)
    for name in JOBS:
        both.get_job(name)
    both.get_clock_reading("boot-1")


@pytest.mark.parametrize("kind", ["sqlite"])
def test_random_lives_are_answered_as_the_oracle_answers_them(open_store: OpenStore, kind: str) -> None:
    answers: Counter[tuple[str, str]] = Counter()
    for seed, lived in product(SEEDS, (Life, LifeOfMessages)):
        twins = Twins(f"{lived.__name__} {seed}", MemoryStore(), open_store(kind))
        life = lived(twins, Random(seed))
        for number in range(1, STEPS + 1):
            life.step()
            if number % 50 == 0:
                write_settings(life)
                read_schedules(life)
                read_zone_rules(life)
                read_outcomes(life)
                read_runs(life)
                read_work(life)
                read_settings(life)
        answers += twins.answers
    # Stores agree on lives in which nothing applies, too: every operation has to have succeeded, and refused.
    assert port_methods() - methods_that_succeeded(answers) == WITHOUT_EFFECT
    for method, kinds in EVERY_OUTCOME.items():
        assert {kind for asked, kind in answers if asked == method} == kinds
