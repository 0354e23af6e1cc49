"""Why an occurrence is where a dry run has it, in plain words: for whoever decides by them whether to go on."""

from dataclasses import dataclass

from rota.cli.times import LocalOf
from rota.service.representation import Wire

SKIPPED = {
    "ended": "the schedule has ended",
    "error": "fell due while the schedule was in error",
    "expired": "later than its overdue policy allows",
    "on_request": "skipped on request; its period stays used",
    "overlap": "the run before it was not done",
    "paused": "fell due during the pause",
    "superseded": "late, and a newer one is due, which runs in its place",
}
"""By the reason of a skip. That of a gap and that of a used period are told by their notes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """What one dry run is of, as far as its entries do not say it themselves."""

    operation: str
    version: object
    """The number that the change makes; the latest one where it makes none."""
    skipped_on_request: frozenset[str]
    """Runs whose period stays used though they do not run."""
    local_of: LocalOf

    @classmethod
    def of(cls, told: Wire, *, local_of: LocalOf) -> "Telling":
        return cls(
            operation=str(told.get("operation", "upcoming")),
            version=told.get("version"),
            skipped_on_request=frozenset(
                str(entry["run_id"]) for entry in entries_of(told, "skipped") if entry.get("run_id")
            ),
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
            return _why_suppressed(telling, entry)
        case "skipped":
            return _why_skipped(telling, entry)
        case _:
            parts = [_why_next(entry)]
    return "; ".join(part for part in [*parts, *_notes(telling, section, entry)] if part)


def _why_kept(telling: Telling, entry: Wire) -> str:
    match entry["state"]:
        case "planned" if telling.operation == "pause":
            return "planned already; held when it falls due, and decided on resume"
        case "planned":
            return f"planned already, and stays version {entry['version']}'s"
        case "held":
            return "held since the pause, and decided on resume"
        case "queued":
            return f"fell due before; admitted at once, as version {entry['version']}'s"
        case _:
            return f"{entry['state']} already"


def _why_carried(telling: Telling, entry: Wire) -> str:
    period = str(entry["period_key"]).partition(":")[0]
    return (
        f"version {telling.version} names its time of this {period} before it takes over; "
        f"version {entry['version']} still runs it"
    )


def _why_suppressed(telling: Telling, entry: Wire) -> str:
    note = str(entry["note"])
    if note.rpartition(" ")[2] in telling.skipped_on_request:
        return f"{note}, which was skipped on request; it is not brought back"
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
    """The service's own notes; that it was moved is said with the local time to which."""
    notes = [note for note in str(entry.get("note") or "").split("; ") if note]
    kept = [
        note
        for note in notes
        if not note.startswith(("moved from", "owed:"))
        and not (section == "carried" and note.startswith("carried by"))
    ]
    due_at = entry.get("due_at")
    if due_at is not None and due_at != entry["scheduled_at"]:
        local = telling.local_of(entry["version"], due_at)
        kept.insert(0, f"moved: falls due at {due_at if local is None else f'{local} ({due_at})'}")
    return kept
