"""The message of an attempt, as every sink sends it, and the CloudEvent that a webhook posts.

The message names what is due and leaves out the params, which its version has: it stays small, a queue that is read by
many shows none of them, and an old message never brings old params along (I8). A webhook's receiver has nowhere to
fetch them from, so its event has them.
"""

from rota.domain.instants import format_instant, format_local, format_offset
from rota.domain.json_text import JsonText, encode_json, load_json
from rota.store.port import TakenDelivery

EVENT_TYPE = "rota.run.due"


def message_of(taken: TakenDelivery) -> dict[str, object]:
    """What a consumer needs to open the attempt and to know what it is about."""
    run = taken.run
    return {
        "run_id": run.run_id,
        "schedule_id": run.schedule_id,
        "version": run.version,
        "job": run.job,
        "scheduled_at": format_instant(run.scheduled_at),
        "due_at": format_instant(run.due_at),
        "attempt": taken.delivery.attempt,
        "origin": run.origin,
        "local": format_local(run.local),
        "timezone": taken.version.definition.timezone,
        "offset": format_offset(run.offset),
        "period_key": run.period_key,
        "params_ref": f"/schedules/{run.schedule_id}/versions/{run.version}",
    }


def event_id_of(taken: TakenDelivery) -> str:
    """Names the attempt: the same however often its message is sent."""
    return f"{taken.delivery.run_id}/{taken.delivery.attempt}"


def event_of(taken: TakenDelivery, *, source: str) -> JsonText:
    """A CloudEvent 1.0 in structured JSON."""
    return encode_json(
        {
            "specversion": "1.0",
            "id": event_id_of(taken),
            "source": source,
            "type": EVENT_TYPE,
            "subject": taken.run.schedule_id,
            "time": format_instant(taken.run.scheduled_at),
            "datacontenttype": "application/json",
            "data": {**message_of(taken), "params": load_json(taken.version.definition.params)},
        }
    )
