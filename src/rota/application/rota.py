"""Rota as a library: one object with the jobs, schedules and runs of an application, and the loops that work on them.

Fields, answers and errors are those of the HTTP API; durations and instants may be given as `timedelta` and aware
`datetime`. Nothing is opened before the first use, so a module may say `app = Rota("rota.db")` and be imported for its
jobs alone.
"""

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from datetime import timedelta
from types import TracebackType
from typing import Self, Unpack

from rota.application.fields import PreviewFields, ScheduleFields, fields_to_wire, place_of
from rota.application.loops import run_side_by_side
from rota.application.stopping import stopped_by_signals
from rota.clock import Clock
from rota.config import Settings
from rota.dispatch.dispatcher import Dispatcher
from rota.domain.errors import Conflict, FieldError, InvalidRequest
from rota.domain.identity import ScheduleId
from rota.ids import new_process_name
from rota.service import creation, occurrences, runs, schedules
from rota.service.context import Actor, Context
from rota.service.paging import LIMIT_DEFAULT, LIMIT_MAX
from rota.service.queries import parse_run_filter, parse_schedule_filter
from rota.service.representation import Wire
from rota.store.port import Store
from rota.wiring import open_context
from rota.worker.echo import add_echo
from rota.worker.registry import Registry
from rota.worker.worker import Worker


