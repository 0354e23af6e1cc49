"""A compiled recurrence set: RRULE and RDATE, without EXDATE, as one stream of local times.

Decided where RFC 5545 leaves it open: DTSTART is an occurrence only if the rule yields it (without an RRULE it always
is one); COUNT counts the rule's times before EXDATE takes some away; UNTIL bounds the rule, not RDATE.
"""

from bisect import bisect_right
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property
from math import gcd

from rota.domain.errors import InvalidExpression
from rota.domain.rrule.parts import BEGINNING, INSTANT, LAST_YEAR, PERIODS_IN_CYCLE, Frequency, Rule
from rota.domain.rrule.periods import Calendar
from rota.domain.rrule.rule_text import fill_in
from rota.domain.rrule.slots import Slots
from rota.domain.rrule.span import CoarsestPeriod, coarsest_period
from rota.domain.rrule.text import RecurrenceText, format_text, parse_text

UNTIL_REACH = timedelta(days=2)
"""No zone's local time is further from UTC than this: a generous bound that keeps every time UNTIL may allow."""

_END = datetime(LAST_YEAR, 12, 31, 23, 59, 59)


class RRuleSet:
    """A recurrence set over naive local times. What it computes once never changes, so threads may share it.

    `until` is the instant of `UNTIL=...Z` (aware UTC, inclusive), else None. Only who knows the zone can apply it: the
    set goes on for two days past it, and its user drops the times that resolve later and are not `is_rdate`.
    """

    def __init__(self, text: RecurrenceText) -> None:
        rule = text.rule
        self.text = format_text(text)
        self.dtstart = text.dtstart
        self.until = rule.until if rule is not None and rule.until is not None and rule.until.tzinfo else None
        self._rule = None if rule is None else fill_in(rule)
        self._rdates = text.rdates if rule is not None else tuple(sorted({text.dtstart, *text.rdates}))
        self._rdate_set = frozenset(self._rdates)
        self._exdates = frozenset(text.exdates)
        self._before_start = text.dtstart - INSTANT
        self._engine = None if self._rule is None else engine_of(self._rule)
        self._last = _END
        if self._rule is not None:
            self._last = self._last_of_rule(self._rule)

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

    @property
    def covers_every_hour(self) -> bool:
        """FREQ=HOURLY or MINUTELY without BYHOUR."""
        rule = self._rule
        return (
            rule is not None and rule.frequency in {Frequency.HOURLY, Frequency.MINUTELY} and not rule.by_hour
        )

    def coarsest_period(self) -> CoarsestPeriod:
        """The coarsest of month, ISO week and day in which the set has at most one time; else `instant`.

        Never coarser than true, but finer for some unusual rules: see `span.py`.
        """
        return self._coarsest_period

    @cached_property
    def _coarsest_period(self) -> CoarsestPeriod:
        settled_from = max(self.dtstart, *self._rdates, *self._exdates, self.dtstart)
        return coarsest_period(self._rule, self.next, settled_from=settled_from)

    def has_times_of_rule(self) -> bool:
        """The rule has a time before UNTIL, whether EXDATE takes it away or not."""
        return self._next_of_rule(BEGINNING) is not None

    def _next_of_rule(self, after: datetime) -> datetime | None:
        if self._engine is None or after >= self._last:
            return None
        found = self._engine.next(after if after >= self._before_start else self._before_start)
        return None if found is None or found > self._last else found

    def _last_of_rule(self, rule: Rule) -> datetime:
        """The local time with which the rule ends at the latest: by UNTIL, or by counting, once."""
        if rule.until is not None:
            until = rule.until.replace(tzinfo=None)
            reach = UNTIL_REACH if rule.until.tzinfo else timedelta(0)
            return min(until, _END - reach) + reach
        if rule.count is None:
            return _END
        last = self._before_start
        for _ in range(rule.count):
            found = self._next_of_rule(last)
            if found is None:
                break
            last = found
        return last


def engine_of(rule: Rule) -> Calendar | Slots:
    """What tells the times of a rule whose days are filled in, without COUNT and UNTIL."""
    if rule.frequency in {Frequency.DAILY, Frequency.HOURLY, Frequency.MINUTELY}:
        return Slots(rule)
    return Calendar(rule)


def compile_rrule(text: str) -> RRuleSet:
    """The compiled set. Raises `InvalidExpression` naming the property or rule part, also where no time is ever met."""
    parsed = parse_text(text)
    if parsed.rule is not None:
        _refuse_impossible(fill_in(parsed.rule))
    compiled = RRuleSet(parsed)
    if compiled.next(BEGINNING) is None:
        if compiled.has_times_of_rule() or parsed.rdates or parsed.rule is None:
            raise InvalidExpression("EXDATE", "it takes every time of the set away; leave one")
        raise InvalidExpression("UNTIL", "it lies before the first time of the rule")
    return compiled


def _refuse_impossible(rule: Rule) -> None:
    if _is_possible(rule):
        return
    if rule.by_set_position and _is_possible(replace(rule, by_set_position=())):
        raise InvalidExpression(
            "BYSETPOS", f"no period of FREQ={rule.frequency} has so many times to choose from"
        )
    raise InvalidExpression("RRULE", "no date and time of the calendar from DTSTART on matches it")


def _is_possible(rule: Rule) -> bool:
    """Whether the rule has a time at all, told without a search through the whole calendar in vain.

    What the interval has in common with the cycle of the calendar decides where in the cycle the rule can have times;
    a rule with that as its interval sees every such place within one cycle. If it has a time, the rule itself has one
    sooner or later; only if that is rare, the calendar may end before.
    """
    common = gcd(rule.interval, PERIODS_IN_CYCLE[rule.frequency])
    before = rule.dtstart - INSTANT
    return all(
        engine_of(replace(rule, interval=interval)).next(before) is not None
        for interval in sorted({common, rule.interval})
    )
