"""Attempts are numbered without gaps and one after the other (I7), end as their run did, and every effect of a handler
belongs to one; nothing waits for delivery in the end."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise

from tests.soak.effects import RETRY, Effect
from tests.soak.evidence import Evidence
from tests.soak.stored import StoredAttempt, StoredRun

TRIED_AGAIN = {"failed", "timed_out", "lost", "interrupted"}
ENDED_WITH: dict[str, set[str]] = {
    "succeeded": {"succeeded"},
    "moot": {"moot"},
    "failed": {"failed", "timed_out", "lost"},
    "cancelled": {"cancelled", *TRIED_AGAIN},
}


def check_attempts(evidence: Evidence) -> Iterator[str]:
    stored = evidence.stored
    for intent in stored.intents:
        yield f"attempt {intent.attempt} of {intent.run_id} still waits for delivery"
    for run_id in sorted(stored.attempts_of.keys() - stored.runs.keys()):
        yield f"an attempt is of {run_id}, which is no run"
    for run in stored.runs.values():
        yield from _check_run(run, stored.attempts_of.get(run.run_id, []))
    yield from _check_effects(evidence)


def _check_run(run: StoredRun, attempts: list[StoredAttempt]) -> Iterator[str]:
    numbers = [attempt.number for attempt in attempts]
    if numbers != list(range(1, run.attempt + 1)):
        yield f"{run.run_id} counts {run.attempt} attempts and has {numbers}"
    for attempt in attempts:
        if attempt.finished_at is None or attempt.outcome is None:
            yield f"attempt {attempt.number} of {run.run_id} is open still"
    for before, after in pairwise(attempts):
        if before.finished_at is not None and after.opened_at < before.finished_at:
            yield f"attempt {after.number} of {run.run_id} was opened before the one before had ended"
        if before.outcome not in TRIED_AGAIN:
            yield f"attempt {before.number} of {run.run_id} was {before.outcome}, and another one followed"
    if attempts and attempts[0].opened_at < run.due_at:
        yield f"{run.run_id} was started at {attempts[0].opened_at}, and is due at {run.due_at}"
    last = attempts[-1].outcome if attempts else None
    may_have_none = run.state in ("skipped", "cancelled")
    if (last is None and not may_have_none) or (last and last not in ENDED_WITH.get(run.state, set())):
        yield f"{run.run_id} is {run.state}, and its last attempt was {last}"
    if run.state == "failed" and run.attempt < RETRY.max_attempts:
        yield f"{run.run_id} failed for good after {run.attempt} attempts"


def _check_effects(evidence: Evidence) -> Iterator[str]:
    stored = evidence.stored
    effects: dict[str, list[Effect]] = defaultdict(list)
    for effect in evidence.effects:
        effects[effect.run_id].append(effect)
    for run_id, noted in effects.items():
        run = stored.runs.get(run_id)
        numbers = {attempt.number for attempt in stored.attempts_of.get(run_id, [])}
        for effect in noted:
            if run is None or effect.attempt not in numbers:
                yield f"an effect is of attempt {effect.attempt} of {run_id}, which is not on record"
                continue
            version = stored.versions[run.schedule_id].get(run.version)
            if version is not None and effect.edit != version.edit:
                yield f"{run_id} was given the params of edit {effect.edit}"
        for number, count in Counter(effect.attempt for effect in noted).items():
            if count > 1:
                yield f"attempt {number} of {run_id} has {count} effects"
    for run in stored.runs.values():
        if run.state == "succeeded" and run.attempt not in {item.attempt for item in effects[run.run_id]}:
            yield f"{run.run_id} succeeded without an effect of its last attempt"
