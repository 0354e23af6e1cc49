"""Schedules in the library: saved, changed, paused and ended, one by one or as a document; and what is kept of that."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Unpack

from rota.application.connection import Connection
from rota.application.fields import EditFields, ScheduleFields, document_to_wire, fields_to_wire
from rota.application.pages import checked_limit, given, walk
from rota.domain.edit_form import parse_edit
from rota.domain.identity import ScheduleId
from rota.service import applying, creation, dry_runs, editing, schedules
from rota.service.context import Actor
from rota.service.paging import LIMIT_DEFAULT, LIMIT_MAX
from rota.service.queries import parse_schedule_filter
from rota.service.representation import Wire


class Schedules(Connection):
    """What is asked of schedules."""

    def create_schedule(
        self,
        *,
        idempotency_key: str | None = None,
        actor: str | None = None,
        reason: str | None = None,
        **fields: Unpack[ScheduleFields],
    ) -> Wire:
        """Saves a schedule, and answers with every default resolved; the same fields again answer the same.

        The application's own jobs are made known first, so no worker has to have run. Raises `InvalidRequest`,
        `TooLarge`, `Conflict` and `KeyReused`.
        """
        body = fields_to_wire(fields)
        self.register_jobs()
        created = creation.create_schedule(
            self.context, body, actor=Actor(name=actor, reason=reason), idempotency_key=idempotency_key
        )
        return created.body

    def edit(
        self,
        schedule_id: str,
        *,
        expected_version: int | None = None,
        boundary: str | None = None,
        effective_from: datetime | str | None = None,
        at_once: bool = False,
        replaces_pending: bool = False,
        dry_run: bool = False,
        actor: str | None = None,
        reason: str | None = None,
        **fields: Unpack[EditFields],
    ) -> Wire:
        """The schedule with its next version; with `dry_run` what that would keep, carry, suppress and run next.

        A field that is not given stays as it is; one that is given as None is back at its default. Members of `params`
        and `labels` are changed one by one, and None takes one away. The edit takes over at once, or at
        `effective_from`, and every period keeps its run; with `boundary="now"` periods count anew from now on. With
        `replaces_pending` it takes the place of a version that has not taken over yet, at that one's instant, or
        `at_once`.

        Raises `NotFound`, `InvalidRequest`, `TooLarge`, `Stale` where `expected_version` is not the latest version,
        and `Conflict` for what has ended, for a version that waits to take over, and for a one-time schedule that was
        planned or ran.
        """
        # None is left out: on the wire it would be an instant that was named.
        control = {"boundary": boundary, "effective_from": effective_from}
        asked = {name: value for name, value in control.items() if value is not None}
        flags = {"at_once": at_once, "replaces_pending": replaces_pending}
        edit = parse_edit(fields_to_wire({**fields, **asked, **flags}))
        who = Actor(name=actor, reason=reason)
        if dry_run:
            return dry_runs.dry_run_edit(
                self.context, schedule_id, edit, expected_version=expected_version, actor=who
            )
        return editing.edit_schedule(
            self.context, schedule_id, edit, expected_version=expected_version, actor=who
        )

    def apply(
        self,
        document: Mapping[str, object],
        *,
        dry_run: bool = False,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Wire:
        """Makes schedules as a document says: `{"schedules": {"report-7": {...}}}`, such as TOML is read into.

        What is not there is created, what differs is edited, what is marked `ended` is ended; others are left alone.
        All of it is planned first: raises `InvalidRequest` with every field that is wrong, and nothing is done then.
        """
        self.register_jobs()
        return applying.apply_document(
            self.context, document_to_wire(document), dry_run=dry_run, actor=Actor(name=actor, reason=reason)
        )

    def get_schedule(self, schedule_id: str) -> Wire:
        """Raises `NotFound`."""
        return schedules.show_schedule(self.context, schedule_id)

    def list_schedules(
        self,
        *,
        status: str | None = None,
        job: str | None = None,
        label: str | None = None,
        after: str | None = None,
        limit: int = LIMIT_DEFAULT,
    ) -> list[Wire]:
        """One page, by id: at most `limit` (up to 200) after the id `after`; `iterate_schedules` walks all pages.

        `label` is written `customer=acme`. Raises `InvalidRequest`.
        """
        return schedules.list_schedules(
            self.context,
            parse_schedule_filter(given(status=status, job=job, label=label)),
            after=None if after is None else ScheduleId(after),
            limit=checked_limit(limit),
        )

    def iterate_schedules(
        self, *, status: str | None = None, job: str | None = None, label: str | None = None
    ) -> Iterator[Wire]:
        """All of them by id, read page by page. Raises `InvalidRequest` at the first one that is asked for."""

        def read(last: Wire | None) -> list[Wire]:
            after = None if last is None else str(last["id"])
            return self.list_schedules(status=status, job=job, label=label, after=after, limit=LIMIT_MAX)

        return walk(read)

    def pause(
        self,
        schedule_id: str,
        *,
        dry_run: bool = False,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Wire:
        """Nothing is admitted from now on; nothing that happened is undone. With `dry_run`: what it would hold back.

        Raises `NotFound`, `Conflict`.
        """
        who = Actor(name=actor, reason=reason)
        if dry_run:
            return dry_runs.dry_run_pause(self.context, schedule_id, actor=who)
        return schedules.pause_schedule(self.context, schedule_id, actor=who)

    def resume(
        self,
        schedule_id: str,
        *,
        apply_overdue: bool = False,
        dry_run: bool = False,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Wire:
        """Admission goes on. What fell due in the pause is skipped, or follows the overdue policy with `apply_overdue`.

        With `dry_run`: what would run and be skipped at once, and what comes next. Raises `NotFound`, `Conflict`.
        """
        who = Actor(name=actor, reason=reason)
        if dry_run:
            return dry_runs.dry_run_resume(self.context, schedule_id, apply_overdue=apply_overdue, actor=who)
        return schedules.resume_schedule(self.context, schedule_id, apply_overdue=apply_overdue, actor=who)

    def end(self, schedule_id: str, *, actor: str | None = None, reason: str | None = None) -> Wire:
        """No further occurrence; the history stays and the id is never used again. Raises `NotFound`."""
        return schedules.end_schedule(self.context, schedule_id, actor=Actor(name=actor, reason=reason))

    def versions(
        self, schedule_id: str, *, before: int | None = None, limit: int = LIMIT_DEFAULT
    ) -> list[Wire]:
        """The versions, latest first: one page of at most `limit` (up to 200), of numbers below `before`.

        Raises `NotFound`, `InvalidRequest`.
        """
        return schedules.list_versions(self.context, schedule_id, before=before, limit=checked_limit(limit))

    def version(self, schedule_id: str, number: int) -> Wire:
        """The definition of that number, as it was asked for and resolved, and its window. Raises `NotFound`."""
        return schedules.show_version(self.context, schedule_id, number)

    def history(self, schedule_id: str, *, limit: int = LIMIT_DEFAULT) -> list[Wire]:
        """Who did what to the schedule and why: the newest `limit` (up to 200). Raises `NotFound`, `InvalidRequest`."""
        return schedules.list_history(self.context, schedule_id, limit=checked_limit(limit))
