"""Runs in the library: listed, cancelled, replayed, and asked for beside the schedule's own."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import TypedDict, Unpack

from rota.application.connection import Connection
from rota.application.fields import duration_of, moment_to_wire, place_of
from rota.application.pages import checked_limit, given, walk
from rota.service import backfill as backfilling
from rota.service import bulk, requested, runs
from rota.service.context import Actor
from rota.service.paging import LIMIT_DEFAULT, LIMIT_MAX, decode_cursor
from rota.service.queries import parse_ledger_place, parse_run_filter
from rota.service.representation import Wire
from rota.store.port import RunFilter


class RunChoice(TypedDict, total=False):
    """Which runs are meant: all that is given has to hold. `schedule` is an id, `label` a text such as `customer=acme`;
    `from_` is the first instant at which they are scheduled, `until` the first at which they are not."""

    schedule: str | None
    state: str | None
    job: str | None
    origin: str | None
    label: str | None
    from_: datetime | str | None
    until: datetime | str | None


class Runs(Connection):
    """What is asked of runs."""

    def runs(
        self,
        *,
        before: Mapping[str, object] | None = None,
        limit: int = LIMIT_DEFAULT,
        **chosen: Unpack[RunChoice],
    ) -> list[Wire]:
        """One page, newest first: at most `limit` (up to 200); `before` is the last run of the page before.

        `iterate_runs` walks all pages. Raises `InvalidRequest`.
        """
        entries = runs.list_runs(
            self.context, _filter_of(chosen), before=place_of(before), limit=checked_limit(limit)
        )
        return [entry for _, entry in entries]

    def iterate_runs(self, **chosen: Unpack[RunChoice]) -> Iterator[Wire]:
        """All of them, newest first, read page by page. Raises `InvalidRequest` at the first one that is asked for."""

        def read(last: Wire | None) -> list[Wire]:
            return self.runs(before=last, limit=LIMIT_MAX, **chosen)

        return walk(read)

    def get_run(self, run_id: str) -> Wire:
        """The run with its attempts and result. Raises `NotFound`."""
        return runs.show_run(self.context, run_id)

    def cancel_run(self, run_id: str, *, actor: str | None = None, reason: str | None = None) -> Wire:
        """A run that waits is cancelled, a running one is asked to stop. Raises `NotFound`, `Conflict`."""
        return runs.cancel_run(self.context, run_id, actor=Actor(name=actor, reason=reason))

    def cancel_runs(
        self,
        *,
        dry_run: bool = False,
        actor: str | None = None,
        reason: str | None = None,
        **chosen: Unpack[RunChoice],
    ) -> Wire:
        """Cancels the open runs that match, at most 1,000, and says how many; running ones are asked to stop.

        Where the answer says `is_complete: false`, say it again. Raises `InvalidRequest`, also where nothing is chosen.
        """
        return bulk.cancel_runs(
            self.context, _filter_of(chosen), dry_run=dry_run, actor=Actor(name=actor, reason=reason)
        )

    def replay_runs(
        self,
        *,
        reason: str,
        cursor: str | None = None,
        dry_run: bool = False,
        idempotency_key: str | None = None,
        actor: str | None = None,
        **chosen: Unpack[RunChoice],
    ) -> Wire:
        """Replays the occurrences whose runs match and have ended, looking at 1,000 runs, and says how many it were.

        Where the answer says `is_complete: false`, give its `next_cursor` as `cursor` to go on. Raises
        `InvalidRequest`, also where nothing is chosen, and `KeyReused`.
        """
        return bulk.replay_runs(
            self.context,
            _filter_of(chosen),
            after=parse_ledger_place(None if cursor is None else decode_cursor(cursor)),
            dry_run=dry_run,
            actor=Actor(name=actor, reason=reason),
            idempotency_key=idempotency_key,
        )

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


def _filter_of(chosen: RunChoice) -> RunFilter:
    """Raises `InvalidRequest`."""
    from_, until = chosen.get("from_"), chosen.get("until")
    texts = given(
        schedule=chosen.get("schedule"),
        state=chosen.get("state"),
        job=chosen.get("job"),
        origin=chosen.get("origin"),
        label=chosen.get("label"),
        until=None if until is None else moment_to_wire("until", until),
        **{"from": None if from_ is None else moment_to_wire("from", from_)},
    )
    return parse_run_filter(texts)
