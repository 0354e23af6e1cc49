"""Definitions and recurrences as the JSON texts that the tables keep.

Reading trusts the words and judges only the shape: whether an expression can be computed is for those who compute it,
and for `check_definition`. What was read is kept, for schedules share few texts.
"""

from functools import lru_cache
from typing import cast, get_args

from rota.domain.cadence import FoldAsked, Gap
from rota.domain.definition import NO_SPREAD, definition_to_wire, parse_definition, parse_overdue
from rota.domain.durations import parse_duration
from rota.domain.instants import EPOCH, parse_instant, parse_local
from rota.domain.json_text import EMPTY_OBJECT, JsonText, encode_json, load_json
from rota.domain.period import PeriodAsked
from rota.domain.recurrence import At, Cron, Every, Recurrence, RRule, recurrence_to_wire
from rota.domain.schedule import Definition, Overlap
from rota.domain.zone_rules import zone_of_offsets
from rota.store.sql import cells

KEPT = 4_096
"""Texts whose values are kept, of each kind: some megabytes."""


def definition_text(definition: Definition) -> JsonText:
    """Without the params, which are a column of their own: so schedules with the same rule have the same text."""
    return encode_json(definition_to_wire(definition))


@lru_cache(maxsize=KEPT)
def read_definition(text: str) -> Definition:
    """The definition of a text that `definition_text` made, with no params."""
    wire = cells.members(load_json(JsonText(text)))
    return Definition(
        timezone=cells.text(wire["timezone"]),
        recurrence=_recurrence(wire["recurrence"]),
        gap=cast("Gap", cells.choice(wire["gap"], get_args(Gap))),
        fold=cast("FoldAsked", cells.choice(wire["fold"], get_args(FoldAsked))),
        period=cast("PeriodAsked", cells.choice(wire["period"], get_args(PeriodAsked))),
        overdue=cells.optional(wire["overdue"], parse_overdue),
        params=EMPTY_OBJECT,
        starts_at=cells.optional(wire["starts_at"], lambda cell: parse_instant(cells.text(cell))),
        ends_at=cells.optional(wire["ends_at"], lambda cell: parse_instant(cells.text(cell))),
        max_occurrences=cells.optional(wire["max_occurrences"], cells.integer),
        overlap=cast("Overlap", cells.choice(wire["overlap"], get_args(Overlap))),
        spread=cells.optional(wire["spread"], lambda cell: parse_duration(cells.text(cell))) or NO_SPREAD,
    )


def definition_with(text: str, params: JsonText) -> Definition:
    """The definition of a text that `definition_text` made, with these params: faster than to replace those it has."""
    kept = read_definition(text)
    return Definition(
        timezone=kept.timezone,
        recurrence=kept.recurrence,
        gap=kept.gap,
        fold=kept.fold,
        period=kept.period,
        overdue=kept.overdue,
        params=params,
        starts_at=kept.starts_at,
        ends_at=kept.ends_at,
        max_occurrences=kept.max_occurrences,
        overlap=kept.overlap,
        spread=kept.spread,
    )


@lru_cache(maxsize=KEPT)
def check_definition(text: str) -> None:
    """Raises what is wrong with the words of a stored definition, such as an expression that never matches."""
    parse_definition(cells.members(load_json(JsonText(text))), default_anchor=EPOCH)


@lru_cache(maxsize=KEPT)
def check_offsets(text: JsonText) -> None:
    """Raises what is wrong with the stored offsets of a zone."""
    zone_of_offsets("a zone", text)


def recurrence_text(recurrence: Recurrence) -> JsonText:
    return encode_json(recurrence_to_wire(recurrence))


@lru_cache(maxsize=KEPT)
def read_recurrence(text: str) -> Recurrence:
    """The recurrence of a text that `recurrence_text` made."""
    return _recurrence(load_json(JsonText(text)))


def _recurrence(wire: object) -> Recurrence:
    match wire:
        case {"cron": str(expression)}:
            return Cron(expression=expression)
        case {"rrule": str(text)}:
            return RRule(text=text)
        case {"every": str(interval), "anchor": str(anchor)}:
            return Every(interval=parse_duration(interval), anchor=parse_instant(anchor))
        case {"at": str(moment)} if moment.endswith("Z"):
            return At(time=parse_instant(moment))
        case {"at": str(moment)}:
            return At(time=parse_local(moment))
        case _:
            raise ValueError(f"{wire!r} is no recurrence")
