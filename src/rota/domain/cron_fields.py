"""Reads one field of a cron expression: values, names, lists, ranges, steps, and L, W, # in the day fields.

A field comes as ASCII text without blanks. A set of values is an integer whose bit `v` stands for value `v`.
Every refusal is an `InvalidExpression` whose part is the field and whose sentence says what to write instead.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from rota.domain.cron_days import DaysOfMonth, DaysOfWeek
from rota.domain.errors import InvalidExpression

_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")

# Far beyond every useful step, and short enough to be converted and shown.
_DIGITS_MAX = 9

_TERM = re.compile(
    r"(?:\*|(?P<first>[0-9]+|[A-Z]+)(?:-(?P<last>[0-9]+|[A-Z]+))?)(?:/(?P<step>[0-9]+))?",
)
_LAST_DAY = re.compile(r"L(?:-(?P<offset>[0-9]+))?(?P<nearest>W)?")
_NEAREST = re.compile(r"(?P<day>[0-9]+)W")
_NTH_WEEKDAY = re.compile(r"(?P<weekday>[0-9]+|[A-Z]+)#(?P<number>[0-9]+)")
_LAST_WEEKDAY = re.compile(r"(?P<weekday>[0-9]+|[A-Z]{3})L")


@dataclass(frozen=True, slots=True, kw_only=True)
class CronField:
    """One of the five fields: its name in messages, its least and greatest value, its names."""

    part: str
    low: int
    high: int
    names: Mapping[str, int] = field(default_factory=dict)

    @property
    def everything(self) -> int:
        """The set of all its values."""
        return (1 << (self.high + 1)) - (1 << self.low)

    def refusal(self, problem: str) -> InvalidExpression:
        """The error to raise where this field is wrong; `problem` says what to write instead."""
        return InvalidExpression(self.part, problem)


MINUTE = CronField(part="minute", low=0, high=59)
HOUR = CronField(part="hour", low=0, high=23)
DAY_OF_MONTH = CronField(part="day of month", low=1, high=31)
MONTH = CronField(
    part="month", low=1, high=12, names={name: number for number, name in enumerate(_MONTHS, start=1)}
)
DAY_OF_WEEK = CronField(
    part="day of week", low=0, high=7, names={name: number for number, name in enumerate(_WEEKDAYS)}
)


def parse_values(text: str, of: CronField) -> int:
    """The set of values that a field of plain terms names."""
    values = 0
    for term in _terms(text, of):
        values |= _values_of(term, of)
    return values


def parse_days_of_month(text: str) -> DaysOfMonth:
    """The day-of-month field; besides plain terms `L`, `L-n`, `nW`, `LW`, `L-nW`, and `?` for `*`."""
    numbered = 0
    before_last: list[int] = []
    nearest: list[int] = []
    nearest_before_last: list[int] = []
    for term in _terms("*" if text == "?" else text, DAY_OF_MONTH):
        if match := _LAST_DAY.fullmatch(term):
            offset = _number(match["offset"] or "0", DAY_OF_MONTH)
            if offset > 30:
                raise DAY_OF_MONTH.refusal(f"{term!r} lies before every month; after L- write 0 to 30.")
            (nearest_before_last if match["nearest"] else before_last).append(offset)
        elif match := _NEAREST.fullmatch(term):
            nearest.append(_value(match["day"], DAY_OF_MONTH))
        elif "W" in term:
            raise DAY_OF_MONTH.refusal(f"{term!r}: W takes one day, as in 15W, or the last one, as in LW.")
        elif "L" in term:
            raise DAY_OF_MONTH.refusal(
                f"{term!r}: the last day is L, the third to last L-2; neither takes a range or step."
            )
        else:
            numbered |= _values_of(term, DAY_OF_MONTH)
    return DaysOfMonth(
        numbered=numbered,
        before_last=tuple(before_last),
        nearest=tuple(nearest),
        nearest_before_last=tuple(nearest_before_last),
    )


def parse_days_of_week(text: str) -> DaysOfWeek:
    """The day-of-week field, 0 and 7 both Sunday; besides plain terms `n#k`, `nL`, and `?` for `*`."""
    plain = 0
    nth: list[tuple[int, int]] = []
    last: list[int] = []
    for term in _terms("*" if text == "?" else text, DAY_OF_WEEK):
        if match := _NTH_WEEKDAY.fullmatch(term):
            number = _number(match["number"], DAY_OF_WEEK)
            if not 1 <= number <= 5:
                raise DAY_OF_WEEK.refusal(
                    f"{term!r}: after # write 1 to 5, or FRIL for the last Friday of the month."
                )
            nth.append((_from_monday(_value(match["weekday"], DAY_OF_WEEK)), number))
        elif match := _LAST_WEEKDAY.fullmatch(term):
            last.append(_from_monday(_value(match["weekday"], DAY_OF_WEEK)))
        elif term == "L":
            raise DAY_OF_WEEK.refusal(
                "L needs a day: write FRIL or 5L for the last Friday of the month, SAT for Saturdays."
            )
        elif "#" in term:
            raise DAY_OF_WEEK.refusal(
                f"{term!r}: # takes one day and a number, as in FRI#2 for the second Friday."
            )
        else:
            plain |= _values_of(term, DAY_OF_WEEK)
    weekdays = 0
    for day in range(8):
        if plain >> day & 1:
            weekdays |= 1 << _from_monday(day)
    return DaysOfWeek(weekdays=weekdays, nth=tuple(nth), last=tuple(last))


def starts_with_star(text: str) -> bool:
    """Whether a day field counts as a star in Vixie cron's rule of the two day fields: `*`, `*/2`, `?`."""
    return text.startswith(("*", "?"))


