"""Between rows and values of deliveries and effects, as `rows` has them of all else."""

from sqlalchemy import RowMapping

from rota.domain.delivery import Delivery, DeliveryState
from rota.domain.effect import Effect
from rota.domain.identity import RunId, ScheduleId
from rota.store.sql import cells
from rota.store.sql.rows import Values


def delivery_values(delivery: Delivery) -> Values:
    return {
        "run_id": delivery.run_id,
        "attempt": delivery.attempt,
        "schedule_id": delivery.schedule_id,
        "job": delivery.job,
        "state": delivery.state.value,
        "tries": delivery.tries,
        "first_at": cells.millis(delivery.first_at),
        "next_at": cells.millis_or_none(delivery.next_at),
        "sent_at": cells.millis_or_none(delivery.sent_at),
        "error": delivery.error,
        "failures": delivery.failures,
        "sends": delivery.sends,
    }


def to_delivery(row: RowMapping) -> Delivery:
    return Delivery(
        run_id=RunId(cells.text(row["run_id"])),
        attempt=cells.integer(row["attempt"]),
        schedule_id=ScheduleId(cells.text(row["schedule_id"])),
        job=cells.text(row["job"]),
        state=DeliveryState(row["state"]),
        tries=cells.integer(row["tries"]),
        first_at=cells.instant(row["first_at"]),
        next_at=cells.instant_or_none(row["next_at"]),
        sent_at=cells.instant_or_none(row["sent_at"]),
        error=cells.text_or_none(row["error"]),
        failures=cells.integer(row["failures"]),
        sends=cells.integer(row["sends"]),
    )


def effect_values(effect: Effect) -> Values:
    return {
        "run_id": effect.run_id,
        "name": effect.name,
        "begun_by": effect.begun_by,
        "begun_at": cells.millis(effect.begun_at),
        "recorded_at": cells.millis_or_none(effect.recorded_at),
        "result": effect.result,
    }


def to_effect(row: RowMapping) -> Effect:
    return Effect(
        run_id=RunId(cells.text(row["run_id"])),
        name=cells.text(row["name"]),
        begun_by=cells.integer(row["begun_by"]),
        begun_at=cells.instant(row["begun_at"]),
        recorded_at=cells.instant_or_none(row["recorded_at"]),
        result=None if row["result"] is None else cells.json_text(row["result"]),
    )
