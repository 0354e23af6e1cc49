"""The rules of zones that schedules were computed with, in SQL."""

from collections.abc import Iterator, Sequence

from sqlalchemy import (
    CTE,
    ColumnElement,
    RowMapping,
    Select,
    Table,
    and_,
    func,
    literal,
    or_,
    select,
    union,
)

from rota.domain.identity import ScheduleId
from rota.domain.schedule import ScheduleStatus, ZoneRulesRow
from rota.store.port import ScheduleRecord, UsedZoneRules, ZoneRules
from rota.store.sql import cells, rows
from rota.store.sql.batches import Part
from rota.store.sql.pages import read_page, readable
from rota.store.sql.records import SELECT_RECORDS, read_beside, to_record
from rota.store.sql.schema import is_awaiting, schedules, versions, zone_rules


class SqlZoneRules(Part):
    def list_zone_rules(self) -> list[UsedZoneRules]:
        with self._database.reading() as connection:
            found = connection.execute(_LIST_ZONE_RULES).mappings().all()
        return [UsedZoneRules(**row) for row in found]

    def get_zone_rules(self, timezone: str, fingerprint: str) -> ZoneRulesRow | None:
        """Raises `UnreadableRow`."""
        statement = select(zone_rules).where(
            zone_rules.c.timezone == timezone, zone_rules.c.fingerprint == fingerprint
        )
        with self._database.reading() as connection:
            row = connection.execute(statement).mappings().first()
        return None if row is None else _to_zone_rules(row)

    def list_computed_with(
        self, rules: ZoneRules, *, after: ScheduleId | None, limit: int
    ) -> list[ScheduleRecord]:
        branches = _ids_with(literal(rules.timezone), literal(rules.fingerprint))

        def records_after(last: RowMapping | None) -> Select[*tuple[object, ...]]:
            id_ = after if last is None else ScheduleId(last["id"])
            found = union(*(_page(ids, after=id_, limit=limit) for ids in branches))
            return SELECT_RECORDS.where(schedules.c.id.in_(found)).order_by(schedules.c.id)

        def to_records(found: Sequence[RowMapping]) -> Iterator[ScheduleRecord]:
            beside = read_beside(connection, found)
            return readable(found, lambda row: to_record(row, beside))

        with self._database.reading() as connection:
            return read_page(connection, records_after, to_records, limit=limit)


def _to_zone_rules(row: RowMapping) -> ZoneRulesRow:
    with cells.reading(f"rules {row['fingerprint']} of zone {row['timezone']}"):
        return rows.to_zone_rules(row)


def _page(ids: Select[tuple[str]], *, after: ScheduleId | None, limit: int) -> Select[tuple[str]]:
    [id_] = ids.selected_columns
    page = ids if after is None else ids.where(id_ > after)
    return select(page.limit(limit).subquery().c.id)


def _ids_with(timezone: ColumnElement[str], fingerprint: ColumnElement[str]) -> list[Select[tuple[str]]]:
    """The ids of schedules that have not ended, by two ways: those whose latest version has the rules, and those whose
    cursor's version has them while the latest waits.

    Each is a walk along a partial index: neither the many versions before the latest are looked at, nor the many
    schedules whose latest version governs.
    """
    is_living = schedules.c.status != ScheduleStatus.ENDED.value
    has_rules = (versions.c.timezone == timezone) & (versions.c.fingerprint == fingerprint)
    latest = (
        select(versions.c.schedule_id.label("id"))
        .join(
            schedules,
            (schedules.c.id == versions.c.schedule_id) & (schedules.c.latest_version == versions.c.number),
        )
        .where(versions.c.effective_until.is_(None), has_rules, is_living)
        .order_by(versions.c.schedule_id)
    )
    governing = (
        select(schedules.c.id)
        .where(
            is_awaiting(),
            is_living,
            select(versions.c.number)
            .where(
                versions.c.schedule_id == schedules.c.id, versions.c.number == schedules.c.version, has_rules
            )
            .correlate_except(versions)
            .exists(),
        )
        .order_by(schedules.c.id)
    )
    return [latest, governing]


def _lasting_rules() -> CTE:
    """The rules that versions without an end have; the last row holds none.

    It leaps along the partial index from one pair to the next: the many schedules of a zone cost no more than one.
    """
    pair = versions.c.timezone, versions.c.fingerprint
    by_pair = select(versions).where(versions.c.effective_until.is_(None)).order_by(*pair).limit(1)
    first = [by_pair.with_only_columns(column).scalar_subquery().label(column.name) for column in pair]
    found = select(*first).cte("lasting_rules", recursive=True)
    # A comparison of pairs would find the zone by the index, but walk through all of its rows.
    in_zone = (versions.c.timezone == found.c.timezone) & (versions.c.fingerprint > found.c.fingerprint)
    further = [
        by_pair.where(way).correlate(found) for way in (in_zone, versions.c.timezone > found.c.timezone)
    ]
    following = [
        func.coalesce(*(way.with_only_columns(column).scalar_subquery() for way in further))
        for column in pair
    ]
    return found.union_all(select(*following).where(found.c.timezone.is_not(None)))


def _list_zone_rules() -> Select[tuple[str, str, str]]:
    """The stored rules, and those whose row is lost, of which some living schedule's version has one."""
    lasting = _lasting_rules()
    known = union(
        select(zone_rules.c.timezone, zone_rules.c.fingerprint),
        select(lasting.c.timezone, lasting.c.fingerprint).where(lasting.c.timezone.is_not(None)),
    ).subquery("known_rules")
    pair = known.c.timezone, known.c.fingerprint
    is_used = or_(*(ids.order_by(None).correlate(known).exists() for ids in _ids_with(*pair)))
    resolved_with = (
        select(versions.c.tzdata)
        .where(versions.c.effective_until.is_(None), *_are(pair, versions))
        .limit(1)
        .correlate(known)
        .scalar_subquery()
    )
    return (
        select(*pair, func.coalesce(zone_rules.c.tzdata, resolved_with).label("tzdata"))
        .outerjoin_from(known, zone_rules, and_(*_are(pair, zone_rules)))
        .where(is_used)
        .order_by(*pair)
    )


def _are(pair: tuple[ColumnElement[str], ColumnElement[str]], table: Table) -> list[ColumnElement[bool]]:
    timezone, fingerprint = pair
    return [table.c.timezone == timezone, table.c.fingerprint == fingerprint]


_LIST_ZONE_RULES = _list_zone_rules()
