"""What a pause holds back, and who made it: for people who look at a schedule that does not run."""

from rota.domain.run import RunState
from rota.domain.schedule import ScheduleStatus
from rota.service.context import Context
from rota.service.queries import parse_run_filter
from rota.service.representation import Wire
from rota.service.runs import list_runs
from rota.service.schedules import list_history

HELD_SHOWN_MAX = 50
EVENTS_LOOKED_AT = 50


def held_runs(context: Context, schedule: Wire) -> list[Wire]:
    """The newest of the runs that fell due in the pause, soonest first."""
    if schedule["status"] != ScheduleStatus.PAUSED:
        return []
    asked = parse_run_filter({"schedule": str(schedule["id"]), "state": RunState.HELD.value})
    found = list_runs(context, asked, before=None, limit=HELD_SHOWN_MAX)
    return [run for _, run in reversed(found)]


def pause_line(context: Context, schedule: Wire) -> str | None:
    """`paused since 2026-01-14T10:00:00Z by ann (holiday)`; None where it is not paused."""
    if schedule["status"] != ScheduleStatus.PAUSED:
        return None
    suspensions = schedule["suspensions"]
    assert isinstance(suspensions, list)  # noqa: S101 - as a schedule's wire form has it
    since = next(suspension["from"] for suspension in suspensions if suspension["until"] is None)
    said = f"paused since {since}"
    for event in list_history(context, str(schedule["id"]), limit=EVENTS_LOOKED_AT):
        if event["action"] == "schedule.pause" and event["at"] == since:
            by = "" if event["actor"] is None else f" by {event['actor']}"
            why = "" if event["reason"] is None else f" ({event['reason']})"
            return f"{said}{by}{why}"
    return said
