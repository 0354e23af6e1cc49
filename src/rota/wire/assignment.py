"""An assignment: an opened attempt with all that whoever works on it has to know."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast, get_args

from rota.domain.durations import format_duration, parse_duration
from rota.domain.errors import InvalidExpression, MalformedBody
from rota.domain.identity import RunId, ScheduleId
from rota.domain.instants import (
    format_instant,
    format_local,
    format_offset,
    parse_instant,
    parse_local,
    parse_offset,
)
from rota.domain.job import Job
from rota.domain.json_text import JsonText, load_json
from rota.domain.run import Origin, Run
from rota.domain.schedule import Version

AttemptId = tuple[RunId, int]
"""A run and the number of one of its attempts: what fences whoever reports (I6)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """One attempt at one run, given to a worker."""

    run_id: RunId
    schedule_id: ScheduleId
    version: int
    job: str
    attempt: int
    scheduled_at: datetime
    due_at: datetime
    named_local: datetime
    offset: timedelta
    timezone: str
    period_key: str
    origin: Origin
    params: JsonText
    lease: timedelta
    """The attempt is lost when it has not been heard of for so long."""
    timeout: timedelta | None
    """It has failed when it goes on for longer; None: no limit."""
    is_cancel_requested: bool = False
    """The run was asked to stop before this attempt was opened."""

    @property
    def key(self) -> AttemptId:
        return self.run_id, self.attempt

    @property
    def local(self) -> datetime:
        """The resolved local time of `scheduled_at` (naive)."""
        return self.scheduled_at.replace(tzinfo=None) + self.offset


def assignment_of(run: Run, version: Version, job: Job) -> Assignment:
    """The assignment of a run's open attempt."""
    return Assignment(
        run_id=run.run_id,
        schedule_id=run.schedule_id,
        version=run.version,
        job=run.job,
        attempt=run.attempt,
        scheduled_at=run.scheduled_at,
        due_at=run.due_at,
        named_local=run.named_local,
        offset=run.offset,
        timezone=version.definition.timezone,
        period_key=run.period_key,
        origin=run.origin,
        params=version.definition.params,
        lease=job.lease,
        timeout=job.timeout,
        is_cancel_requested=run.cancel_requested_at is not None,
    )


def assignment_to_wire(assignment: Assignment) -> dict[str, object]:
    return {
        # First what every report names, so that a worker without a JSON reader gets at it.
        "run_id": assignment.run_id,
        "attempt": assignment.attempt,
        "job": assignment.job,
        "schedule_id": assignment.schedule_id,
        "version": assignment.version,
        "scheduled_at": format_instant(assignment.scheduled_at),
        "due_at": format_instant(assignment.due_at),
        "local": format_local(assignment.local),
        "named_local": format_local(assignment.named_local),
        "offset": format_offset(assignment.offset),
        "timezone": assignment.timezone,
        "period_key": assignment.period_key,
        "origin": assignment.origin,
        "params": load_json(assignment.params),
        "lease": format_duration(assignment.lease),
        "timeout": None if assignment.timeout is None else format_duration(assignment.timeout),
        "cancel_requested": assignment.is_cancel_requested,
    }


def read_assignment(value: object) -> Assignment:
    """An assignment as a server answered it. Raises `MalformedBody`: what answers is no server of this version."""
    if not isinstance(value, Mapping):
        raise MalformedBody("The answer's attempt is no object.")
    try:
        origin = text_in(value, "origin")
        if origin not in get_args(Origin):
            raise MalformedBody(f"The answer's origin {origin!r} is not known.")
        timeout = value["timeout"]
        return Assignment(
            run_id=RunId(text_in(value, "run_id")),
            schedule_id=ScheduleId(text_in(value, "schedule_id")),
            version=number_in(value, "version"),
            job=text_in(value, "job"),
            attempt=number_in(value, "attempt"),
            scheduled_at=parse_instant(text_in(value, "scheduled_at")),
            due_at=parse_instant(text_in(value, "due_at")),
            named_local=parse_local(text_in(value, "named_local")),
            offset=parse_offset(text_in(value, "offset")),
            timezone=text_in(value, "timezone"),
            period_key=text_in(value, "period_key"),
            origin=cast("Origin", origin),
            params=json_of(value["params"]),
            lease=parse_duration(text_in(value, "lease")),
            timeout=None if timeout is None else parse_duration(text_in(value, "timeout")),
            is_cancel_requested=value["cancel_requested"] is True,
        )
    except KeyError as error:
        raise MalformedBody(f"The answer's attempt has no {error}.") from None
    except InvalidExpression as error:
        raise MalformedBody(f"The answer's attempt cannot be read: {error}.") from None


def json_of(value: object) -> JsonText:
    """The canonical text of JSON that the other side has checked."""
    return JsonText(json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")))


def text_in(value: Mapping[str, object], name: str) -> str:
    """A member that is a text. Raises `KeyError`, and `MalformedBody` where it is none."""
    given = value[name]
    if not isinstance(given, str):
        raise MalformedBody(f"The answer's {name} is no text.")
    return given


def number_in(value: Mapping[str, object], name: str) -> int:
    """A member that is a whole number. Raises `KeyError`, and `MalformedBody` where it is none."""
    given = value[name]
    if isinstance(given, bool) or not isinstance(given, int):
        raise MalformedBody(f"The answer's {name} is no whole number.")
    return given
