"""Who did what to a schedule, when and why."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from rota.domain.identity import ScheduleId
from rota.domain.json_text import EMPTY_OBJECT, JsonText

AuditAction = Literal[
    "schedule.create",
    "schedule.edit",
    "schedule.pause",
    "schedule.resume",
    "schedule.end",
    "schedule.error",
    "schedule.plan",
    "schedule.backfill",
    "schedule.restamp",
    "occurrence.skip",
    "occurrence.move",
    "run.cancel",
    "run.request",
    "run.replay",
    "delivery.redrive",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEvent:
    """One entry of a schedule's history, written in the commit that it tells of."""

    schedule_id: ScheduleId
    action: AuditAction
    at: datetime
    actor: str | None = None
    reason: str | None = None
    details: JsonText = EMPTY_OBJECT
