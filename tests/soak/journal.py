"""What the driver asked for and what it was told: a line of JSON for each request, in a file of its own."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import cast

Wire = dict[str, object]


class Outcome(StrEnum):
    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    """The store could not be used: the request may have been carried out, or not."""
    BROKEN = "broken"
    """An error that nobody meant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One request and its answer. What is asked again after an unknown outcome is another entry."""

    operation: str
    schedule_id: str
    asked: Wire
    sent_at: datetime
    answered_at: datetime
    outcome: Outcome
    answer: Wire
    problem: str = ""

    @property
    def may_have_happened(self) -> bool:
        return self.outcome in (Outcome.ACCEPTED, Outcome.UNKNOWN)

    @property
    def is_accepted(self) -> bool:
        return self.outcome is Outcome.ACCEPTED

    def text(self, name: str) -> str:
        """A member of what was asked."""
        return str(self.asked[name])

    @property
    def run_ids(self) -> list[str]:
        """The runs that the answer shows."""
        runs = self.answer.get("runs", [self.answer] if "run_id" in self.answer else [])
        return [str(run["run_id"]) for run in cast("list[Wire]", runs)]


class Journal:
    """Written by one process; what is written is there, whatever becomes of the database."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, entry: Entry) -> None:
        wire = {
            "operation": entry.operation,
            "schedule_id": entry.schedule_id,
            "asked": entry.asked,
            "sent_at": entry.sent_at.isoformat(),
            "answered_at": entry.answered_at.isoformat(),
            "outcome": entry.outcome.value,
            "answer": entry.answer,
            "problem": entry.problem,
        }
        with self.path.open("a") as file:
            file.write(json.dumps(wire) + "\n")

    def read(self) -> list[Entry]:
        if not self.path.exists():
            return []
        return [_entry(json.loads(line)) for line in self.path.read_text().splitlines()]


def _entry(wire: dict[str, str]) -> Entry:
    return Entry(
        operation=wire["operation"],
        schedule_id=wire["schedule_id"],
        asked=cast("Wire", wire["asked"]),
        sent_at=datetime.fromisoformat(wire["sent_at"]),
        answered_at=datetime.fromisoformat(wire["answered_at"]),
        outcome=Outcome(wire["outcome"]),
        answer=cast("Wire", wire["answer"]),
        problem=wire["problem"],
    )


def of(entries: Iterable[Entry], *operations: str) -> Iterator[Entry]:
    """Those of these operations that were, or may have been, carried out."""
    return (entry for entry in entries if entry.operation in operations and entry.may_have_happened)
