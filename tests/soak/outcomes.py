"""Each instant that a version names in its window has one outcome, a run or a skip with a reason, and nothing else has
one (I4); windows touch (I8); reasons fit what was asked."""

import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice, pairwise

from tests.soak.evidence import NEVER, Evidence
from tests.soak.stored import StoredSchedule, StoredSkip, StoredVersion

SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)
NOTE = re.compile(r"\S+ is used by run ([^\s,]+)(, which was .+)?")


def check_schedules(evidence: Evidence) -> Iterator[str]:
    for schedule in evidence.stored.schedules.values():
        versions = evidence.stored.versions[schedule.id]
        yield from _check_end(schedule)
        yield from _check_windows(schedule, versions)
        yield from _check_series(versions)
        for version in versions.values():
            yield from _check_version(evidence, schedule, version)


def _check_end(schedule: StoredSchedule) -> Iterator[str]:
    if schedule.status != "ended" or schedule.next_due is not None:
        told = f"{schedule.status}, {schedule.status_reason}, next due {schedule.next_due}"
        yield f"{schedule.id} did not come to its end: {told}"


def _check_windows(schedule: StoredSchedule, versions: dict[int, StoredVersion]) -> Iterator[str]:
    if sorted(versions) != list(range(1, schedule.latest_version + 1)):
        yield f"{schedule.id}: the versions {sorted(versions)} are not 1 to {schedule.latest_version}"
    governing = [version for _, version in sorted(versions.items()) if version.has_governed]
    for before, after in pairwise(governing):
        if before.effective_until != after.effective_from:
            yield f"{schedule.id}: the windows of versions {before.number} and {after.number} do not touch"
    for version in governing:
        if version.effective_until is None:
            yield f"{schedule.id}: the window of version {version.number} has no end"
        elif version.effective_until < version.effective_from:
            yield f"{schedule.id}: the window of version {version.number} ends before it begins"
        if version.period != version.naming.period:
            yield f"{schedule.id}: the period of version {version.number} is {version.period}"


def _check_series(versions: dict[int, StoredVersion]) -> Iterator[str]:
    series, counts_from = 1, None
    for number, version in sorted(versions.items()):
        is_fresh = version.boundary == "now"
        began = (number, version.effective_from) if is_fresh else (series, counts_from)
        if (version.series, version.counts_from) != began:
            yield f"{version.schedule_id}: the keys of version {number} are of series {version.series}, not {began}"
        if version.has_governed:
            series, counts_from = began


def _check_version(evidence: Evidence, schedule: StoredSchedule, version: StoredVersion) -> Iterator[str]:
    what = f"{schedule.id} version {version.number}"
    end = version.effective_until or NEVER
    if end == NEVER:
        return
    bounded = _named_within_bounds(version)
    expected = Counter(instant for instant in bounded if instant < end)
    is_last = version.number == max(
        number for number, other in evidence.stored.versions[schedule.id].items() if other.has_governed
    )
    if version.has_governed and is_last and schedule.status_reason == "exhausted":
        for instant in bounded:
            if instant >= end:
                yield f"{what}: was exhausted before {instant:%H:%M:%S}"
    outcomes = Counter(
        run.scheduled_at
        for run in evidence.stored.runs_of[schedule.id]
        if run.version == version.number
        and run.origin == "schedule"
        and version.effective_from <= run.scheduled_at < end
    )
    for skip in evidence.stored.skips_of[schedule.id]:
        if skip.version == version.number:
            named = [item.instant for item in version.naming.between(skip.from_at, skip.until_at)]
            outcomes.update(named)
            if (len(named), named[:1]) != (skip.count, [skip.from_at]):
                yield f"{what}: a skip counts {skip.count} from {skip.from_at:%H:%M:%S}, there are {len(named)}"
            yield from (
                f"{what}: {fault}" for fault in _check_reason(evidence, schedule, version, skip, named)
            )
    for instant in sorted(expected | outcomes):
        if expected[instant] != outcomes[instant]:
            told = "named" if expected[instant] else "not named"
            yield f"{what}: {instant:%H:%M:%S} is {told} and has {outcomes[instant]} outcomes"


def _named_within_bounds(version: StoredVersion) -> list[datetime]:
    """What it names from the beginning of its window on, as long as it might have governed."""
    asked, from_ = version.asked, version.effective_from
    until = (version.effective_until or from_) + DAY
    if isinstance(ends_at := asked.get("ends_at"), str):
        until = min(until, datetime.fromisoformat(ends_at))
    elif "at" not in version.naming.recurrence and not asked.get("max_occurrences"):
        until = version.effective_until or from_
    named = (item.instant for item in version.naming.between(from_, until))
    most = asked.get("max_occurrences")
    return list(islice(named, most if isinstance(most, int) else None))


def _check_reason(
    evidence: Evidence,
    schedule: StoredSchedule,
    version: StoredVersion,
    skip: StoredSkip,
    named: list[datetime],
) -> Iterator[str]:
    policy = version.asked.get("overdue") or {"policy": "catch_up_all"}
    assert isinstance(policy, dict)
    match skip.reason:
        case "expired":
            is_right = policy["policy"] == "expire" or bool(policy.get("max_age"))
        case "superseded":
            is_right = policy["policy"] == "latest_only"
        case "ended":
            is_right = schedule.status_reason == "deleted"
        case "paused":
            pauses = evidence.perhaps_paused(schedule.id)
            is_right = all(any(pause.covers(instant) for pause in pauses) for instant in named)
        case "period_used":
            found = NOTE.fullmatch(skip.note or "")
            user = None if found is None else evidence.stored.runs.get(found[1])
            is_right = user is not None and user.schedule_id == schedule.id
        case _:
            is_right = False
    if not is_right:
        yield f"{skip.count} from {skip.from_at:%H:%M:%S} are skipped as {skip.reason} without a reason ({skip.note})"
