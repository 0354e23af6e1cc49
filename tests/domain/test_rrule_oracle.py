"""Generated rules against two oracles: brute force, which knows all of them, and python-dateutil, which is another's.

python-dateutil 4.0.0 differs from RFC 5545 and from here, so rules for it are generated without:
- BYDAY with and without ordinals mixed: `BYDAY=3TH,MO` means both at once there.
- BYWEEKNO of 52 and 53 from either end: days of the neighbour year's week are missing around New Year.
- BYWEEKNO without a part about days: every day of the week is meant there, DTSTART's weekday here.
- BYSETPOS with WEEKLY: the first week is counted from DTSTART on, not whole.
- Rules without a time: it searches for ever. It is asked for as many times as are known.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice, takewhile

from dateutil.rrule import rrulestr
from hypothesis import assume, example, given, settings

from rota.domain.errors import InvalidExpression
from rota.domain.rrule import RRuleSet, compile_rrule
from tests.domain.rrule_rules import GeneratedRule, rules, times_by_brute_force

BEGINNING = datetime(1, 1, 1)


def walk(compiled: RRuleSet, *, after: datetime = BEGINNING) -> Iterator[datetime]:
    found = compiled.next(after)
    while found is not None:
        yield found
        found = compiled.next(found)


def compiled_or_none(text: str) -> RRuleSet | None:
    try:
        return compile_rrule(text)
    except InvalidExpression:
        return None


def rule_of(dtstart: str, frequency: str, by_day: str = "", **numbers: tuple[int, ...]) -> GeneratedRule:
    """An example by hand. Weeks begin on Monday."""
    return GeneratedRule(
        dtstart=datetime.fromisoformat(dtstart),
        frequency=frequency,
        interval=1,
        week_start="MO",
        numbers=numbers,
        by_day=tuple((int(name[:-2] or 0), name[-2:]) for name in by_day.split(",") if name),
    )


@settings(max_examples=150, deadline=None)
@given(rules())
@example(rule_of("2025-12-01T09:00", "YEARLY", "MO,WE", BYWEEKNO=(-53, -52)))
@example(rule_of("2019-06-01T09:00", "YEARLY", "MO,TU", BYWEEKNO=(-53,)))
@example(rule_of("2021-06-01T09:00", "YEARLY", "SU,WE", BYWEEKNO=(52,)))
@example(rule_of("2019-06-05T09:00", "YEARLY", BYWEEKNO=(1, 53)))
@example(rule_of("2024-01-01T09:00", "MONTHLY", "3TH,MO"))
@example(rule_of("2024-01-01T09:00", "YEARLY", "2TU,-1FR", BYMONTH=(3, 10)))
@example(rule_of("2024-01-03T09:00", "WEEKLY", "MO,WE,FR", BYSETPOS=(1, -1)))
@example(rule_of("2024-01-03T09:00", "WEEKLY", "MO,WE,SU", BYSETPOS=(1,), BYMONTH=(2, 3)))
def test_the_times_are_those_of_brute_force(rule: GeneratedRule) -> None:
    compiled = compiled_or_none(rule.text)
    expected = times_by_brute_force(rule)
    if compiled is None:
        assert expected == []
        return
    assert list(takewhile(lambda local: local < rule.window_until, walk(compiled))) == expected


@settings(max_examples=150, deadline=None)
@given(rules())
def test_the_times_are_those_of_dateutil(rule: GeneratedRule) -> None:
    assume(not rule.has_mixed_ordinals)
    weeks = rule.numbers.get("BYWEEKNO", ())
    assume(not weeks or (rule.names_days and max(map(abs, weeks)) < 52))
    assume(not (rule.frequency == "WEEKLY" and "BYSETPOS" in rule.numbers))
    compiled = compiled_or_none(rule.text)
    assume(compiled is not None)
    assert compiled is not None
    # It goes through every slot: some years of them are enough.
    reach = rule.dtstart + timedelta(days={"HOURLY": 600, "MINUTELY": 20}.get(rule.frequency, 12_000))
    found = [*islice(takewhile(lambda local: local < reach, walk(compiled)), 40)]
    assert [*islice(rrulestr(rule.text), len(found))] == found


@settings(max_examples=60, deadline=None)
@given(rules())
def test_a_seek_from_anywhere_continues_the_walk(rule: GeneratedRule) -> None:
    compiled = compiled_or_none(rule.text)
    assume(compiled is not None)
    assert compiled is not None
    times = [*islice(walk(compiled), 30)]
    assert times == sorted(set(times))
    for earlier, later in zip([rule.dtstart - timedelta(seconds=1), *times], times, strict=False):
        for after in (earlier, earlier + timedelta(microseconds=1), later - timedelta(seconds=1)):
            assert compiled.next(after) == later
    assert compiled.next(BEGINNING) == times[0]


@settings(max_examples=60, deadline=None)
@given(rules())
def test_the_text_of_a_set_reads_back_to_the_same_text_and_times(rule: GeneratedRule) -> None:
    compiled = compiled_or_none(rule.text)
    assume(compiled is not None)
    assert compiled is not None
    again = compile_rrule(compiled.text)
    assert again.text == compiled.text
    assert [*islice(walk(again), 10)] == [*islice(walk(compiled), 10)]
    assert compile_rrule(rule.text.lower().replace("\n", "\r\n").replace(";", ";\r\n ")).text == compiled.text


@settings(max_examples=60, deadline=None)
@given(rules())
def test_dates_are_added_and_removed_after_counting(rule: GeneratedRule) -> None:
    compiled = compiled_or_none(rule.text)
    assume(compiled is not None)
    assert compiled is not None
    times = [*islice(walk(compiled), 6)]
    assume(len(times) == 6)
    added = times[2] + timedelta(seconds=1)
    dates = f"\nRDATE:{added:%Y%m%dT%H%M%S}\nEXDATE:{times[1]:%Y%m%dT%H%M%S},{times[3]:%Y%m%dT%H%M%S}"
    expected = sorted({times[0], times[2], added, times[4]} - {times[1], times[3]})
    assert [*walk(compile_rrule(f"{rule.text};COUNT=5{dates}"))] == expected
    until = f"UNTIL={times[4]:%Y%m%dT%H%M%S}"
    assert [*walk(compile_rrule(f"{rule.text};{until}{dates}"))] == expected
