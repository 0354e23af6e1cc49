"""`rota preview`: what a definition would do, without a database."""

import os
from datetime import datetime
from typing import Annotated

from cyclopts import Parameter

from rota.cli import definitions
from rota.cli.output import write_json, write_line, write_table
from rota.cli.tables import Column, Narrow
from rota.cli.times import shown_local
from rota.cli.whole_numbers import WHOLE
from rota.clock import Clock, SystemClock
from rota.domain.instants import format_instant, whole_second_floor
from rota.service import occurrences
from rota.service.representation import Wire
from rota.wiring import open_clock, open_preview_context

JSON_HELP = "Print the answer of POST /preview."


def preview(
    *,
    cron: definitions.Cron = None,
    at: definitions.At = None,
    rrule: definitions.RRule = None,
    every: definitions.Every = None,
    anchor: definitions.Anchor = None,
    timezone: definitions.Timezone = None,
    after: Annotated[str | None, Parameter(help="Only those after this instant; now, if not given.")] = None,
    count: Annotated[int | None, WHOLE, Parameter(help="How many, 1 to 1000; 10 if not given.")] = None,
    gap: definitions.Gap = None,
    fold: definitions.Fold = None,
    json: Annotated[bool, Parameter(help=JSON_HELP)] = False,
) -> None:
    """Compute the occurrences of a rule that is not saved. It needs no database."""
    body = definitions.given(
        timezone=timezone,
        recurrence=definitions.recurrence_of(cron=cron, at=at, rrule=rrule, every=every, anchor=anchor),
        gap=gap,
        fold=fold,
        after=after,
        count=count,
    )
    clock = _clock()
    answer = occurrences.preview(open_preview_context(clock), body)
    if json:
        write_json(answer)
    else:
        _write_tables(answer, why_none=_why_none(answer, at=at, after=after, now=clock.now()))


def _clock() -> Clock:
    """The settings take long to load, and only one of them matters here."""
    if not any(name.upper() == "ROTA_CLOCK_FILE" for name in os.environ):
        return SystemClock()
    from rota.cli.options import load_settings  # noqa: PLC0415 - see above

    return open_clock(load_settings())


def _why_none(answer: Wire, *, at: str | None, after: str | None, now: datetime) -> str:
    """What to say where there is no occurrence."""
    if answer["skipped"]:
        moved = "--gap forward takes the first instant after it."
        return f"No occurrence: what the rule names does not exist, since the clocks go forward; {moved}"
    start = format_instant(whole_second_floor(now)) if after is None else after
    if at is not None:
        if after is None:
            return f"No occurrence: {at} in {answer['timezone']} has passed, it is {start} now. Give --after to see it."
        return f"No occurrence: {at} in {answer['timezone']} is not after {start}, the given --after."
    return f"No occurrence: the rule names none after {start}{', which is now' if after is None else ''}."


def _write_tables(answer: Wire, *, why_none: str) -> None:
    found, skipped = answer["occurrences"], answer["skipped"]
    assert isinstance(found, list)  # noqa: S101 - as preview makes it
    assert isinstance(skipped, list)  # noqa: S101 - the same
    write_line(f"{answer['timezone']}, gap {answer['gap']}, fold {answer['fold']}, tzdata {answer['tzdata']}")
    if found:
        write_table(
            ["LOCAL", Column(name="UTC", leave_out=1), Column(name="NOTE", narrow=Narrow.WRAP)],
            [
                (shown_local(item["local"], item["offset"]), item["scheduled_at"], item["note"] or "")
                for item in found
            ],
        )
    else:
        write_line(why_none)
    if skipped:
        write_table(
            ["SKIPPED LOCAL", Column(name="WHY", narrow=Narrow.WRAP)],
            [(str(item["local"]).replace("T", " "), item["note"]) for item in skipped],
        )
