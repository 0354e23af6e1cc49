"""What a version was computed with, where this process has other rules for its zone (I11).

The dispatcher leaves such a schedule alone. Whoever gives it a version by the new rules looks at the old ones too:
for what has its outcome already, what is carried, and what changes.
"""

from datetime import datetime

from rota.domain.cadence import Cadence
from rota.domain.errors import RotaError
from rota.domain.schedule import Version, last_decided, last_named_before
from rota.domain.zone import fingerprint
from rota.domain.zone_rules import zone_of_offsets
from rota.service.context import Context
from rota.service.versions import next_whole_second
from rota.store.port import ScheduleRecord


def former_cadence(context: Context, version: Version) -> Cadence | None:
    """The cadence by the rules that the version was computed with; None where they are this process's.

    Raises `RotaError` where they are not stored any more.
    """
    zone = context.zones.load(version.definition.timezone)
    if fingerprint(zone) == version.fingerprint:
        return None
    stored = context.store.get_zone_rules(version.definition.timezone, version.fingerprint)
    if stored is None:
        raise RotaError(f"The rules of {zone.name} in tz data {version.tzdata} are not stored any more.")
    return Cadence(
        version.definition.recurrence,
        zone_of_offsets(zone.name, stored.offsets),
        gap=version.definition.gap,
        fold=version.fold,
    )


def boundary_by_new_rules(record: ScheduleRecord, former: Cadence, *, now: datetime) -> datetime:
    """The first second after what has its outcome: what is owed is computed by the new rules."""
    owner, cursor = record.version, record.schedule.cursor.scheduled_at
    if cursor is not None and cursor <= now:
        decided = last_named_before(owner, former, cursor)
        return next_whole_second(max(decided or owner.effective_from, owner.effective_from))
    decided = last_decided(owner, former, cursor=cursor, after=now)
    return next_whole_second(max(now, owner.effective_from, decided or now))
