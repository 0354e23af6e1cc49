"""Where a version took over, a period that nobody would run else was carried, and nothing more was (I9)."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise

from tests.simulation.rules import Named, period_of
from tests.soak.evidence import Evidence
from tests.soak.stored import StoredRun, StoredVersion

REACH = {"day": timedelta(days=4)}
"""Occurrences further apart are of different days, whatever their zones. Of other periods that the driver draws none
is ever at stake."""


def check_take_overs(evidence: Evidence) -> Iterator[str]:
    for id_, versions in evidence.stored.versions.items():
        governing = [version for _, version in sorted(versions.items()) if version.has_governed]
        runs = evidence.stored.runs_of[id_]
        for before, after in pairwise(governing):
            yield from (f"{id_}: {fault}" for fault in _check(before, after, versions, runs))
        numbers = {version.number for version in governing}
        for run in runs:
            if run.carried_by is not None and run.carried_by not in numbers:
                yield f"{run.run_id} was carried by version {run.carried_by}, which never governed"


def _check(
    before: StoredVersion,
    after: StoredVersion,
    versions: dict[int, StoredVersion],
    runs: list[StoredRun],
) -> Iterator[str]:
    at_stake = {named.instant: named for named in _at_stake(before, after)}
    for run in runs:
        if run.carried_by == after.number and run.scheduled_at not in at_stake:
            yield f"{run.run_id} was carried by version {after.number}, though it would have been run"
        if run.carried_by == after.number and run.version != before.number:
            yield f"{run.run_id} was carried by version {after.number} from before {before.number}"
    if not at_stake:
        return
    # Whatever became of them since, and in whichever version.
    used = {
        period_of(after.period, run.named_local, run.scheduled_at, second_pass=False)
        for run in runs
        if run.origin in ("schedule", "backfill") and run.version < after.number and run.version in versions
    }
    for instant, named in at_stake.items():
        if period_of(after.period, named.local, named.instant, second_pass=False) not in used:
            yield f"{instant:%d %H:%M} was lost when version {after.number} took over"


def _at_stake(before: StoredVersion, after: StoredVersion) -> Iterator[Named]:
    """The first occurrence of the old rule past the boundary, of each period whose new one lies before it."""
    if after.boundary == "now" or after.period not in REACH:
        return
    boundary, reach = after.effective_from, REACH[after.period]
    missed = {
        period_of(after.period, named.local, named.instant, second_pass=named.second_pass)
        for named in after.naming.between(boundary - reach, boundary)
    }
    for named in before.naming.between(boundary, boundary + reach):
        period = period_of(after.period, named.local, named.instant, second_pass=named.second_pass)
        if period in missed:
            missed.remove(period)
            yield named
