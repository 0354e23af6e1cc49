"""Cron expressions that are refused: by which field, with which words, and what only looks impossible."""

from datetime import datetime

import pytest

from rota.domain.cron import compile_cron
from rota.domain.errors import InvalidExpression


def refused(expression: str) -> InvalidExpression:
    with pytest.raises(InvalidExpression) as caught:
        compile_cron(expression)
    return caught.value


@pytest.mark.parametrize(
    "expression",
    [
        "0 0 30 2 *",
        "0 12 31 4 *",
        "0 0 31 2,4,6 *",
        "0 0 31 2,4,6,9,11 ?",
        "0 0 30-31 FEB *",
        "0 0 L-30 2 *",
        "0 0 L-30 4,6 *",
        "0 0 31W 4 *",
        "0 0 30W 2 *",
        "0 0 */31 * SUN#2",
        "0 0 */30 2 MON#4",
        "0 0 */5 2 SAT#5,SUN#5,MON#5,TUE#5,WED#5,THU#5,FRI#5",
    ],
)
def test_an_expression_that_no_date_matches_is_refused(expression: str) -> None:
    error = refused(expression)
    assert error.part == "expression"
    assert error.problem.startswith("No date ever has day of month ")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0 0 30 2 MON", "2025-02-03"),  # either is enough
        ("0 0 30,31 2,4 *", "2025-04-30"),
        ("0 0 L-29 2,4 *", "2025-04-01"),
        ("0 0 */31 * SUN#1", "2025-06-01"),
        ("0 0 */28 4 MONL", "2030-04-29"),
        ("0 0 */28 2 SAT#5", "2048-02-29"),
    ],
)
def test_an_expression_that_some_date_matches_is_accepted(expression: str, expected: str) -> None:
    found = compile_cron(expression).next(datetime.fromisoformat("2025-01-01T12:00"))
    assert found == datetime.fromisoformat(expected)


