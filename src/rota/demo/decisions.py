"""What a dispatcher has decided for one schedule and not yet committed, as one line between two processes."""

import json
from dataclasses import asdict, dataclass

from rota.demo.telling import say
from rota.domain.admission import Admission
from rota.domain.instants import format_instant
from rota.domain.schedule import Cursor
from rota.store.port import Fence


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a schedule stands: the version that owns its cursor, and the cursor's instant."""

    version: int
    instant: str | None

    def __str__(self) -> str:
        return f"{self.instant or 'nowhere'} of version {self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """It applies only under `epoch`, and only where revision and cursor are still those that were read."""

    partition: int
    epoch: int
    revision: int
    read: Place
    runs: tuple[str, ...]
    written: Place
    """Where the cursor would stand after it."""

    def to_line(self) -> str:
        return json.dumps(asdict(self))


def decision_of(fence: Fence, admission: Admission) -> Decision:
    return Decision(
        partition=fence.partition,
        epoch=fence.epoch,
        revision=admission.expected_revision,
        read=place_of(admission.expected_cursor),
        runs=tuple(run.run_id for run in admission.runs),
        written=place_of(admission.cursor),
    )


def place_of(cursor: Cursor) -> Place:
    instant = None if cursor.scheduled_at is None else format_instant(cursor.scheduled_at)
    return Place(version=cursor.version, instant=instant)


def decision_from(line: str) -> Decision:
    """What `to_line` wrote, after whatever stands before it on the line."""
    told = json.loads(line[line.index("{") :])
    places = {name: Place(**told[name]) for name in ("read", "written")}
    return Decision(**{**told, **places, "runs": tuple(told["runs"])})


def say_decision(decision: Decision) -> None:
    say(f"    decided by    version {decision.read.version}, epoch {decision.epoch} of its partition")
    say(f"    would create  {', '.join(decision.runs) or 'no run'}")
    say(f"    would move    the cursor to {decision.written}")
    say(f"    holds only at revision {decision.revision} with the cursor at {decision.read}")
