"""A compiled recurrence set: RRULE and RDATE, without EXDATE, as one stream of local times.

Decided where RFC 5545 leaves it open: DTSTART is an occurrence only if the rule yields it (without an RRULE it always
is one); COUNT counts the rule's times before EXDATE takes some away; UNTIL bounds the rule, not RDATE; BYSETPOS counts
in the whole period, also where DTSTART lies within it; BYWEEKNO without a day part means DTSTART's weekday.
"""

from bisect import bisect_right
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property

from rota.domain.errors import InvalidExpression
from rota.domain.rrule.parts import BEGINNING, INSTANT, LAST_YEAR, Frequency, Rule
from rota.domain.rrule.periods import PeriodTimes
from rota.domain.rrule.rule_text import fill_in
from rota.domain.rrule.span import CoarsestPeriod, coarsest_period
from rota.domain.rrule.table import TableTimes
from rota.domain.rrule.text import RecurrenceText, format_text, parse_text

UNTIL_REACH = timedelta(days=2)
"""No zone's local time is further from UTC than this: a generous bound that keeps every time UNTIL may allow."""

_END = datetime(LAST_YEAR, 12, 31, 23, 59, 59)


class RRuleSet:
    """A recurrence set over naive local times. What it computes once never changes, so threads may share it.

    `until` is the instant of `UNTIL=...Z` (aware UTC, inclusive), else None. Only who knows the zone can apply it: the
    set goes on for two days past it, and its user drops the times that resolve later and are not `is_rdate`.
    """

    def __init__(
        self, text: RecurrenceText, rule: Rule | None, times: TableTimes | PeriodTimes | None
    ) -> None:
        self.text = format_text(text)
        self.dtstart = text.dtstart
        self.until = rule.until if rule is not None and rule.until is not None and rule.until.tzinfo else None
        self._rule = rule
        self._rule_times = times
        self._rdates = text.rdates if rule is not None else tuple(sorted({text.dtstart, *text.rdates}))
        self._rdate_set = frozenset(self._rdates)
        self._exdates = frozenset(text.exdates)
        self._before_start = text.dtstart - INSTANT
        self._last = _END
        self._last = self._last_of_rule(rule)

    def next(self, after: datetime) -> datetime | None:
        """The first time strictly later than `after`; None: no more, ever. Both naive."""
        while True:
            found = self._next_of_rule(after)
            if self._rdates:
                place = bisect_right(self._rdates, after)
                if place < len(self._rdates) and (found is None or self._rdates[place] < found):
                    found = self._rdates[place]
            if found is None or found not in self._exdates:
                return found
            after = found

    def is_rdate(self, local: datetime) -> bool:
        """The time stands in RDATE (or is the DTSTART of a set without RRULE), so UNTIL does not bound it."""
        return local in self._rdate_set

    @cached_property
    def covers_every_hour(self) -> bool:
        """The rule has a time in every hour of the days it runs on, by its FREQ and not by a list of hours.

        So for HOURLY with the interval 1, and for MINUTELY whose interval and BYMINUTE meet every hour of every day
        (15 and 7 do, 90 does not, 7 with BYMINUTE=0 does not); never beside BYHOUR. Parts about days play no role.
        """
        rule, times = self._rule, self._rule_times
        return (
            rule is not None
            and rule.frequency in {Frequency.HOURLY, Frequency.MINUTELY}
            and not rule.by_hour
            and isinstance(times, TableTimes)
            and times.fills_every_hour
        )

    def coarsest_period(self) -> CoarsestPeriod:
        """The coarsest of month, ISO week and day in which the set has at most one time; else `instant`.

        Never coarser than true. It may be finer where the calendar ends before two times meet, where COUNT or UNTIL
        ends a set of more than 15,000 times before they do, or EXDATE takes one of each two away.
        """
        return self._coarsest_period

    @cached_property
    def _coarsest_period(self) -> CoarsestPeriod:
        rule = self._rule
        is_endless = rule is not None and rule.count is None and rule.until is None
        return coarsest_period(self.next, self._rule_times, rdates=self._rdates, is_endless=is_endless)

    def has_times_of_rule(self) -> bool:
        """The rule has a time before UNTIL, whether EXDATE takes it away or not."""
        return self._next_of_rule(BEGINNING) is not None

    def _next_of_rule(self, after: datetime) -> datetime | None:
        if self._rule_times is None or after >= self._last:
            return None
        found = self._rule_times.next(max(after, self._before_start))
        return None if found is None or found > self._last else found

    def _last_of_rule(self, rule: Rule | None) -> datetime:
        """The local time with which the rule ends at the latest: by UNTIL, or by counting, once."""
        if rule is not None and rule.until is not None:
            until = rule.until.replace(tzinfo=None)
            reach = UNTIL_REACH if rule.until.tzinfo else timedelta(0)
            return min(until, _END - reach) + reach
        if rule is None or rule.count is None:
            return _END
        last = self._before_start
        for _ in range(rule.count):
            found = self._next_of_rule(last)
            if found is None:
                break
            last = found
        return last


def times_of(rule: Rule) -> TableTimes | PeriodTimes:
    """The times of a rule whose days are filled in, from DTSTART's period on, without COUNT and UNTIL."""
    is_table = rule.frequency not in {Frequency.YEARLY, Frequency.MONTHLY}
    if rule.frequency is Frequency.WEEKLY and rule.by_month and rule.by_set_position:
        # Which days of a week BYMONTH allows differs from week to week, and with it what stands at the positions.
        is_table = False
    return TableTimes(rule) if is_table else PeriodTimes(rule)


def compile_rrule(text: str) -> RRuleSet:
    """The compiled set. Raises `InvalidExpression` naming the property or rule part, also where no time is ever met."""
    parsed = parse_text(text)
    rule = None if parsed.rule is None else fill_in(parsed.rule)
    times = None if rule is None else _possible_times_of(rule)
    compiled = RRuleSet(parsed, rule, times)
    if compiled.next(BEGINNING) is None:
        if rule is None or parsed.rdates or compiled.has_times_of_rule():
            raise InvalidExpression("EXDATE", "it takes every time of the set away; leave one")
        raise InvalidExpression("UNTIL", "it lies before the first time of the rule; give a later one")
    return compiled


def _possible_times_of(rule: Rule) -> TableTimes | PeriodTimes:
    times = times_of(rule)
    if _has_a_time(times, rule):
        return times
    freely = replace(rule, by_set_position=())
    if rule.by_set_position and _has_a_time(times_of(freely), freely):
        raise InvalidExpression(
            "BYSETPOS", f"no period of FREQ={rule.frequency} has so many times to choose from"
        )
    raise InvalidExpression("RRULE", "no date and time of the calendar from DTSTART on matches it")


def _has_a_time(times: TableTimes | PeriodTimes, rule: Rule) -> bool:
    return times.is_possible and times.next(rule.dtstart - INSTANT) is not None
