"""The labels of schedules in SQL: apart from their text, in the order in which they are searched."""

from sqlalchemy import Connection, bindparam, delete, insert

from rota.domain.errors import UnreadableRow
from rota.domain.identity import ScheduleId
from rota.domain.json_text import JsonText, load_json
from rota.store.sql import cells, rows
from rota.store.sql.prepared import Prepared
from rota.store.sql.schema import schedule_labels


def write_labels(connection: Connection, schedule_id: ScheduleId, labels: JsonText) -> None:
    _WRITE.execute(connection, _values_of(schedule_id, labels))


def rewrite_labels(connection: Connection, schedule_id: ScheduleId, *, old: object, new: JsonText) -> None:
    """Writes `new` in place of those that the text `old` has, or of all of the schedule where it makes no sense."""
    try:
        with cells.reading(f"schedule {schedule_id}"):
            _REMOVE.execute(connection, _values_of(schedule_id, cells.json_texts(old)))
    except UnreadableRow:
        # Their key begins with the label, so this looks at the labels of every schedule.
        connection.execute(delete(schedule_labels).where(schedule_labels.c.schedule_id == schedule_id))
    _REMOVE.execute(connection, _values_of(schedule_id, new))  # Which the old text may not have told.
    write_labels(connection, schedule_id, new)


def _values_of(schedule_id: ScheduleId, labels: JsonText) -> list[rows.Values]:
    return [
        {"key": key, "value": value, "schedule_id": schedule_id} for key, value in load_json(labels).items()
    ]


_WRITE = Prepared(insert(schedule_labels))
_REMOVE = Prepared(
    delete(schedule_labels).where(*(column == bindparam(column.name) for column in schedule_labels.c))
)
