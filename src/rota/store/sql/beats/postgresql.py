"""Beats on PostgreSQL: one statement that chooses, advances and writes, over arrays of the beats' columns.

The statement sees one snapshot. What it chose may have been changed by others meanwhile, so the update names everything
that was decided by: after a wait for a row READ COMMITTED compares it once more with what that row says by then, and
leaves it out. Run and intent are made of what was updated, and of nothing else (I3).

Rows are not locked when they are chosen: locks cost an eighth more, and hardly ever is one held for long. It waits for
others `HELD_WAIT` only, and then has to be done anew by the statement that locks what it chooses and passes over what
is held: a console that has one row locked is to stop nobody else.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta

from sqlalchemy import (
    CTE,
    ColumnElement,
    Connection,
    FromClause,
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
from sqlalchemy.exc import OperationalError
from sqlalchemy.sql.selectable import LateralFromClause

from rota.store.sql import rows
from rota.store.sql.arrays import encode_numbers, encode_texts
from rota.store.sql.beats.conditions import (
    BEAT_KEY,
    LOOKED_AT,
    is_due,
    is_in_time,
    may_be_ordinary,
    stands_somewhere,
)
from rota.store.sql.beats.held import RowHeld
from rota.store.sql.beats.writes import (
    CHOSEN,
    GIVEN,
    KEY_NAMES,
    Kind,
    advanced_values,
    intent_values,
    run_values,
)
from rota.store.sql.engine import LOCK_NOT_AVAILABLE, sqlstate_of
from rota.store.sql.prepared import Prepared
from rota.store.sql.schema import outbox, runs, schedules

HELD_WAIT = timedelta(milliseconds=200)
"""Longer than a commit takes; and little of a burst, of which only the first commit waits for what is held."""


def read(
    connection: Connection, partitions: Sequence[int], excluding: Collection[str], bounds: rows.Values
) -> Iterable[Row[*tuple[object, ...]]]:
    values = {**bounds, "partitions": list(partitions), "excluding": list(excluding)}
    return _READ.read(connection, values).all()


def admit(
    connection: Connection,
    partitions: Sequence[int],
    given: Sequence[rows.Values],
    bounds: rows.Values,
    *,
    passing_held: bool,
) -> int:
    arrays = {
        f"given_{name}": (encode_texts if isinstance(kind, Text) else encode_numbers)(
            [values[name] for values in given]
        )
        for name, kind in GIVEN.items()
    }
    values = {**bounds, **arrays, "partitions": list(partitions)}
    if passing_held:
        return _ADMIT_PASSING_HELD.read(connection, values).rowcount
    connection.exec_driver_sql(_WAIT_SHORTLY)
    try:
        admitted = _ADMIT.read(connection, values).rowcount
    except OperationalError as error:
        if sqlstate_of(error) == LOCK_NOT_AVAILABLE:
            raise RowHeld from error
        raise
    # The commit may have to wait for those that send notices.
    connection.exec_driver_sql(_WAIT_AS_EVER)
    return admitted


def _array(name: str, kind: Kind) -> ColumnElement[Sequence[object]]:
    return cast(bindparam(name, required=True), ARRAY(kind))


def _unnested(name: str, columns: Mapping[str, Kind], *, prefix: str = "") -> TableValuedAlias:
    arrays = [_array(f"{prefix}{key}", type_) for key, type_ in columns.items()]
    named = [column(key, type_) for key, type_ in columns.items()]
    return func.unnest(*arrays).table_valued(*named).render_derived(name=name)


def _wanted() -> TableValuedAlias:
    array = _array("partitions", Integer())
    return func.unnest(array).table_valued(column("partition", Integer)).render_derived(name="wanted")


def _due_in(
    wanted: TableValuedAlias, columns: Sequence[ColumnElement[object]]
) -> Select[*tuple[object, ...]]:
    """Of every partition what is due, by (due instant, id): a range of the index."""
    return (
        select(*columns)
        .where(schedules.c.partition == wanted.c.partition, *is_due())
        .order_by(schedules.c.next_due, schedules.c.id)
        .correlate(wanted)
    )


def _looked_at(wanted: TableValuedAlias) -> LateralFromClause:
    """What is looked at before a commit gives up: read only as far as the first `each` of it reach."""
    due = _due_in(wanted, [schedules.c[name] for name in LOOKED_AT])
    return (
        due.where(_meets(stands_somewhere()))
        .limit(bindparam("looked_at", type_=Integer))
        .lateral("looked_at")
    )


def _first_of(
    looked_at: FromClause, columns: Sequence[str], *conditions: ColumnElement[bool]
) -> LateralFromClause:
    return (
        select(*(looked_at.c[name] for name in columns))
        .where(_meets(*may_be_ordinary(looked_at), *conditions))
        .order_by(looked_at.c.next_due, looked_at.c.id)
        .limit(bindparam("each", type_=Integer))
        .lateral("first")
    )


def _first_that_nobody_holds(
    wanted: TableValuedAlias, columns: Sequence[str], *conditions: ColumnElement[bool]
) -> LateralFromClause:
    """It locks nothing that it does not take, so it has to look on until it has `each`."""
    return (
        _due_in(wanted, [schedules.c[name] for name in columns])
        .where(_meets(*may_be_ordinary(), *conditions))
        .limit(bindparam("each", type_=Integer))
        .with_for_update(of=schedules, key_share=True, skip_locked=True)
        .lateral("first")
    )


def _meets(*conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """Behind `CASE` the planner guesses that every second one meets them.

    By themselves, equal columns would let it guess that hardly any does: it would rather sort all that is due than go
    along the index to the first few.
    """
    return case((and_(*conditions), true()), else_=false())


def _read_statement() -> Select[*tuple[object, ...]]:
    wanted = _wanted()
    looked_at = _looked_at(wanted)
    is_excluded = looked_at.c.cadence_id == func.any(_array("excluding", Text()))
    first = _first_of(looked_at, BEAT_KEY, ~is_excluded)
    return select(*first.c).distinct().select_from(wanted.join(first, true()))


def _admit_statement(*, passing_held: bool) -> Insert:
    given = select(_unnested("arrays", GIVEN, prefix="given_")).cte("given")
    advanced = _advanced(_standing(_chosen(given, passing_held=passing_held), given))
    made = insert(runs).from_select(list(run_values(advanced)), _select(run_values(advanced))).cte("made")
    intents = intent_values(advanced)
    return insert(outbox).from_select(list(intents), _select(intents)).add_cte(made)


def _chosen(given: CTE, *, passing_held: bool) -> CTE:
    """The schedules that are to be advanced.

    Of those that are bounded `_advanced` tells whether their own beat lies within: here that would be a search through
    all beats for each. Some that it refuses so take places of `each`. They are at their last instants, so they are the
    planner's, who takes the oldest of the partition first: none of them stands in the way for long. That few do is seen
    to by `shortest`: where all beats have the same distance, none does.
    """
    wanted = _wanted()
    of = schedules if passing_held else _looked_at(wanted)
    keys = select(*(given.c[name] for name in KEY_NAMES))
    shortest = select(func.min(given.c.following - given.c.at)).scalar_subquery()
    conditions = (
        # No join, before which all that is due would be sorted: a probe of a hash table for each along the way.
        tuple_(*(of.c[name] for name in BEAT_KEY)).in_(keys),
        or_(of.c.named_until.is_(None), of.c.named_until > of.c.next_due + shortest),
        is_in_time(of),
    )
    columns = ("id", *_DECIDED_BY)
    if passing_held:
        first = _first_that_nobody_holds(wanted, columns, *conditions)
    else:
        first = _first_of(of, columns, *conditions)
    found = select(*first.c).select_from(wanted.join(first, true()))
    return found.cte("chosen").prefix_with("MATERIALIZED")


def _standing(chosen: CTE, given: CTE) -> CTE:
    """The chosen ones, each with its beat. The planner guesses very few, and probes the key of each: never a scan."""
    at_beat = and_(*(given.c[name] == chosen.c[own] for name, own in zip(KEY_NAMES, BEAT_KEY, strict=True)))
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


_DECIDED_BY = ("revision", "version", "job", "partition", *BEAT_KEY)
"""Columns that a schedule still has to have as they were, beside the conditions that are asked once more."""

_READ = Prepared(_read_statement())
_ADMIT = Prepared(_admit_statement(passing_held=False))
_ADMIT_PASSING_HELD = Prepared(_admit_statement(passing_held=True))
_WAIT_SHORTLY = f"SET LOCAL lock_timeout = {HELD_WAIT // timedelta(milliseconds=1)}"
_WAIT_AS_EVER = "SET LOCAL lock_timeout TO DEFAULT"
