"""Runs in the library: listed, cancelled, and asked for beside the schedule's own."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from rota.application.connection import Connection
from rota.application.fields import duration_of, moment_to_wire, place_of
from rota.application.pages import checked_limit, given, walk
from rota.service import backfill as backfilling
from rota.service import requested, runs
from rota.service.context import Actor
from rota.service.paging import LIMIT_DEFAULT, LIMIT_MAX
from rota.service.queries import parse_run_filter
from rota.service.representation import Wire


class Runs(Connection):
    """What is asked of runs."""

    def runs(
        self,
        *,
        schedule: str | None = None,
        state: str | None = None,
        job: str | None = None,
        origin: str | None = None,
        label: str | None = None,
        before: Mapping[str, object] | None = None,
        limit: int = LIMIT_DEFAULT,
    ) -> list[Wire]:
        """One page, newest first: at most `limit` (up to 200); `before` is the last run of the page before.

        `schedule` is an id; `iterate_runs` walks all pages. Raises `InvalidRequest`.
        """
        asked = given(schedule=schedule, state=state, job=job, origin=origin, label=label)
        entries = runs.list_runs(
            self.context, parse_run_filter(asked), before=place_of(before), limit=checked_limit(limit)
        )
        return [entry for _, entry in entries]

    def iterate_runs(
        self,
        *,
        schedule: str | None = None,
        state: str | None = None,
        job: str | None = None,
        origin: str | None = None,
        label: str | None = None,
    ) -> Iterator[Wire]:
        """All of them, newest first, read page by page. Raises `InvalidRequest` at the first one that is asked for."""

        def read(last: Wire | None) -> list[Wire]:
            return self.runs(
                schedule=schedule,
                state=state,
                job=job,
                origin=origin,
                label=label,
                before=last,
                limit=LIMIT_MAX,
            )

        return walk(read)

    def get_run(self, run_id: str) -> Wire:
        """The run with its attempts and result. Raises `NotFound`."""
        return runs.show_run(self.context, run_id)

    def cancel_run(self, run_id: str, *, actor: str | None = None, reason: str | None = None) -> Wire:
        """A run that waits is cancelled, a running one is asked to stop. Raises `NotFound`, `Conflict`."""
        return runs.cancel_run(self.context, run_id, actor=Actor(name=actor, reason=reason))

    def run_now(
        self,
        schedule_id: str,
        *,
        idempotency_key: str | None = None,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Wire:
        """One run at once, with the params that hold now, whether the schedule is paused or not; it uses no period.

        The same key again answers with the same run. Raises `NotFound`, `Conflict` for what has ended, `KeyReused`.
        """
        _, run = requested.request_run(
            self.context,
            schedule_id,
            actor=Actor(name=actor, reason=reason),
            idempotency_key=idempotency_key,
        )
        return run

    def replay(
        self,
        run_id: str,
        *,
        reason: str,
        idempotency_key: str | None = None,
        actor: str | None = None,
    ) -> Wire:
        """Another run of an occurrence whose run has ended, with the version and params of that.

        Raises `NotFound`, `InvalidRequest` where the reason is empty, `Conflict` for a run that has not ended, and
        `KeyReused`.
        """
        _, run = requested.replay_run(
            self.context,
            run_id,
            actor=Actor(name=actor, reason=reason),
            idempotency_key=idempotency_key,
        )
        return run

    def backfill(
        self,
        schedule_id: str,
        from_: datetime | str,
        until: datetime | str,
        *,
        spacing: timedelta | str | None = None,
        dry_run: bool = False,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Wire:
        """Creates runs of the past instants in `[from_, until]` that the present rule names and no run was made for.

        They fall due `spacing` apart (a second, unless told). Repeating it creates nothing twice. Raises `NotFound`,
        `InvalidRequest`, and `Conflict` for what has ended or is in error.
        """
        return backfilling.backfill(
            self.context,
            schedule_id,
            from_=moment_to_wire("from", from_),
            until=moment_to_wire("until", until),
            spacing=backfilling.SPACING_DEFAULT if spacing is None else duration_of("spacing", spacing),
            dry_run=dry_run,
            actor=Actor(name=actor, reason=reason),
        )