@pytest.mark.parametrize(
    ("expression", "part", "words"),
    [
        ("", "expression", "It has 0 fields"),
        (" \t ", "expression", "It has 0 fields"),
        ("5", "expression", "It has 1 field;"),
        ("0 9 * *", "expression", "write five: minute, hour, day of month, month and day of week"),
        ("0 0 9 * * *", "expression", "there are no seconds and no years"),
        ("0 0 9 ? * MON-FRI 2026", "expression", "there are no seconds and no years"),
        ("* * * * * * * *", "expression", "It has 8 fields"),
        ("0 9 * * *\n0 10 * * *", "expression", "It has 10 fields"),
        ("CRON_TZ=Asia/Tokyo 0 6 * * ?", "expression", "give the zone as `timezone`"),
        ("0," * 127 + "0 * * * *", "expression", "write at most 256"),
        ("@reboot", "expression", "@reboot is no time"),
        ("@every 5m", "expression", "give the recurrence as `every`"),
        ("@fortnightly", "expression", "write one of @yearly"),
        ("@daily 5", "expression", "'@daily 5' is not known"),
        ("\u0665 9 * * *", "expression", "'\\u0665'"),  # ARABIC-INDIC DIGIT FIVE, which int() takes
        ("\u00b2 9 * * *", "expression", "'\\xb2'"),  # SUPERSCRIPT TWO, which str.isdigit() takes
        ("0\u00a09 * * *", "expression", "'\\xa0'"),
        ("0 9 * \u017fep *", "expression", "'\\u017f'"),  # LATIN SMALL LETTER LONG S, upper case S
        ("60 * * * *", "minute", "60 is out of range; write 0 to 59"),
        ("-1 * * * *", "minute", "'-1' is not understood"),
        ("1.5 * * * *", "minute", "'1.5' is not understood"),
        ("1_0 * * * *", "minute", "'1_0' is not understood"),
        ("+5 * * * *", "minute", "'+5' is not understood"),
        ("0x1 * * * *", "minute", "'0X1' is not understood"),
        ("0\x00 * * * *", "minute", "'0\\x00' is not understood"),
        ("0\x0b9 * * * *", "minute", "is not understood"),
        ("9" * 100 + " * * * *", "minute", "has 100 digits"),
        ("*/" + "9" * 100 + " * * * *", "minute", "has 100 digits"),
        ("*/0 * * * *", "minute", "has the step 0"),
        ("5/0 * * * *", "minute", "has the step 0"),
        ("*/ * * * *", "minute", "is not understood"),
        ("*/-5 * * * *", "minute", "is not understood"),
        ("*/5/2 * * * *", "minute", "is not understood"),
        ("*-5 * * * *", "minute", "is not understood"),
        ("1- * * * *", "minute", "is not understood"),
        ("1-2-3 * * * *", "minute", "is not understood"),
        ("1,,2 * * * *", "minute", "surplus comma"),
        (", * * * *", "minute", "surplus comma"),
        ("? * * * *", "minute", "only in the day fields"),
        ("L * * * *", "minute", "'L' is not understood"),
        ("H * * * *", "minute", "'H' is not understood"),
        ("50-10 * * * *", "minute", "write 50-59,0-10"),
        ("59-0 * * * *", "minute", "write 59,0"),
        ("0 24 * * *", "hour", "24 is out of range; write 0 to 23"),
        ("0 22-2 * * *", "hour", "'22-2' runs backwards; write 22-23,0-2"),
        ("0 22-4/3 * * *", "hour", "write 22,1,4"),
        ("0 MON * * *", "hour", "'MON' is not understood"),
        ("0 0 0 * *", "day of month", "0 is out of range; write 1 to 31"),
        ("0 0 32 * *", "day of month", "32 is out of range"),
        ("0 0 25-5 * *", "day of month", "write 25-31,1-5"),
        ("0 0 L-31 * *", "day of month", "after L- write 0 to 30"),
        ("0 0 L-" + "1" * 20 + " * *", "day of month", "has 20 digits"),
        ("0 0 L- * *", "day of month", "the last day is L"),
        ("0 0 L/2 * *", "day of month", "neither takes a range or step"),
        ("0 0 1-L * *", "day of month", "neither takes a range or step"),
        ("0 0 W * *", "day of month", "W takes one day"),
        ("0 0 WL * *", "day of month", "W takes one day"),
        ("0 0 W15 * *", "day of month", "W takes one day"),
        ("0 0 1-5W * *", "day of month", "W takes one day"),
        ("0 0 *W * *", "day of month", "W takes one day"),
        ("0 0 32W * *", "day of month", "32 is out of range"),
        ("0 0 0W * *", "day of month", "0 is out of range"),
        ("0 0 1#2 * *", "day of month", "'1#2' is not understood"),
        ("0 0 ?,1 * *", "day of month", "? stands alone"),
        ("0 0 ?/2 * *", "day of month", "? stands alone"),
        ("0 0 * 0 *", "month", "0 is out of range; write 1 to 12"),
        ("0 0 * 13 *", "month", "13 is out of range"),
        ("0 0 * JANUARY *", "month", "write 1 to 12 or JAN to DEC"),
        ("0 0 * NOV-FEB *", "month", "write 11-12,1-2"),
        ("0 0 * ? *", "month", "write * here"),
        ("0 0 * * 8", "day of week", "8 is out of range; write 0 to 7"),
        ("0 0 * * FRI-MON", "day of week", "'FRI-MON' runs backwards; write 5-7,1"),
        ("0 0 * * 6-0", "day of week", "write 6-7"),
        ("0 0 * * 6-2", "day of week", "write 6-7,1-2"),
        ("0 0 * * 7-0", "day of week", "write 7."),
        ("0 0 * * FRI-TUE/2", "day of week", "write 5,7,2"),
        ("0 0 * * MONDAY", "day of week", "write 0 to 7 or SUN to SAT"),
        ("0 0 * * JAN", "day of week", "'JAN' is not understood"),
        ("0 0 * * L", "day of week", "L needs a day: write FRIL or 5L"),
        ("0 0 * * 8L", "day of week", "8 is out of range"),
        ("0 0 * * XYZL", "day of week", "'XYZ' is not understood"),
        ("0 0 * * 1-5L", "day of week", "'1-5L' is not understood"),
        ("0 0 * * 1#0", "day of week", "after # write 1 to 5"),
        ("0 0 * * 1#6", "day of week", "after # write 1 to 5"),
        ("0 0 * * 8#1", "day of week", "8 is out of range"),
        ("0 0 * * FRI#L", "day of week", "# takes one day and a number"),
        ("0 0 * * 1-5#2", "day of week", "# takes one day and a number"),
        ("0 0 * * #2", "day of week", "# takes one day and a number"),
        ("0 0 * * 15W", "day of week", "'15W' is not understood"),
    ],
)
def test_a_refusal_names_the_field_and_says_what_to_write(expression: str, part: str, words: str) -> None:
    error = refused(expression)
    assert error.part == part
    assert words in error.problem
    assert len(str(error)) < 400


@pytest.mark.parametrize(
    ("wrapping", "suggested"),
    [
        ("0 22-2 * * *", "0 22-23,0-2 * * *"),
        ("0 0 * * FRI-MON", "0 0 * * 5-7,1"),
        ("0 0 * * 6-0", "0 0 * * 6-7"),
        ("0 0 * NOV-FEB *", "0 0 * 11-12,1-2 *"),
    ],
)
def test_what_a_refused_wrapping_range_suggests_is_accepted(wrapping: str, suggested: str) -> None:
    problem = refused(wrapping).problem
    assert any(field in problem for field in suggested.split() if field not in wrapping.split())
    compile_cron(suggested)
