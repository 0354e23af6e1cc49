"""Deliveries as people see them: what is on its way to a sink, and what is dead and may be tried again."""

from dataclasses import replace
from datetime import datetime

from rota.domain.audit import AuditEvent
from rota.domain.delivery import Delivery, DeliveryState
from rota.domain.errors import FieldError, InvalidRequest, NotFound
from rota.domain.identity import RunId
from rota.domain.json_text import encode_json
from rota.service.context import NOBODY, Actor, Context
from rota.service.paging import LIMIT_MAX
from rota.service.queries import DELIVERY_FILTERS, is_name
from rota.service.representation import Wire, delivery_to_wire
from rota.store.port import DeliveryFilter

REDRIVEN_PER_REQUEST_MAX = 1_000
COUNTED_MAX = 10_000
"""So far a dry run counts."""
DEAD_COUNTED_MAX = 100


def list_deliveries(
    context: Context, filter_: DeliveryFilter, *, after: str | None, limit: int
) -> list[Wire]:
    """By run id."""
    place = None if after is None else RunId(after)
    return [
        delivery_to_wire(each) for each in context.store.list_deliveries(filter_, after=place, limit=limit)
    ]


def redrive_delivery(context: Context, run_id: str, *, actor: Actor = NOBODY) -> Wire:
    """The delivery of the run: a dead one is tried again at once, its age counted anew; any other is left as it is.

    Raises `NotFound`.
    """
    found = context.store.get_run(RunId(run_id)) if is_name(run_id) else None
    delivery = None if found is None or found.delivery is None else found.delivery
    if delivery is not None and delivery.state is DeliveryState.DEAD:
        delivery = _redrive(context, delivery, actor, now=context.clock.now())
    if delivery is None:
        raise NotFound("delivery", run_id)
    return delivery_to_wire(delivery)


def redrive_deliveries(
    context: Context, filter_: DeliveryFilter, *, dry_run: bool = False, actor: Actor = NOBODY
) -> Wire:
    """Has the dead deliveries that match tried again, a bounded number of them; with `dry_run` it only counts them.

    Repeating it goes on where it ended. Raises `InvalidRequest` for a filter that names nothing, or another state.
    """
    if filter_ == DeliveryFilter():
        message = (
            f"Give at least one of {', '.join(DELIVERY_FILTERS)}; state dead alone is every dead delivery."
        )
        raise InvalidRequest(FieldError("state", message))
    if filter_.state not in (None, DeliveryState.DEAD):
        raise InvalidRequest(
            FieldError("state", "Only what is dead is redriven; give dead, or leave it out.")
        )
    bound = COUNTED_MAX if dry_run else REDRIVEN_PER_REQUEST_MAX
    dead, is_complete = _read_dead(context, replace(filter_, state=DeliveryState.DEAD), bound=bound)
    redriven = len(dead)
    if not dry_run:
        now = context.clock.now()
        redriven = sum(_redrive(context, delivery, actor, now=now) is not None for delivery in dead)
    return {"dry_run": dry_run, "redriven": redriven, "is_complete": is_complete}


def _read_dead(context: Context, filter_: DeliveryFilter, *, bound: int) -> tuple[list[Delivery], bool]:
    """Up to `bound` of them, and whether these are all."""
    found: list[Delivery] = []
    while True:
        after = found[-1].run_id if found else None
        page = context.store.list_deliveries(filter_, after=after, limit=LIMIT_MAX)
        found += page
        if len(found) > bound:
            return found[:bound], False
        if len(page) < LIMIT_MAX:
            return found, True


def _redrive(context: Context, delivery: Delivery, actor: Actor, *, now: datetime) -> Delivery | None:
    """The delivery after it; None where it is gone by now."""
    event = AuditEvent(
        schedule_id=delivery.schedule_id,
        action="delivery.redrive",
        at=now,
        actor=actor.name,
        reason=actor.reason,
        details=encode_json({"run_id": delivery.run_id}),
    )
    return context.store.commit_redrive(delivery.run_id, event=event, now=now)


def count_dead(context: Context) -> int:
    """How many deliveries are dead, counted up to `DEAD_COUNTED_MAX`."""
    filter_ = DeliveryFilter(state=DeliveryState.DEAD)
    return len(context.store.list_deliveries(filter_, after=None, limit=DEAD_COUNTED_MAX))
