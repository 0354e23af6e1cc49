"""Beats on PostgreSQL: one statement that chooses, advances and writes, over arrays of the beats' columns.

The statement sees one snapshot. What it chose may have been changed by others meanwhile, so the update names everything
that was decided by: after a wait for a row READ COMMITTED compares it once more with what that row says by then, and
leaves it out. Run and intent are made of what was updated, and of nothing else (I3).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from sqlalchemy import (
    CTE,
    ColumnElement,
    Connection,
    Insert,
    Integer,
    Row,
    Select,
    TableValuedAlias,
    Text,
    and_,
    bindparam,
    case,
    cast,
    column,
    false,
    func,
    insert,
    or_,
    select,
    true,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.sql.selectable import LateralFromClause

from rota.store.sql import rows
from rota.store.sql.arrays import encode_numbers, encode_texts
from rota.store.sql.beats.conditions import BEAT_KEY, is_due, is_in_time, may_be_ordinary
from rota.store.sql.beats.writes import (
    CHOSEN,
    GIVEN,
    KEY_NAMES,
    Kind,
    advanced_values,
    intent_values,
    run_values,
)
from rota.store.sql.prepared import Prepared
from rota.store.sql.schema import outbox, runs, schedules


def read(
    connection: Connection, partitions: Sequence[int], excluding: Collection[str], bounds: rows.Values
) -> Iterable[Row[*tuple[object, ...]]]:
    values = {**bounds, "partitions": list(partitions), "excluding": list(excluding)}
    return _READ.read(connection, values).all()


def admit(
    connection: Connection, partitions: Sequence[int], given: Sequence[rows.Values], bounds: rows.Values
) -> int:
    arrays = {
        f"given_{name}": (encode_texts if isinstance(kind, Text) else encode_numbers)(
            [values[name] for values in given]
        )
        for name, kind in GIVEN.items()
    }
    return _ADMIT.read(connection, {**bounds, **arrays, "partitions": list(partitions)}).rowcount


def _array(name: str, kind: Kind) -> ColumnElement[Sequence[object]]:
    return cast(bindparam(name, required=True), ARRAY(kind))


def _unnested(name: str, columns: Mapping[str, Kind], *, prefix: str = "") -> TableValuedAlias:
    arrays = [_array(f"{prefix}{key}", type_) for key, type_ in columns.items()]
    named = [column(key, type_) for key, type_ in columns.items()]
    return func.unnest(*arrays).table_valued(*named).render_derived(name=name)


def _wanted() -> TableValuedAlias:
    array = _array("partitions", Integer())
    return func.unnest(array).table_valued(column("partition", Integer)).render_derived(name="wanted")


def _first_of_each(
    wanted: TableValuedAlias, columns: Sequence[ColumnElement[object]], *conditions: ColumnElement[bool]
) -> LateralFromClause:
    """Of every partition the first that meet the conditions, by (due instant, id): a range of the index.

    Behind `CASE` the planner guesses that every second one meets them. By themselves, equal columns would let it guess
    that hardly any does: it would rather sort all that is due than go along the index to the first few.
    """
    meets = case((and_(*may_be_ordinary(), *conditions), true()), else_=false())
    return (
        select(*columns)
        .where(schedules.c.partition == wanted.c.partition, *is_due(), meets)
        .order_by(schedules.c.next_due, schedules.c.id)
        .limit(bindparam("each", type_=Integer))
        .correlate(wanted)
        .lateral("first")
    )


def _read_statement() -> Select[*tuple[object, ...]]:
    wanted = _wanted()
    is_excluded = schedules.c.cadence_id == func.any(_array("excluding", Text()))
    first = _first_of_each(wanted, BEAT_KEY, ~is_excluded)
    return select(*first.c).distinct().select_from(wanted.join(first, true()))


def _admit_statement() -> Insert:
    given = select(_unnested("arrays", GIVEN, prefix="given_")).cte("given")
    advanced = _advanced(_standing(_chosen(given), given))
    made = insert(runs).from_select(list(run_values(advanced)), _select(run_values(advanced))).cte("made")
    intents = intent_values(advanced)
    return insert(outbox).from_select(list(intents), _select(intents)).add_cte(made)


def _chosen(given: CTE) -> CTE:
    """The schedules that are to be advanced."""
    wanted = _wanted()
    keys = select(*(given.c[name] for name in KEY_NAMES))
    latest = select(func.max(given.c.following)).scalar_subquery()
    own = (
        select(given.c.following)
        .where(*(given.c[name] == own for name, own in zip(KEY_NAMES, BEAT_KEY, strict=True)))
        .scalar_subquery()
    )
    until = schedules.c.named_until
    first = _first_of_each(
        wanted,
        [schedules.c[name] for name in ("id", *_DECIDED_BY)],
        # No join, before which all that is due would be sorted: a probe of a hash table for each along the way.
        tuple_(*BEAT_KEY).in_(keys),
        case((until.is_(None), true()), (until > latest, true()), else_=own < until),
        is_in_time(),
    )
    found = select(*first.c).select_from(wanted.join(first, true()))
    return found.cte("chosen").prefix_with("MATERIALIZED")


def _standing(chosen: CTE, given: CTE) -> CTE:
    """The chosen ones, each with its beat. The planner guesses very few, and probes the key of each: never a scan."""
    at_beat = and_(
        *(given.c[name] == chosen.c[own.name] for name, own in zip(KEY_NAMES, BEAT_KEY, strict=True))
    )
    beats = [given.c[name] for name in GIVEN if name not in chosen.c]
    found = select(*chosen.c, *beats).join_from(chosen, given, at_beat)
    return found.cte("standing").prefix_with("MATERIALIZED")


def _advanced(standing: CTE) -> CTE:
    until = schedules.c.named_until
    return (
        update(schedules)
        .where(
            schedules.c.id == standing.c.id,
            *(schedules.c[name] == standing.c[name] for name in _DECIDED_BY),
            *may_be_ordinary(),
            or_(until.is_(None), until > standing.c.following),
        )
        .values(advanced_values(standing.c.following))
        .returning(*(standing.c[name] for name in CHOSEN))
        .cte("advanced")
    )


def _select(values: Mapping[str, ColumnElement[object]]) -> Select[*tuple[object, ...]]:
    return select(*(value.label(name) for name, value in values.items()))


_DECIDED_BY = ("revision", "version", "job", "partition", *(name.name for name in BEAT_KEY))
"""Columns that a schedule still has to have as they were, beside the conditions that are asked once more."""

_READ = Prepared(_read_statement())
_ADMIT = Prepared(_admit_statement())
