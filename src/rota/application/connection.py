"""What an application is before anything is asked of it: its settings, its jobs, and a database opened at first use."""

import os
import threading
from types import TracebackType
from typing import Self

from rota.clock import Clock
from rota.config import Settings
from rota.domain.errors import Conflict
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
        self._settings = settings
        self._store = store
        self._clock = clock
        self._zones = zones
        self._lock = threading.RLock()
        self._context: Context | None = None
        self._registered: set[str] = set()
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
            return self._settings.model_copy(update={"database_url": self._database})

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

    def register_jobs(self) -> None:
        """Makes the application's jobs known to the database, as its worker does when it starts."""
        context = self.context
        for job in self.registry.jobs():
            if job.name not in self._registered:
                context.store.commit_job(job, now=context.clock.now())
                self._registered.add(job.name)
