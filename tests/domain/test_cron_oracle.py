"""Generated cron expressions against two oracles: a plain scan of dates written here, and cronsim.

The scan reads no expression: each generated term carries, beside its text, the condition it stands for.

Where cronsim 2.8 differs, expressions for it are generated without: a range of one value with a step (it
takes `9-9/3` for `9/3`), a range that ends in SUN by name, `W` but for `LW`, `L-n`, a named `nL`, and `?`.
"""

from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import cache

from cronsim import CronSim, CronSimError
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rota.domain.cron import CronRule, compile_cron
from rota.domain.errors import InvalidExpression

WEEKDAY_NAMES = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
MONTH_NAMES = ("", "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
ONE_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Field:
    """The text of a field and the condition that it stands for."""

    text: str
    matches: Callable[[date], bool]


@dataclass(frozen=True)
class Numbers:
    text: str
    values: frozenset[int]


@dataclass(frozen=True)
class Rule:
    minute: Numbers
    hour: Numbers
    day_of_month: Field
    month: Numbers
    day_of_week: Field

    @property
    def expression(self) -> str:
        fields = (self.minute, self.hour, self.day_of_month, self.month, self.day_of_week)
        return " ".join(field.text for field in fields)

    def matches(self, day: date) -> bool:
        if day.month not in self.month.values:
            return False
        by_date, by_weekday = self.day_of_month.matches(day), self.day_of_week.matches(day)
        if self.day_of_month.text[0] in "*?" or self.day_of_week.text[0] in "*?":
            return by_date and by_weekday
        return by_date or by_weekday

    def times(self) -> list[time]:
        return [
            time(hour, minute) for hour in sorted(self.hour.values) for minute in sorted(self.minute.values)
        ]


def is_last(day: date) -> bool:
    return (day + ONE_DAY).month != day.month


def is_nearest_working_day(day: date, target: int) -> bool:
    """Whether no other Monday to Friday of the month is nearer to its day `target`, which must exist."""
    if abs(day.day - target) > 2:  # quick; a weekend moves a day by two at most
        return False
    length = monthrange(day.year, day.month)[1]
    if target > length or target < 1:
        return False
    month = [day.replace(day=number) for number in range(1, length + 1)]
    working = [other for other in month if other.weekday() < 5]
    return day == min(working, key=lambda other: abs(other.day - target))


@st.composite
def number_terms(draw: st.DrawFn, low: int, high: int, names: tuple[str, ...] = ()) -> Numbers:
    """One plain term: a star, a value or a range, with or without a step."""

    def show(value: int) -> str:
        if names != () and draw(st.booleans()):
            return draw(st.sampled_from([names[value], names[value].lower()]))
        return str(value)

    form = draw(st.sampled_from(["value", "value", "range", "star", "value/", "range/", "*/"]))
    first, last = sorted((draw(st.integers(low, high)), draw(st.integers(low, high))))
    match form.rstrip("/"):
        case "value":
            # By name, Sunday opens the week: SUN/2 is 0/2, not 7/2.
            is_sunday_last = names is WEEKDAY_NAMES and first == 7 and form.endswith("/")
            text = "7" if is_sunday_last else show(first)
            last = high if form.endswith("/") else first
        case "range":
            # Sunday by name opens a range as 0 and closes it as 7; other spellings are tested by hand.
            if names is WEEKDAY_NAMES and last == 7:
                first = max(first, 1)
                text = f"{show(first) if first < 7 else '7'}-{show(last)}"
            elif names is WEEKDAY_NAMES and last == 0:
                text = f"{show(first)}-0"
            else:
                text = f"{show(first)}-{show(last)}"
        case _:
            text, first, last = "*", low, high
    step = 1
    if form.endswith("/"):
        step = draw(st.integers(1, high + 2))
        text = f"{text}/{step}"
    return Numbers(text, frozenset(value for value in range(first, last + 1) if (value - first) % step == 0))


def joined(terms: list[Numbers]) -> Numbers:
    return Numbers(
        ",".join(term.text for term in terms), frozenset[int]().union(*(term.values for term in terms))
    )


def numbers(low: int, high: int, names: tuple[str, ...] = ()) -> st.SearchStrategy[Numbers]:
    return st.lists(number_terms(low, high, names), min_size=1, max_size=3).map(joined)


def numbered_day(term: Numbers) -> Field:
    return Field(term.text, lambda day: day.day in term.values)


def weekdays(term: Numbers) -> Field:
    # isoweekday() has 7 for Sunday, the expression 0 or 7.
    return Field(term.text, lambda day: bool({day.isoweekday(), day.isoweekday() % 7} & term.values))


def before_last(offset: int) -> Field:
    text = "L" if offset == 0 else f"L-{offset}"
    return Field(
        text, lambda day: (day + offset * ONE_DAY).month == day.month and is_last(day + offset * ONE_DAY)
    )


def nearest(target: int) -> Field:
    return Field(f"{target}W", lambda day: is_nearest_working_day(day, target))


def nearest_before_last(offset: int) -> Field:
    text = "LW" if offset == 0 else f"L-{offset}W"
    return Field(text, lambda day: is_nearest_working_day(day, monthrange(day.year, day.month)[1] - offset))


def nth_weekday(shown: tuple[str, int], number: int) -> Field:
    text, weekday = shown
    return Field(
        f"{text}#{number}", lambda day: day.isoweekday() % 7 == weekday and (day.day + 6) // 7 == number
    )


def last_weekday(shown: tuple[str, int]) -> Field:
    text, weekday = shown
    return Field(
        f"{text}L", lambda day: day.isoweekday() % 7 == weekday and (day + 7 * ONE_DAY).month != day.month
    )


def any_of(terms: list[Field]) -> Field:
    return Field(",".join(term.text for term in terms), lambda day: any(term.matches(day) for term in terms))


def listed(*terms: st.SearchStrategy[Field]) -> st.SearchStrategy[Field]:
    return st.lists(st.one_of(*terms), min_size=1, max_size=3).map(any_of)


EVERY_DAY = [st.just(Field(text, lambda _day: True)) for text in ("*", "?")]
WEEKDAY_SHOWN: st.SearchStrategy[tuple[str, int]] = st.integers(0, 7).flatmap(
    lambda number: st.sampled_from([str(number), WEEKDAY_NAMES[number]]).map(lambda text: (text, number % 7))
)
NTH = st.builds(nth_weekday, WEEKDAY_SHOWN, st.integers(1, 5))
DAYS_OF_MONTH = st.one_of(
    *EVERY_DAY,
    listed(
        number_terms(1, 31).map(numbered_day),
        st.integers(0, 30).map(before_last),
        st.integers(1, 31).map(nearest),
        st.integers(0, 30).map(nearest_before_last),
    ),
)
DAYS_OF_WEEK = st.one_of(
    *EVERY_DAY,
    listed(
        number_terms(0, 7, WEEKDAY_NAMES).map(weekdays),
        NTH,
        WEEKDAY_SHOWN.map(last_weekday),
    ),
)
RULES = st.builds(
    Rule,
    minute=numbers(0, 59),
    hour=numbers(0, 23),
    day_of_month=DAYS_OF_MONTH,
    month=numbers(1, 12, MONTH_NAMES),
    day_of_week=DAYS_OF_WEEK,
)
ONE_TIME_A_DAY = st.builds(
    Rule,
    minute=st.just(Numbers("0", frozenset({0}))),
    hour=st.just(Numbers("9", frozenset({9}))),
    day_of_month=DAYS_OF_MONTH,
    month=st.one_of(st.just(Numbers("*", frozenset(range(1, 13)))), numbers(1, 12, MONTH_NAMES)),
    day_of_week=DAYS_OF_WEEK,
)
# Day fields both restricted by a star and rare months: what most often never matches.
RARE_RULES = st.builds(
    Rule,
    minute=st.just(Numbers("0", frozenset({0}))),
    hour=st.just(Numbers("9", frozenset({9}))),
    day_of_month=st.one_of(
        st.just(Field("*", lambda _day: True)),
        st.integers(27, 31).map(lambda step: Field(f"*/{step}", lambda day: day.day in (1, 1 + step))),
        st.integers(27, 30).map(before_last),
        st.integers(29, 31).map(nearest),
    ),
    month=st.sampled_from([2, 4, 6]).map(lambda month: Numbers(str(month), frozenset({month}))),
    day_of_week=st.one_of(st.just(Field("*", lambda _day: True)), NTH),
)
MOMENTS = st.datetimes(
    min_value=datetime.fromisoformat("1890-01-01"), max_value=datetime.fromisoformat("2120-01-01")
)


def compile_unless_impossible(expression: str) -> CronRule | None:
    """None where the expression is refused as a whole; that a field of it is refused is a failure."""
    try:
        return compile_cron(expression)
    except InvalidExpression as error:
        if error.part != "expression":
            raise
        return None


def compiled(rule: Rule) -> CronRule:
    found = compile_unless_impossible(rule.expression)
    assume(found is not None)
    assert found is not None
    return found


def first_by_scan(rule: Rule, after: datetime, *, days: int) -> datetime | None:
    """The first named time later than `after` among that many days from its own."""
    for number in range(days):
        day = after.date() + number * ONE_DAY
        if rule.matches(day):
            for at in rule.times():
                if datetime.combine(day, at) > after:
                    return datetime.combine(day, at)
    return None


@cache
def whole_calendar() -> tuple[date, ...]:
    """Twenty-eight years and the week that ends in the next: every shape of month, every turn of the year."""
    first, last = date(2000, 1, 1), date(2028, 1, 31)
    return tuple(first + number * ONE_DAY for number in range((last - first).days + 1))


@settings(max_examples=200, deadline=None)
@given(rule=RULES, after=MOMENTS)
def test_the_next_time_is_the_first_that_a_scan_finds(rule: Rule, after: datetime) -> None:
    found = compiled(rule).next(after)
    assert found is not None
    assert found > after
    assert rule.matches(found.date())
    assert found.time() in rule.times()
    by_scan = first_by_scan(rule, after, days=800)
    assert found == by_scan if by_scan is not None else found.date() >= after.date() + 800 * ONE_DAY


@settings(max_examples=100, deadline=None)
@given(rule=RULES, after=MOMENTS)
def test_every_named_minute_of_three_days_is_found_in_turn(rule: Rule, after: datetime) -> None:
    compiled_rule = compiled(rule)
    until = after + 3 * ONE_DAY
    minutes = [
        after.replace(second=0, microsecond=0) + timedelta(minutes=number) for number in range(3 * 1440 + 1)
    ]
    matching_days = {day for day in {at.date() for at in minutes} if rule.matches(day)}
    expected = [
        at
        for at in minutes
        if after < at <= until
        and at.date() in matching_days
        and at.hour in rule.hour.values
        and at.minute in rule.minute.values
    ]
    found = []
    at = compiled_rule.next(after)
    while at is not None and at <= until:
        found.append(at)
        at = compiled_rule.next(at)
    assert found == expected


@settings(max_examples=200, deadline=None)
@given(rule=RULES, moments=st.tuples(MOMENTS, MOMENTS))
def test_a_later_start_never_finds_an_earlier_time(rule: Rule, moments: tuple[datetime, datetime]) -> None:
    compiled_rule = compiled(rule)
    earlier, later = (compiled_rule.next(at) for at in sorted(moments))
    assert earlier is not None
    assert later is not None
    assert earlier <= later


@settings(max_examples=200, deadline=None)
@given(rule=st.one_of(RARE_RULES, ONE_TIME_A_DAY))
def test_a_rule_is_refused_where_no_date_of_the_calendar_matches(rule: Rule) -> None:
    matched = any(rule.matches(day) for day in whole_calendar())
    assert (compile_unless_impossible(rule.expression) is not None) == matched


@settings(max_examples=50, deadline=None)
@given(rule=ONE_TIME_A_DAY)
def test_the_coarsest_period_agrees_with_twenty_eight_years_of_dates(rule: Rule) -> None:
    period = compiled(rule).coarsest_period()
    named = [day for day in whole_calendar() if rule.matches(day)]
    months = [(day.year, day.month) for day in named]
    weeks = [day.isocalendar()[:2] for day in named]
    if len(set(months)) == len(named):
        assert period == "month"
    elif len(set(weeks)) == len(named):
        assert period == "week"
    else:
        assert period == "day"


def test_days_are_right_for_all_four_hundred_years_of_the_calendar() -> None:
    mondays, last_days = compile_cron("0 0 * * MON"), compile_cron("0 0 L * *")
    monday: datetime | None = datetime.fromisoformat("1900-01-01")
    end = datetime.fromisoformat("2300-01-01")
    while monday is not None and monday < end:
        following = mondays.next(monday)
        assert following == monday + 7 * ONE_DAY
        monday = following
    at = last_days.next(datetime.fromisoformat("1900-01-01"))
    while at is not None and at < end:
        assert at.day == monthrange(at.year, at.month)[1]
        following = last_days.next(at)
        assert following is not None
        assert timedelta(days=28) <= following - at <= timedelta(days=31)
        at = following


def cronsim_numbers(low: int, high: int, names: tuple[str, ...] = ()) -> st.SearchStrategy[str]:
    def same_for_cronsim(term: Numbers) -> bool:
        first, dash, rest = term.text.upper().partition("-")
        last, slash, _step = rest.partition("/")
        value = {name: str(number) for number, name in enumerate(names) if name}
        one_value = bool(dash and slash) and value.get(first, first) == value.get(last, last)
        return not one_value and not (dash and last == "SUN")

    return number_terms(low, high, names).filter(same_for_cronsim).map(lambda term: term.text)


def texts(*terms: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(st.just("*"), st.lists(st.one_of(*terms), min_size=1, max_size=3).map(",".join))


CRONSIM_EXPRESSIONS = st.tuples(
    texts(cronsim_numbers(0, 59)),
    texts(cronsim_numbers(0, 23)),
    texts(cronsim_numbers(1, 31), st.sampled_from(["L", "LW"])),
    texts(cronsim_numbers(1, 12, MONTH_NAMES)),
    texts(
        cronsim_numbers(0, 7, WEEKDAY_NAMES),
        NTH.map(lambda field: field.text),
        st.integers(0, 7).map(lambda day: f"{day}L"),
    ),
).map(" ".join)


@settings(max_examples=250, deadline=None)
@given(expression=CRONSIM_EXPRESSIONS, after=MOMENTS)
def test_cronsim_names_the_same_times(expression: str, after: datetime) -> None:
    try:
        by_cronsim = CronSim(expression, after)
        expected = [next(by_cronsim) for _ in range(5)]
    except (CronSimError, StopIteration):
        expected = []
    rule = compile_unless_impossible(expression)
    if rule is None:
        assert expected == []
        return
    found = []
    at: datetime | None = after
    for _ in range(5):
        assert at is not None
        at = rule.next(at)
        found.append(at)
    assert found == expected
