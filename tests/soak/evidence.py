"""What a soak left behind: the database, the driver's journal, the handler's effects."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from tests.soak.effects import Effect
from tests.soak.journal import Entry
from tests.soak.stored import Stored

NEVER = datetime(2200, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A stretch of time, `from_` and `until` included."""

    from_: datetime
    until: datetime
    apply_overdue: bool = False

    def covers(self, instant: datetime) -> bool:
        return self.from_ <= instant <= self.until


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    stored: Stored
    entries_of: dict[str, list[Entry]]
    effects: list[Effect]

    def asked(self, schedule_id: str, *operations: str) -> Iterator[Entry]:
        """What was, or may have been, done to the schedule, in order."""
        return (
            entry
            for entry in self.entries_of.get(schedule_id, [])
            if entry.operation in operations and entry.may_have_happened
        )

    def accepted(self, schedule_id: str, *operations: str) -> Iterator[Entry]:
        return (entry for entry in self.asked(schedule_id, *operations) if entry.is_accepted)

    def perhaps_paused(self, schedule_id: str) -> list[Span]:
        """When the schedule may have been paused, at the most."""
        ends = list(self.accepted(schedule_id, "resume"))
        return [
            Span(
                from_=pause.sent_at,
                until=min(
                    (end.answered_at for end in ends if end.sent_at >= pause.answered_at), default=NEVER
                ),
            )
            for pause in self.asked(schedule_id, "pause")
        ]

    def surely_paused(self, schedule_id: str) -> list[Span]:
        """When it was paused, at the least: from an answer to a pause to the next request that may have ended it."""
        ends = list(self.asked(schedule_id, "resume", "end"))
        spans = []
        for pause in self.accepted(schedule_id, "pause"):
            end = next((end for end in ends if end.sent_at >= pause.answered_at), None)
            spans.append(
                Span(
                    from_=pause.answered_at,
                    until=NEVER if end is None else end.sent_at,
                    apply_overdue=end is not None and end.asked.get("apply_overdue") is True,
                )
            )
        return spans


def evidence_of(stored: Stored, entries: list[Entry], effects: list[Effect]) -> Evidence:
    entries_of: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        entries_of[entry.schedule_id].append(entry)
    return Evidence(stored=stored, entries_of=entries_of, effects=effects)
