"""Why an occurrence is where a dry run has it, in plain words: for whoever decides by them whether to go on."""

import re
from dataclasses import dataclass

from rota.cli.times import LocalOf
from rota.service.representation import Wire

SKIPPED = {
    "cancelled": "cancelled; its period stays used",
    "ended": "the schedule has ended",
    "error": "fell due while the schedule was in error",
    "expired": "later than its overdue policy allows",
    "on_request": "skipped on request; its period stays used",
    "overlap": "a run of the schedule was open, and its runs may not overlap",
    "paused": "fell due during the pause",
    "superseded": "late, and a newer one is due, which runs in its place",
}
"""By the reason of a skip. That of a gap and that of a used period are told by their notes."""

_USER = re.compile(r"is used by run (\S+)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """What one dry run is of, as far as its entries do not say it themselves."""

    operation: str
    version: object
    """The number that the change makes; the latest one where it makes none."""
    period: object
    """The kind of period by which occurrences are compared; None where the operation compares none."""
    local_of: LocalOf

    @classmethod
    def of(cls, told: Wire, *, local_of: LocalOf) -> "Telling":
        return cls(
            operation=str(told.get("operation", "upcoming")),
            version=told.get("version"),
            period=told.get("period"),
            local_of=local_of,
        )


def entries_of(told: Wire, section: str) -> list[Wire]:
    """The entries of one section; none where it is not told of."""
    entries = told.get(section, [])
    assert isinstance(entries, list)  # noqa: S101 - as every dry run has it
    return entries


def why(telling: Telling, section: str, entry: Wire) -> str:
    """One sentence, or more than one with semicolons between them."""
    match section:
        case "kept":
            parts = [_why_kept(telling, entry)]
        case "carried":
            parts = [_why_carried(telling, entry)]
        case "suppressed":
            return _why_suppressed(entry)
        case "skipped":
            return _why_skipped(telling, entry)
        case _:
            parts = [_why_next(entry)]
    return "; ".join(part for part in [*parts, *_notes(telling, section, entry)] if part)


def fold_pairs(told: Wire) -> Wire:
    """What is kept and suppresses the new version's occurrence of the same instant is told once, as kept."""
    kept = {(entry.get("run_id"), entry["scheduled_at"]): entry for entry in entries_of(told, "kept")}
    suppressed: list[Wire] = []
    folded: set[tuple[object, object]] = set()
    for entry in entries_of(told, "suppressed"):
        user = _USER.search(str(entry.get("note")))
        key = (None if user is None else user[1], entry["scheduled_at"])
        folded.add(key) if key in kept else suppressed.append(entry)
    return {
        **told,
        "kept": [{**entry, "is_of_both": key in folded} for key, entry in kept.items()],
        "suppressed": suppressed,
    }


def _why_kept(telling: Telling, entry: Wire) -> str:
    if entry.get("is_of_both"):
        return f"{entry['state']}; keeps version {entry['version']} and its params"
    match entry["state"]:
        case "planned" if telling.operation == "pause":
            return "planned already; held when it falls due, and decided on resume"
        case "planned":
            return f"planned already, and stays version {entry['version']}'s"
        case "held":
            return "held since the pause, and decided on resume"
        case "waiting":
            return "fell due before; admitted at once, and waits for the run that is open"
        case "queued":
            return f"fell due before; admitted at once, as version {entry['version']}'s"
        case _:
            return f"{entry['state']} already"


def _why_carried(telling: Telling, entry: Wire) -> str:
    period = telling.period or str(entry["period_key"]).partition(":")[0]
    return (
        f"version {telling.version}'s occurrence of that {period} lies before it takes over; "
        f"version {entry['version']} still runs it"
    )


def _why_suppressed(entry: Wire) -> str:
    note = str(entry["note"])
    if ", which was " in note:
        return f"{note}; it is not brought back"
    return f"{note}; it would be a double"


def _why_skipped(telling: Telling, entry: Wire) -> str:
    reason, note, count = entry["reason"], entry["note"], entry.get("count", 1)
    if reason == "gap":
        return str(note)
    said = SKIPPED.get(str(reason), "" if note else str(reason))
    if telling.operation == "pause" and reason == "paused":
        said = "skipped on resume, unless that says --apply-overdue"
    many = "" if count == 1 else f"{count} of them, all before {entry['until']}: "
    return many + "; ".join(part for part in [said, *_notes(telling, "skipped", entry)] if part)


def _why_next(entry: Wire) -> str:
    """What is merely named needs no reason."""
    return str(entry["state"]) if entry["state"] in ("planned", "held") else ""


def _notes(telling: Telling, section: str, entry: Wire) -> list[str]:
    """The service's own notes; that it was moved, or why it waits, is said with the local time to which."""
    notes = [note for note in str(entry.get("note") or "").split("; ") if note]
    kept = [
        note
        for note in notes
        if not note.startswith(("moved from", "owed:"))
        and note != "backfill"
        and not (section == "carried" and note.startswith("carried by"))
    ]
    due_at = entry.get("due_at")
    if section != "skipped" and due_at is not None and due_at != entry["scheduled_at"]:
        local = telling.local_of(entry["version"], due_at)
        is_moved = any(note.startswith("moved from") for note in notes)
        what = "backfill: " if "backfill" in notes else "moved: " if is_moved else ""
        kept.insert(0, f"{what}falls due at {due_at if local is None else f'{local} ({due_at})'}")
    return kept
