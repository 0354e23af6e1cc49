"""What an application is before anything is asked of it: its settings, its jobs, and a database opened at first use."""

import os
import threading
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from rota.clock import Clock
from rota.config import Settings
from rota.domain.errors import Conflict, WrongSetting
from rota.domain.job import Job
from rota.service.context import Context
from rota.store.port import Store
from rota.wiring import open_context
from rota.worker.echo import add_echo
from rota.worker.registry import Registry
from rota.zones import Zones


class Connection:
    """Settings, jobs and database of an application; what is done with them is in the classes upon it."""

    def __init__(
        self,
        database: str | os.PathLike[str] | None = None,
        *,
        settings: Settings | None = None,
        store: Store | None = None,
        clock: Clock | None = None,
        zones: Zones | None = None,
        registry: Registry | None = None,
    ) -> None:
        self._database = None if database is None else os.fspath(database)
        self._own_settings = self._settings = settings
        self._store = store
        self._clock = clock
        self._zones = zones
        self._lock = threading.RLock()
        self._context: Context | None = None
        self._registered: set[str] = set()
        self._declared_in: dict[str, tuple[Job, str]] = {}
        if registry is None:
            registry = Registry()
            add_echo(registry)
        self.registry = registry
        self.job = registry.job
        self.declare = registry.declare

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
            return self._settings.model_copy(update={"database_url": self._database})

    def own_settings(self) -> dict[str, object]:
        """What it was made with, by name; of anything else the environment has its say."""
        own = {} if self._own_settings is None else self._own_settings.model_dump()
        return own if self._database is None else own | {"database_url": self._database}

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
                self._context = open_context(
                    self.settings, store=self._store, clock=self._clock, zones=self._zones
                )
            return self._context

    def close(self) -> None:
        """Closes the database, unless the store was given. A later use opens it again."""
        with self._lock:
            context, self._context = self._context, None
            self._registered.clear()
            if context is not None and self._store is None:
                context.store.close()

    def declare_jobs(self, jobs: Iterable[Job], *, source: str) -> None:
        """Jobs that `source` declares, such as a file, and not the code of the application. They become known to the
        database by `register_jobs` and `register_declared_jobs`. Raises `WrongSetting` for one that the code has too.
        """
        self._declared_in |= {job.name: (job, source) for job in jobs}
        self._check_declared()

    def register_jobs(self) -> None:
        """Makes the application's jobs known to the database, as its worker does when it starts, and those of
        `declare_jobs`. Raises `WrongSetting` for one that is both.
        """
        self._register(self.registry.jobs())
        self.register_declared_jobs()

    def register_declared_jobs(self) -> None:
        """The same, of those of `declare_jobs` alone."""
        self._register(self._declared_jobs())

    def _register(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            if job.name not in self._registered:
                self.context.store.commit_job(job, now=self.context.clock.now())
                self._registered.add(job.name)

    def _declared_jobs(self) -> list[Job]:
        """Those of `declare_jobs`. Raises `WrongSetting` for one that the code has too."""
        self._check_declared()
        return [job for job, _ in self._declared_in.values()]

    def _check_declared(self) -> None:
        in_code = {job.name for job in self.registry.jobs()}
        for name, (_, source) in self._declared_in.items():
            if name in in_code:
                registered = self.registry.get(name)
                place = "declare" if registered is None else _place_of(registered.handler)
                raise WrongSetting(
                    f"The job {name!r} is declared in {source} ([jobs.{name}]) and in code ({place}); "
                    "keep one of the two."
                )


def _place_of(handler: object) -> str:
    """Where a handler is: `orders.jobs:send_report`."""
    named = handler if hasattr(handler, "__qualname__") else type(handler)
    return f"{named.__module__}:{named.__qualname__}"
