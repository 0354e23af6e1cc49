"""What the admission of an ordinary schedule writes, in the terms of its row and its beat."""

from collections.abc import Mapping
from datetime import timedelta
from functools import lru_cache

from sqlalchemy import Boolean, ColumnElement, FromClause, Integer, Text, bindparam, cast, literal_column

from rota.domain.beat import Beat
from rota.domain.instants import stamp
from rota.store.sql import cells, rows
from rota.store.sql.columns import Instant, Long, Name, Truth

Kind = Text | Integer | Boolean

KEY_NAMES = ("cadence_id", "period", "series", "at")

GIVEN: Mapping[str, Kind] = {
    "cadence_id": Text(),
    "period": Text(),
    "series": Integer(),
    "at": Long,
    "following": Long,
    "stamp": Text(),
    "named_local": Long,
    "offset_seconds": Integer(),
    "period_key": Text(),
    "second_pass": Truth,
}
"""The columns of a beat, as it is given to a statement."""

CHOSEN: Mapping[str, Kind] = {
    "id": Name,
    "version": Integer(),
    "job": Name,
    "partition": Integer(),
    **{name: type_ for name, type_ in GIVEN.items() if name not in ("cadence_id", "period", "series")},
}
"""The columns of a chosen schedule with its beat."""

BEATS_KEPT = 4_096
"""Of an hour, which many commits share."""

_SECOND = timedelta(seconds=1)


@lru_cache(maxsize=BEATS_KEPT)
def given_values(beat: Beat) -> rows.Values:
    occurrence = beat.occurrence
    return {
        "cadence_id": beat.key.cadence_id,
        "period": beat.key.period,
        "series": beat.key.series,
        "at": cells.millis(beat.key.scheduled_at),
        "following": cells.millis(beat.following),
        "stamp": stamp(beat.key.scheduled_at),
        "named_local": cells.local_millis(occurrence.named_local),
        "offset_seconds": occurrence.offset // _SECOND,
        "period_key": beat.period_key,
        "second_pass": occurrence.second_pass,
    }


def advanced_values(following: ColumnElement[int]) -> Mapping[str, ColumnElement[int]]:
    """Of the schedule."""
    now = bindparam("now", type_=Instant)
    on_time = literal_column("0", Integer)
    return {"next_due": following, "next_scheduled_at": following, "turn": on_time, "updated_at": now}


def run_values(chosen: FromClause) -> Mapping[str, ColumnElement[object]]:
    """As `rows.run_values` has them of the planner's run; what is not named is null."""
    at = chosen.c.at
    return {
        "run_id": _run_id(chosen),
        "schedule_id": chosen.c.id,
        "version": chosen.c.version,
        "scheduled_at": at,
        "due_at": at,
        "named_local": chosen.c.named_local,
        "offset_seconds": chosen.c.offset_seconds,
        "period_key": chosen.c.period_key,
        "origin": literal_column("'schedule'"),
        "job": chosen.c.job,
        "partition": chosen.c.partition,
        "state": literal_column("'queued'"),
        "admitted_at": bindparam("now", type_=Instant),
        "attempt": literal_column("0"),
        "available_at": at,
        "turn": literal_column("0"),
        "second_pass": chosen.c.second_pass,
    }


def intent_values(chosen: FromClause) -> Mapping[str, ColumnElement[object]]:
    """Of the outbox row."""
    return {
        "job": chosen.c.job,
        "turn": literal_column("0"),
        "available_at": chosen.c.at,
        "run_id": _run_id(chosen),
        "attempt": literal_column("1"),
    }


def _run_id(chosen: FromClause) -> ColumnElement[str]:
    """As `run_id_of` makes it (I1)."""
    dot = literal_column("'.'", Text)
    return chosen.c.id.concat(dot).concat(cast(chosen.c.version, Text)).concat(dot).concat(chosen.c.stamp)