class Rota:
    """An application: its jobs, and a database with its schedules and runs. Threads may share it.

    `settings` are those of the environment where none are given; `database` wins over them. With a `store` of one's
    own, that one is used, and left open by `close`.
    """

    def __init__(
        self,
        database: str | os.PathLike[str] | None = None,
        *,
        settings: Settings | None = None,
        store: Store | None = None,
        clock: Clock | None = None,
        registry: Registry | None = None,
    ) -> None:
        self._database = None if database is None else os.fspath(database)
        self._settings = settings
        self._store = store
        self._clock = clock
        self._lock = threading.RLock()
        self._context: Context | None = None
        self._registered: set[str] = set()
        self._dispatcher_wake = threading.Event()
        self._worker_wake = threading.Event()
        if registry is None:
            registry = Registry()
            add_echo(registry)
        self.registry = registry
        self.job = registry.job

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def settings(self) -> Settings:
        """Read from the environment at the first look, unless they were given."""
        with self._lock:
            if self._settings is None:
                self._settings = Settings()
            if self._database is None:
                return self._settings
            return self._settings.model_copy(update={"database": self._database})

    def configure(self, settings: Settings) -> None:
        """Replaces every setting, the database too. Raises `Conflict` where the database is open already."""
        with self._lock:
            if self._context is not None:
                raise Conflict(
                    "The database is open already; configure the application before its first use."
                )
            self._settings, self._database = settings, None

    @property
    def context(self) -> Context:
        """What the use cases are given; opens the database at the first look. Raises `StoreUnavailable`."""
        with self._lock:
            if self._context is None:
                self._context = open_context(self.settings, store=self._store, clock=self._clock)
            return self._context

    def close(self) -> None:
        """Closes the database, unless the store was given. A later use opens it again."""
        with self._lock:
            context, self._context = self._context, None
            self._registered.clear()
            if context is not None and self._store is None:
                context.store.close()

    # --- schedules ---

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
        self.wake()
        return created.body

    def preview(self, **fields: Unpack[PreviewFields]) -> Wire:
        """The next occurrences of a rule that is not saved. Raises `InvalidRequest`."""
        return occurrences.preview(self.context, fields_to_wire(fields))

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
            parse_schedule_filter(_given(status=status, job=job, label=label)),
            after=None if after is None else ScheduleId(after),
            limit=_checked_limit(limit),
        )

    def iterate_schedules(
        self, *, status: str | None = None, job: str | None = None, label: str | None = None
    ) -> Iterator[Wire]:
        """All of them by id, read page by page. Raises `InvalidRequest` at the first one that is asked for."""

        def read(last: Wire | None) -> list[Wire]:
            after = None if last is None else str(last["id"])
            return self.list_schedules(status=status, job=job, label=label, after=after, limit=LIMIT_MAX)

        return _walk(read)

    def pause(self, schedule_id: str, *, actor: str | None = None, reason: str | None = None) -> Wire:
        """Nothing is admitted from now on; nothing that happened is undone. Raises `NotFound`, `Conflict`."""
        return schedules.pause_schedule(self.context, schedule_id, actor=Actor(name=actor, reason=reason))

    def resume(
        self,
        schedule_id: str,
        *,
        apply_overdue: bool = False,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Wire:
        """Admission goes on. What fell due in the pause is skipped, or follows the overdue policy with `apply_overdue`.

        Raises `NotFound`, `Conflict`.
        """
        resumed = schedules.resume_schedule(
            self.context, schedule_id, apply_overdue=apply_overdue, actor=Actor(name=actor, reason=reason)
        )
        self.wake()
        return resumed

    def end(self, schedule_id: str, *, actor: str | None = None, reason: str | None = None) -> Wire:
        """No further occurrence; the history stays and the id is never used again. Raises `NotFound`."""
        ended = schedules.end_schedule(self.context, schedule_id, actor=Actor(name=actor, reason=reason))
        self.wake()
        return ended

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
            self.context, schedule_id, before=place_of(before), limit=_checked_limit(limit)
        )
        return [entry for _, entry in entries]

    def iterate_occurrences(self, schedule_id: str) -> Iterator[Wire]:
        """All of them, newest first, read page by page. Raises `NotFound` at the first one that is asked for."""
        return _walk(lambda last: self.occurrences(schedule_id, before=last, limit=LIMIT_MAX))

    # --- runs ---

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
        asked = _given(schedule=schedule, state=state, job=job, origin=origin, label=label)
        entries = runs.list_runs(
            self.context, parse_run_filter(asked), before=place_of(before), limit=_checked_limit(limit)
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

        return _walk(read)

    def get_run(self, run_id: str) -> Wire:
        """The run with its attempts and result. Raises `NotFound`."""
        return runs.show_run(self.context, run_id)

    def cancel_run(self, run_id: str, *, actor: str | None = None, reason: str | None = None) -> Wire:
        """A run that waits is cancelled, a running one is asked to stop. Raises `NotFound`, `Conflict`."""
        return runs.cancel_run(self.context, run_id, actor=Actor(name=actor, reason=reason))

    # --- loops ---

    def register_jobs(self) -> None:
        """Makes the application's jobs known to the database, as its worker does when it starts."""
        context = self.context
        for job in self.registry.jobs():
            if job.name not in self._registered:
                context.store.commit_job(job, now=context.clock.now())
                self._registered.add(job.name)

    def build_dispatcher(self) -> Dispatcher:
        """A dispatcher on this database, which wakes this application's worker when it has queued something."""
        context, settings = self.context, self.settings
        return Dispatcher(
            context.store,
            announce=self._worker_wake.set,
            cadences=context.cadences,
            clock=context.clock,
            owner=new_process_name("dispatch"),
            lease=timedelta(seconds=settings.lease_seconds),
            poll=timedelta(seconds=settings.poll_seconds),
            page=settings.page,
        )

    def build_worker(self, *, inline: bool = False) -> Worker:
        """A worker of this application's jobs; `inline` runs handlers within its steps, for tests."""
        context, settings = self.context, self.settings
        return Worker(
            context.store,
            self.registry,
            clock=context.clock,
            name=new_process_name("worker"),
            concurrency=settings.concurrency,
            poll=timedelta(seconds=settings.poll_seconds),
            drain=timedelta(seconds=settings.drain_seconds),
            inline=inline,
        )

    def run(self, stop: threading.Event | None = None) -> None:
        """Dispatches and works until `stop` is set, then drains. Without one, until SIGINT or SIGTERM.

        `stop` is also set where a loop fails; raises `LoopFailed` then.
        """
        loops = [
            ("dispatcher", self.build_dispatcher().run, self._dispatcher_wake),
            ("worker", self.build_worker().run, self._worker_wake),
        ]
        stopping = threading.Event() if stop is None else stop
        with stopped_by_signals(stopping) if stop is None else nullcontext():
            run_side_by_side(loops, stopping)

    def wake(self) -> None:
        """Has the loops of `run` look at the database at once, because something was written that they may act on."""
        self._dispatcher_wake.set()
        self._worker_wake.set()


def _given(**fields: str | None) -> dict[str, str]:
    return {name: value for name, value in fields.items() if value is not None}


def _walk(read: Callable[[Wire | None], list[Wire]]) -> Iterator[Wire]:
    """Every entry of the pages that `read` gives, each after the last entry of the one before."""
    page = read(None)
    while page:
        yield from page
        page = read(page[-1]) if len(page) == LIMIT_MAX else []


def _checked_limit(limit: int) -> int:
    if not 1 <= limit <= LIMIT_MAX:
        raise InvalidRequest(FieldError("limit", f"Give a whole number from 1 to {LIMIT_MAX}."))
    return limit
