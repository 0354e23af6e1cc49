"""What the driver was told was accepted is in the database, and what is in there was asked for."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta

from tests.soak.evidence import NEVER, Evidence
from tests.soak.journal import Entry, Outcome
from tests.soak.stored import StoredVersion

CLOCKS_DIFFER = timedelta(milliseconds=50)
SECOND = timedelta(seconds=1)


def check_promises(evidence: Evidence) -> Iterator[str]:
    for id_, entries in evidence.entries_of.items():
        for entry in entries:
            if entry.outcome is Outcome.BROKEN:
                yield f"{entry.operation} of {id_} broke at {entry.sent_at:%H:%M:%S}: {entry.problem}"
            if entry.is_accepted:
                yield from (
                    f"{entry.operation} of {id_} at {entry.sent_at:%H:%M:%S.%f} was accepted: {fault}"
                    for fault in _check_kept(evidence, entry)
                )
        yield from _check_latest_words(evidence, id_)
    for id_ in evidence.stored.schedules:
        yield from _check_versions_asked_for(evidence, id_)


def _check_kept(evidence: Evidence, entry: Entry) -> Iterator[str]:
    stored, id_ = evidence.stored, entry.schedule_id
    schedule = stored.schedules.get(id_)
    if schedule is None:
        yield "there is no such schedule"
        return
    for run_id in entry.run_ids:
        if run_id not in stored.runs:
            yield f"there is no run {run_id}"
    if entry.operation in ("create", "edit"):
        params = entry.asked["params"]
        assert isinstance(params, dict)
        made = [version for version in stored.versions[id_].values() if version.edit == params["edit"]]
        if not made:
            yield f"no version is of edit {params['edit']}"
        for version in made:
            yield from _check_definition(entry, version)
    if entry.operation == "end" and schedule.status != "ended":
        yield f"it is {schedule.status}"


def _check_definition(entry: Entry, version: StoredVersion) -> Iterator[str]:
    for name in ("timezone", "recurrence", "overdue", "ends_at", "max_occurrences"):
        if name in entry.asked and version.asked[name] != entry.asked[name]:
            yield f"version {version.number} has {name} {version.asked[name]}, not {entry.asked[name]}"
    asked_from = entry.asked.get("effective_from")
    if isinstance(asked_from, str) and version.effective_from != datetime.fromisoformat(asked_from):
        yield f"version {version.number} took over at {version.effective_from}, not at {asked_from}"
    if entry.operation == "create":
        earliest, latest = entry.sent_at - CLOCKS_DIFFER, entry.answered_at + SECOND + CLOCKS_DIFFER
        if not earliest <= version.effective_from <= latest:
            yield f"it governs from {version.effective_from} on"


def _check_versions_asked_for(evidence: Evidence, id_: str) -> Iterator[str]:
    asked = Counter(
        params["edit"]
        for entry in evidence.asked(id_, "create", "edit")
        if isinstance(params := entry.asked["params"], dict)
    )
    for edit, count in Counter(version.edit for version in evidence.stored.versions[id_].values()).items():
        if count > asked[edit]:
            yield f"{id_}: {count} versions are of edit {edit}, which was asked for {asked[edit]} times"


def _check_latest_words(evidence: Evidence, id_: str) -> Iterator[str]:
    """Of an occurrence that was skipped or moved on request the last word holds, and ends are not late."""
    last: dict[str, list[Entry]] = defaultdict(list)
    for entry in evidence.asked(id_, "skip", "move"):
        last[entry.text("scheduled_at")].append(entry)
    for entries in last.values():
        entry = entries[-1]
        run = evidence.stored.runs.get(next(iter(entry.run_ids), ""))
        if not entry.is_accepted or run is None:
            continue
        if entry.operation == "skip" and (run.state, run.reason) != ("skipped", "on_request"):
            yield f"{run.run_id} was skipped on request, and is {run.state} ({run.reason})"
        if entry.operation == "move" and run.due_at != datetime.fromisoformat(entry.text("to")):
            yield f"{run.run_id} was moved to {entry.text('to')}, and is due at {run.due_at}"
    yield from _check_end(evidence, id_)


def _check_end(evidence: Evidence, id_: str) -> Iterator[str]:
    """What somebody ended goes on until he asked for it."""
    schedule = evidence.stored.schedules.get(id_)
    asked_at = min((entry.sent_at for entry in evidence.asked(id_, "end")), default=NEVER)
    if schedule is not None and schedule.status_reason == "deleted":
        ends = [version.effective_until or NEVER for version in evidence.stored.versions[id_].values()]
        if max(ends, default=NEVER) < asked_at - CLOCKS_DIFFER:
            yield f"{id_}: its last window ends at {max(ends)}, and nobody had asked before {asked_at}"
