"""A compiled recurrence set: RRULE and RDATE, without EXDATE, as one stream of local times.

Decided where RFC 5545 leaves it open: DTSTART is an occurrence only if the rule yields it (without an RRULE it always
is one); COUNT counts the rule's times before EXDATE takes some away; UNTIL bounds the rule, not RDATE.
"""

from bisect import bisect_right
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property

from rota.domain.errors import InvalidExpression
from rota.domain.rrule.parts import BEGINNING, Frequency, Rule
from rota.domain.rrule.periods import engine_of
from rota.domain.rrule.rule_text import fill_in
from rota.domain.rrule.span import CoarsestPeriod, coarsest_period
from rota.domain.rrule.text import RecurrenceText, format_text, parse_text

UNTIL_REACH = timedelta(days=2)
"""No zone's local time is further from UTC than this: a generous bound that keeps every time UNTIL may allow."""

_INSTANT = timedelta(microseconds=1)


class RRuleSet:
    """A recurrence set over naive local times. Immutable and stateless; threads may share it.

    `until` is the instant of `UNTIL=...Z` (aware UTC, inclusive), else None. Only who knows the zone can apply it: the
    set goes on for two days past it, and its user drops the times that resolve later and are not `is_rdate`.
    """

    def __init__(self, text: RecurrenceText) -> None:
        rule = text.rule
        self.text = format_text(text, rule)
        self.dtstart = text.dtstart
        self.until = rule.until if rule is not None and rule.until is not None and rule.until.tzinfo else None
        self.rule = None if rule is None else fill_in(rule)
        self._rdates = text.rdates if rule is not None else tuple(sorted({text.dtstart, *text.rdates}))
        self._rdate_set = frozenset(self._rdates)
        self._exdates = frozenset(text.exdates)
        self._engine = None if self.rule is None else engine_of(self.rule)
        self._last = None if self.rule is None else self._last_of_rule(self.rule)

    def next(self, after: datetime) -> datetime | None:
        """The first time strictly later than `after`; None: no more, ever. Both naive."""
        while True:
            found = self._next_of_rule(after)
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
        rule = self.rule
        return (
            rule is not None and rule.frequency in {Frequency.HOURLY, Frequency.MINUTELY} and not rule.by_hour
        )

    def coarsest_period(self) -> CoarsestPeriod:
        """The coarsest of month, ISO week and day in which the set has at most one time; else `instant`.

        Never coarser than true. Finer than true only for rules whose proof would need more than 400 years.
        """
        return self._coarsest_period

    @cached_property
    def _coarsest_period(self) -> CoarsestPeriod:
        return coarsest_period(
            self.rule, self.next, settled_from=max(self.dtstart, *self._rdates, self.dtstart)
        )

    def _next_of_rule(self, after: datetime) -> datetime | None:
        if self._engine is None or (self._last is not None and after >= self._last):
            return None
        found = self._engine.next(max(after, self.dtstart - _INSTANT))
        return None if found is None or (self._last is not None and found > self._last) else found

    def _last_of_rule(self, rule: Rule) -> datetime | None:
        """The local time with which the rule ends at the latest: by UNTIL, or by counting, once."""
        if rule.until is not None:
            return rule.until if rule.until.tzinfo is None else rule.until.replace(tzinfo=None) + UNTIL_REACH
        if rule.count is None:
            return None
        last = self.dtstart - _INSTANT
        self._last = None
        for _ in range(rule.count):
            found = self._next_of_rule(last)
            if found is None:
                break
            last = found
        return last


def compile_rrule(text: str) -> RRuleSet:
    """The compiled set. Raises `InvalidExpression` naming the property or rule part, also where no time is ever met."""
    parsed = parse_text(text)
    if parsed.rule is not None:
        _refuse_impossible(fill_in(replace(parsed.rule, count=None)))
    compiled = RRuleSet(parsed)
    if compiled.next(BEGINNING) is None:
        raise InvalidExpression("RRULE", "no date and time of the calendar matches it")
    return compiled


def _refuse_impossible(rule: Rule) -> None:
    """What a look at the parts tells, so that no search goes to the end of the calendar in vain."""
    engine = engine_of(rule)
    if not engine.is_possible:
        raise InvalidExpression("RRULE", "no date and time of the calendar matches it")
    if rule.by_set_position and min(map(abs, rule.by_set_position)) > engine.size_max:
        raise InvalidExpression(
            "BYSETPOS", f"a {_period_name(rule)} has at most {engine.size_max} times to choose from"
        )


def _period_name(rule: Rule) -> str:
    names = {"DAILY": "day", "HOURLY": "hour", "MINUTELY": "minute", "WEEKLY": "week", "MONTHLY": "month"}
    return names.get(rule.frequency, "year")
