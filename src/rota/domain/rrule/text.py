"""The text of a recurrence set: its lines and rule parts, read strictly, refused by name, and written in one form.

RFC 5545, sections 3.3.10 and 3.8.5, with local times only: the zone is the schedule's. What the RFC forbids is refused
here, also where readers in the wild let it pass; what it leaves undefined is decided in `engine.py`.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from rota.domain.errors import InvalidExpression
from rota.domain.rrule.parts import Rule
from rota.domain.rrule.rule_text import format_rule, parse_rule

TEXT_BYTES_MAX = 64 * 1024
DATES_MAX = 10_000
FIRST_YEAR, LAST_YEAR = 1900, 9998

_STAMP = re.compile(r"(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})", re.ASCII)
_HINT = "give local date-times such as 20260110T090000"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrenceText:
    """The set as written."""

    dtstart: datetime
    rule: Rule | None
    rdates: tuple[datetime, ...]
    exdates: tuple[datetime, ...]


def parse_text(text: str) -> RecurrenceText:
    """Raises `InvalidExpression` naming the property or rule part."""
    if len(text.encode(errors="replace")) > TEXT_BYTES_MAX:
        raise InvalidExpression("RRULE", f"the text is longer than {TEXT_BYTES_MAX} bytes")
    starts: list[datetime] = []
    rules: list[str] = []
    dates: dict[str, list[datetime]] = {"RDATE": [], "EXDATE": []}
    for line in _lines(text):
        name, parameters, value = _property(line)
        match name:
            case "DTSTART":
                _refuse_parameters(name, parameters)
                starts.append(parse_stamp(name, value))
            case "RRULE":
                _refuse_parameters(name, parameters)
                rules.append(value)
            case "RDATE" | "EXDATE":
                _refuse_parameters(name, parameters)
                dates[name] += [parse_stamp(name, part) for part in value.split(",")]
            case "EXRULE":
                raise InvalidExpression("EXRULE", "it is not part of RFC 5545; list the dates in EXDATE")
            case _:
                raise InvalidExpression(
                    name[:40] or "line", "only DTSTART, RRULE, RDATE and EXDATE lines are read"
                )
    if len(starts) != 1:
        raise InvalidExpression("DTSTART", f"give one DTSTART line, not {len(starts)}; {_HINT}")
    if len(rules) > 1:
        raise InvalidExpression("RRULE", "several RRULE lines are not allowed; make several schedules")
    if not rules and not dates["RDATE"]:
        raise InvalidExpression("RRULE", "give an RRULE or RDATE line; for a single time use `at`")
    if sum(map(len, dates.values())) > DATES_MAX:
        raise InvalidExpression("RDATE", f"at most {DATES_MAX} dates are read")
    return RecurrenceText(
        dtstart=starts[0],
        rule=parse_rule(rules[0], dtstart=starts[0]) if rules else None,
        rdates=tuple(sorted(set(dates["RDATE"]))),
        exdates=tuple(sorted(set(dates["EXDATE"]))),
    )


def format_text(text: RecurrenceText, rule: Rule | None) -> str:
    """The one form of equal sets: `rule` without what DTSTART filled in."""
    lines = [f"DTSTART:{format_stamp(text.dtstart)}"]
    if rule is not None:
        lines.append(f"RRULE:{format_rule(rule)}")
    for name, dates in (("RDATE", text.rdates), ("EXDATE", text.exdates)):
        if dates:
            lines.append(f"{name}:{','.join(map(format_stamp, dates))}")
    return "\n".join(lines)


def parse_stamp(part: str, text: str) -> datetime:
    """A local date-time in basic form."""
    match = _STAMP.fullmatch(text)
    if match is None:
        if text.endswith("Z"):
            raise InvalidExpression(
                part, f"times are local, without Z; give the zone in `timezone` ({text[:40]})"
            )
        raise InvalidExpression(part, f"{text[:40]!r} is not one; {_HINT}")
    return make_local(part, match)


def make_local(part: str, match: re.Match[str]) -> datetime:
    try:
        year, month, day, hour, minute, second = map(int, match.groups())
        local = datetime(year, month, day, hour, minute, second)
    except ValueError:
        raise InvalidExpression(part, f"{match.group()} is no date and time of the calendar") from None
    if not FIRST_YEAR <= local.year <= LAST_YEAR:
        raise InvalidExpression(part, f"the year {local.year} lies outside {FIRST_YEAR} to {LAST_YEAR}")
    return local


def format_stamp(local: datetime) -> str:
    return f"{local:%Y%m%dT%H%M%S}" + ("Z" if local.tzinfo is UTC else "")


def _lines(text: str) -> list[str]:
    """Unfolded (section 3.1): a line that begins with a blank goes on with the one before."""
    unfolded = re.sub(r"\r?\n[ \t]", "", text)
    return [line.strip() for line in re.split(r"\r?\n", unfolded) if line.strip()]


def _property(line: str) -> tuple[str, str, str]:
    head, colon, value = line.partition(":")
    if not colon:
        raise InvalidExpression(head[:40], "a line is NAME:VALUE, such as RRULE:FREQ=DAILY")
    name, _, parameters = head.partition(";")
    return name.strip().upper(), parameters, value.strip()


def _refuse_parameters(name: str, parameters: str) -> None:
    if "TZID" in parameters.upper():
        raise InvalidExpression(name, f"{name} is local, without TZID; give the zone in `timezone`")
    if parameters and parameters.upper() != "VALUE=DATE-TIME":
        raise InvalidExpression(name, f"the parameter {parameters[:40]} is not read; {_HINT}")