def _terms(text: str, of: CronField) -> list[str]:
    terms = text.upper().split(",")
    if "" in terms:
        raise of.refusal(f"{text!r} has an empty place in its list; take out the surplus comma.")
    return terms


def _values_of(term: str, of: CronField) -> int:
    match = _TERM.fullmatch(term)
    if match is None:
        raise of.refusal(_unreadable(term, of))
    step = _number(match["step"] or "1", of)
    if step == 0:
        raise of.refusal(f"{term!r} has the step 0; write a step of 1 or more.")
    first, last = of.low, of.high
    if match["first"] is not None:
        first = _value(match["first"], of)
        if match["last"] is not None:
            last = _range_end(match["last"], of, first=first)
        elif match["step"] is None:
            last = first
    if last < first:
        raise of.refusal(f"{term!r} runs backwards; write {_without_wrapping(first, last, step, of)}.")
    return sum(1 << value for value in range(first, last + 1, step))


def _range_end(text: str, of: CronField, *, first: int) -> int:
    # By name, Sunday closes a week that it does not open: FRI-SUN is 5-7, SUN-TUE is 0-2.
    if of is DAY_OF_WEEK and text == "SUN" and first > 0:
        return 7
    return _value(text, of)


def _value(text: str, of: CronField) -> int:
    if text.isalpha():
        if text not in of.names:
            raise of.refusal(_unreadable(text, of))
        return of.names[text]
    value = _number(text, of)
    if not of.low <= value <= of.high:
        raise of.refusal(f"{text} is out of range; write {of.low} to {of.high}.")
    return value


def _number(text: str, of: CronField) -> int:
    if len(text) > _DIGITS_MAX:
        raise of.refusal(f"A number has {len(text)} digits; write a smaller one.")
    return int(text)


def _unreadable(term: str, of: CronField) -> str:
    if "?" in term:
        return f"{term!r}: ? stands alone, and only in the day fields; write * here."
    names = list(of.names)
    named = f" or {names[0]} to {names[-1]}" if names else ""
    values = f"{of.low} to {of.high}{named}"
    return f"{term!r} is not understood; write {values}, *, a list 1,2, a range 1-2 or a step */2."


def _without_wrapping(first: int, last: int, step: int, of: CronField) -> str:
    """The same values as two ranges, or as a list where a step counts across the wrap."""
    # Both ends of the week's numbers are Sunday, so it goes on with Monday.
    restart = 1 if of is DAY_OF_WEEK else of.low
    if step == 1:
        ranges = [(first, of.high), (restart, last)]
        return ",".join(f"{a}-{b}" if a < b else f"{a}" for a, b in ranges if a <= b)
    round_trip = [*range(first, of.high + 1), *range(restart, last + 1)]
    return ",".join(str(value) for value in round_trip[::step])


def _from_monday(day: int) -> int:
    return (day + 6) % 7
