"""What a version was computed with, where this process has other rules for its zone (I11).

The dispatcher leaves such a schedule alone. Whoever gives it a version by the new rules looks at the old ones too:
for what has its outcome already, what is carried, and what changes.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from rota.domain.cadence import Cadence, Fold, Gap
from rota.domain.errors import UnreadableRow
from rota.domain.recurrence import Recurrence
from rota.domain.schedule import Version, last_decided, last_named_before
from rota.domain.zone import Zone, fingerprint
from rota.domain.zone_rules import first_difference, zone_of_offsets
from rota.service.context import Context
from rota.service.versions import next_whole_second
from rota.store.port import ScheduleRecord

COMPARISONS_KEPT = 4_096


def former_cadence(context: Context, version: Version) -> Cadence | None:
    """The cadence by the rules that the version was computed with; None where they are this process's.

    Raises `UnreadableRow` where they are lost: not stored any more, or as what makes no sense.
    """
    return Comparisons(context).former(version)


class Comparisons:
    """Former cadences beside this process's, for one call: schedules that share a rule share its comparison."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._former_zone = lru_cache(COMPARISONS_KEPT)(self._read_former_zone)
        self._pair = lru_cache(COMPARISONS_KEPT)(self._compile_pair)

    def former(self, version: Version) -> Cadence | None:
        """As `former_cadence`."""
        zone = self._context.zones.load(version.definition.timezone)
        return None if fingerprint(zone) == version.fingerprint else self._pair_of(version).old

    def names_the_same(self, version: Version, *, from_: datetime, ends: Iterable[datetime]) -> bool:
        """Of a version with a former cadence: whether it names the same instants by the rules of this process, from
        `from_` to the earliest of `ends`."""
        pair = self._pair_of(version)
        until = min(ends, default=None)
        if not pair.holds_for(from_):
            pair.looked_from = from_
            pair.differs_at = first_difference(pair.old, pair.new, from_=from_)
        return pair.differs_at is None or (until is not None and pair.differs_at > until)

    def _pair_of(self, version: Version) -> "_Pair":
        definition = version.definition
        try:
            # By everything that they are computed from, not by the id that the version names (I12).
            return self._pair(
                definition.recurrence, definition.timezone, version.fingerprint, definition.gap, version.fold
            )
        except _RulesLost as lost:
            raise UnreadableRow(
                f"The rules of {definition.timezone} in tz data {version.tzdata}, which this schedule was computed "
                f"with, are lost ({lost}). Delete what is left of them from the stored zone rules, then edit any "
                f"schedule in this zone by a process with tz data {version.tzdata}: that stores them anew."
            ) from lost

    def _compile_pair(
        self, recurrence: Recurrence, timezone: str, fingerprint_: str, gap: Gap, fold: Fold
    ) -> "_Pair":
        zones = self._former_zone(timezone, fingerprint_), self._context.zones.load(timezone)
        old, new = (Cadence(recurrence, zone, gap=gap, fold=fold) for zone in zones)
        return _Pair(old=old, new=new)

    def _read_former_zone(self, timezone: str, fingerprint_: str) -> Zone:
        try:
            stored = self._context.store.get_zone_rules(timezone, fingerprint_)
        except UnreadableRow as error:
            raise _RulesLost(str(error)) from error
        if stored is None:
            raise _RulesLost("they are not stored any more")
        return zone_of_offsets(timezone, stored.offsets)


class _RulesLost(Exception):
    """What is wrong with the stored rules."""


@dataclass(slots=True, kw_only=True)
class _Pair:
    """One rule by both rules of its zone, and where the two differ."""

    old: Cadence
    new: Cadence
    looked_from: datetime | None = None
    differs_at: datetime | None = None
    """The first instant at or after `looked_from`; None: nowhere."""

    def holds_for(self, from_: datetime) -> bool:
        """Whether it is the first one at or after `from_` too."""
        if self.looked_from is None or from_ < self.looked_from:
            return False
        return self.differs_at is None or from_ <= self.differs_at


def boundary_by_new_rules(record: ScheduleRecord, former: Cadence, *, now: datetime) -> datetime:
    """The first second after what has its outcome: what is owed is computed by the new rules."""
    owner, cursor = record.version, record.schedule.cursor.scheduled_at
    if cursor is not None and cursor <= now:
        decided = last_named_before(owner, former, cursor)
        return next_whole_second(max(decided or owner.effective_from, owner.effective_from))
    decided = last_decided(owner, former, cursor=cursor, after=now)
    return next_whole_second(max(now, owner.effective_from, decided or now))
