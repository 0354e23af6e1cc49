"""Runs are who they say (I1), of a period that no other run uses (I2), of a version that owns them or was asked for
(I8), neither early nor out of a pause (I10), and settled in the end."""

import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta

from tests.soak.evidence import NEVER, Evidence
from tests.soak.rules import key_of
from tests.soak.stored import StoredRun, StoredVersion

SETTLED = {"succeeded", "failed", "cancelled", "moot", "skipped"}
CLOCKS_DIFFER = timedelta(milliseconds=50)
"""At most, between the clock of the database and what a process on the same machine measures of it."""


def check_runs(evidence: Evidence) -> Iterator[str]:
    stored = evidence.stored
    keys = Counter((run.schedule_id, run.period_key) for run in stored.runs.values() if run.holds_its_key)
    for (id_, key), count in keys.items():
        if count > 1:
            yield f"{id_}: the period {key} has {count} runs"
    for run in stored.runs.values():
        version = stored.versions[run.schedule_id].get(run.version)
        if run.state not in SETTLED:
            yield f"{run.run_id} is {run.state} still"
        if run.schedule_id not in stored.schedules or version is None:
            yield f"{run.run_id} is of no version"
            continue
        if run.origin in ("schedule", "backfill"):
            yield from _check_named(run, version)
            yield from _check_asked_for(evidence, run, version)
        else:
            yield from _check_requested(evidence, run)
        yield from _check_times(evidence, run)


def _check_named(run: StoredRun, version: StoredVersion) -> Iterator[str]:
    if run.run_id != f"{run.schedule_id}.{run.version}.{_stamp(run.scheduled_at)}":
        yield f"{run.run_id} is not {run.schedule_id}, version {run.version}, {run.scheduled_at}"
    named = version.naming.at(run.scheduled_at)
    if named is None:
        yield f"{run.run_id} is not named by its version's rule"
        return
    key = key_of(version.period, named, series=version.series)
    if (run.named_local, run.period_key) != (named.local, key):
        yield f"{run.run_id} has {run.named_local} and {run.period_key}, not {named.local} and {key}"


def _check_asked_for(evidence: Evidence, run: StoredRun, version: StoredVersion) -> Iterator[str]:
    is_owned = version.effective_from <= run.scheduled_at < (version.effective_until or NEVER)
    if run.origin == "schedule" and not is_owned and run.planned_at is None:
        yield f"{run.run_id} is outside of its version's window"
    if run.planned_at is not None and run.carried_by is None and not _is_requested(evidence, run):
        yield f"{run.run_id} is planned, and nobody asked for it"
    if run.origin == "backfill" and run.planned_at is None:
        yield f"{run.run_id} is a backfill that was not planned"
    if run.due_at != run.scheduled_at and run.origin == "schedule" and not _moves(evidence, run):
        yield f"{run.run_id} is due at {run.due_at}, and nobody moved it"


def _is_requested(evidence: Evidence, run: StoredRun) -> bool:
    at = run.scheduled_at
    if run.origin == "backfill":
        return any(
            datetime.fromisoformat(entry.text("from")) <= at <= datetime.fromisoformat(entry.text("until"))
            for entry in evidence.asked(run.schedule_id, "backfill")
        )
    return any(
        at <= datetime.fromisoformat(entry.text("until"))
        if entry.operation == "plan"
        else at == datetime.fromisoformat(entry.text("scheduled_at"))
        for entry in evidence.asked(run.schedule_id, "plan", "skip", "move")
    )


def _moves(evidence: Evidence, run: StoredRun) -> bool:
    return any(
        datetime.fromisoformat(entry.text("scheduled_at")) == run.scheduled_at
        and datetime.fromisoformat(entry.text("to")) == run.due_at
        for entry in evidence.asked(run.schedule_id, "move")
    )


def _check_requested(evidence: Evidence, run: StoredRun) -> Iterator[str]:
    """A run on request or a replay: of its own name, and asked for."""
    if run.origin == "manual":
        name = rf"{run.schedule_id}\.{run.version}\.{_stamp(run.scheduled_at)}\.m-[0-9a-f]{{12}}"
        asked = [f"manual:{entry.text('key')}" for entry in evidence.asked(run.schedule_id, "run_now")]
        is_right = re.fullmatch(name, run.run_id) is not None and run.period_key in asked
    else:
        # A replay of a replay is one more of the same original.
        original, _, number = run.run_id.rpartition(".r")
        keys = {
            entry.text("key")
            for entry in evidence.asked(run.schedule_id, "replay")
            if re.sub(r"\.r\d+$", "", entry.text("run_id")) == original
        }
        is_right = original in evidence.stored.runs and number.isdigit() and 1 <= int(number) <= len(keys)
    if not is_right:
        yield f"{run.run_id} ({run.origin}, {run.period_key}) was not asked for"


def _check_times(evidence: Evidence, run: StoredRun) -> Iterator[str]:
    if run.admitted_at is None:
        return
    if run.admitted_at < run.due_at - CLOCKS_DIFFER:
        yield f"{run.run_id} was admitted at {run.admitted_at}, and is due at {run.due_at}"
    if run.origin != "schedule":
        return
    for pause in evidence.surely_paused(run.schedule_id):
        inside = pause.from_ + CLOCKS_DIFFER < run.admitted_at < pause.until - CLOCKS_DIFFER
        if inside:
            yield f"{run.run_id} was admitted at {run.admitted_at}, in the pause from {pause.from_}"
        is_of_it = pause.from_ + CLOCKS_DIFFER < run.due_at < pause.until - CLOCKS_DIFFER
        if is_of_it and run.planned_at is None and not pause.apply_overdue:
            yield f"{run.run_id} is of the pause from {pause.from_}"


def _stamp(instant: datetime) -> str:
    return f"{instant:%Y%m%dT%H%M%SZ}"
