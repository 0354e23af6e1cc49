"""The text of a recurrence set: its lines and rule parts, read strictly, refused by name, and written in one form.

RFC 5545, sections 3.3.10 and 3.8.5, with local times only: the zone is the schedule's. What the RFC forbids is refused
here, also where readers in the wild let it pass; what it leaves undefined is decided in `engine.py`.
"""

import re
from dataclasses import dataclass
from datetime import datetime

from rota.domain.errors import InvalidExpression
from rota.domain.rrule.parts import LAST_YEAR, Rule
from rota.domain.rrule.rule_text import BLANKS, clean_name, format_rule, parse_rule

TEXT_BYTES_MAX = 64 * 1024
FIRST_YEAR = 1900

_STAMP = re.compile(r"(\d{4})(\d{2})(\d{2})[Tt](\d{2})(\d{2})(\d{2})", re.ASCII)
_DATE_TIME = re.compile("VALUE=DATE-TIME", re.ASCII | re.IGNORECASE)
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
                starts.append(_parse_stamp(name, value))
            case "RRULE":
                _refuse_parameters(name, parameters)
                rules.append(value)
            case "RDATE" | "EXDATE":
                _refuse_parameters(name, parameters)
                dates[name] += [_parse_stamp(name, part) for part in value.split(",")]
            case "EXRULE":
                raise InvalidExpression("EXRULE", "it is not part of RFC 5545; list the dates in EXDATE")
            case _:
                raise InvalidExpression(name, "only DTSTART, RRULE, RDATE and EXDATE lines are read")
    if len(starts) != 1:
        raise InvalidExpression("DTSTART", f"give one DTSTART line, not {len(starts)}; {_HINT}")
    if len(rules) > 1:
        raise InvalidExpression("RRULE", "several RRULE lines are not allowed; make several schedules")
    if not rules and not dates["RDATE"]:
        raise InvalidExpression("RRULE", "give an RRULE or RDATE line; for a single time use `at`")
    return RecurrenceText(
        dtstart=starts[0],
        rule=parse_rule(rules[0], dtstart=starts[0]) if rules else None,
        rdates=tuple(sorted(set(dates["RDATE"]))),
        exdates=tuple(sorted(set(dates["EXDATE"]))),
    )


def format_text(text: RecurrenceText) -> str:
    """The one form of equal sets, without what DTSTART fills in."""
    lines = [f"DTSTART:{_format_stamp(text.dtstart)}"]
    if text.rule is not None:
        lines.append(f"RRULE:{format_rule(text.rule)}")
    for name, dates in (("RDATE", text.rdates), ("EXDATE", text.exdates)):
        if dates:
            lines.append(f"{name}:{','.join(map(_format_stamp, dates))}")
    return "\n".join(lines)


def _parse_stamp(part: str, text: str) -> datetime:
    """A local date-time in basic form."""
    match = _STAMP.fullmatch(text)
    if match is None:
        if text.endswith(("Z", "z")):
            raise InvalidExpression(
                part, f"times are local, without Z; give the zone in `timezone` ({text[:40]})"
            )
        raise InvalidExpression(part, f"{text[:40]!r} is not one; {_HINT}")
    try:
        year, month, day, hour, minute, second = map(int, match.groups())
        local = datetime(year, month, day, hour, minute, second)
    except ValueError:
        raise InvalidExpression(part, f"{text} is no date and time of the calendar") from None
    if not FIRST_YEAR <= year <= LAST_YEAR:
        raise InvalidExpression(part, f"the year {year} lies outside {FIRST_YEAR} to {LAST_YEAR}")
    return local


def _format_stamp(local: datetime) -> str:
    return f"{local:%Y%m%dT%H%M%S}"


def _lines(text: str) -> list[str]:
    """Unfolded (section 3.1): a line that begins with a blank goes on with the one before."""
    unfolded = re.sub(r"\r?\n[ \t]", "", text)
    lines = (line.strip(BLANKS) for line in re.split(r"\r?\n", unfolded))
    return [line for line in lines if line]


def _property(line: str) -> tuple[str, str, str]:
    head, colon, value = line.partition(":")
    name, _, parameters = head.partition(";")
    if not colon:
        raise InvalidExpression("line", f"{line[:40]!r} is not NAME:VALUE, such as RRULE:FREQ=DAILY")
    return clean_name(name, otherwise="line"), parameters.strip(BLANKS), value.strip(BLANKS)


def _refuse_parameters(name: str, parameters: str) -> None:
    if "TZID" in parameters.upper():
        raise InvalidExpression(name, f"{name} is local, without TZID; give the zone in `timezone`")
    if parameters and _DATE_TIME.fullmatch(parameters) is None:
        raise InvalidExpression(name, f"the parameter {parameters[:40]!r} is not read; {_HINT}")
