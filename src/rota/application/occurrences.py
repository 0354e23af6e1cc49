"""Occurrences in the library: what a rule names, what became of it, and what is decided of it ahead of its time.

An occurrence is named by its instant, or by its local time in the schedule's zone as text: `2026-01-14T09:00`.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Unpack

from rota.application.connection import Connection
from rota.application.fields import PreviewFields, fields_to_wire, moment_to_wire, place_of
from rota.application.pages import checked_limit, walk
from rota.service import occurrences, planning
from rota.service.context import Actor
from rota.service.paging import LIMIT_DEFAULT, LIMIT_MAX
from rota.service.representation import Wire


class Occurrences(Connection):
    """What is asked of the occurrences of a schedule."""

    def preview(self, **fields: Unpack[PreviewFields]) -> Wire:
        """The next occurrences of a rule that is not saved. Raises `InvalidRequest`."""
        return occurrences.preview(self.context, fields_to_wire(fields))

    def upcoming(self, schedule_id: str, *, count: int = 10) -> Wire:
        """What the schedule names next, strictly after now. Raises `NotFound`, `InvalidRequest`."""
        return occurrences.list_upcoming(self.context, schedule_id, count=count)

    def occurrences(
        self, schedule_id: str, *, before: Mapping[str, object] | None = None, limit: int = LIMIT_DEFAULT
    ) -> list[Wire]:
        """What became of the schedule's occurrences, newest first: runs, and skips with their reasons.

        One page of at most `limit` (up to 200); `before` is the last entry of the page before, and
        `iterate_occurrences` walks all pages. Raises `NotFound`, `InvalidRequest`.
        """
        entries = occurrences.list_ledger(
            self.context, schedule_id, before=place_of(before), limit=checked_limit(limit)
        )
        return [entry for _, entry in entries]

    def iterate_occurrences(self, schedule_id: str) -> Iterator[Wire]:
        """All of them, newest first, read page by page. Raises `NotFound` at the first one that is asked for."""
        return walk(lambda last: self.occurrences(schedule_id, before=last, limit=LIMIT_MAX))

    def plan(
        self,
        schedule_id: str,
        until: datetime | str,
        *,
        dry_run: bool = False,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Wire:
        """Creates the runs of all occurrences up to `until`, ahead of their time: no edit takes them away.

        Repeating it creates nothing twice. Raises `NotFound`, `InvalidRequest`, and `Conflict` for what has ended or
        is in error, or whose next version takes over before `until`.
        """
        return planning.plan_occurrences(
            self.context,
            schedule_id,
            until=moment_to_wire("until", until),
            dry_run=dry_run,
            actor=Actor(name=actor, reason=reason),
        )

    def skip(
        self,
        schedule_id: str,
        occurrence: datetime | str,
        *,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Wire:
        """That one occurrence will not run, and no edit brings it back. The run that says so.

        Raises `NotFound` where the schedule names no such occurrence, `InvalidRequest`, and `Conflict` for what has
        fallen due already.
        """
        return planning.skip_occurrence(
            self.context,
            schedule_id,
            scheduled_at=moment_to_wire("scheduled_at", occurrence),
            actor=Actor(name=actor, reason=reason),
        )

    def move(
        self,
        schedule_id: str,
        occurrence: datetime | str,
        to: datetime | str,
        *,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Wire:
        """That one occurrence falls due at another time, and stays the one it is. Its run, which is planned then.

        Raises `NotFound` where the schedule names no such occurrence, `InvalidRequest`, and `Conflict` for what has
        fallen due already.
        """
        return planning.move_occurrence(
            self.context,
            schedule_id,
            scheduled_at=moment_to_wire("scheduled_at", occurrence),
            to=moment_to_wire("to", to),
            actor=Actor(name=actor, reason=reason),
        )
