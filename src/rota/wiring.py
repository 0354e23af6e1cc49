"""Wiring: the only place that knows every class."""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from rota.cadences import Cadences
from rota.clock import Clock, FileClock, MeasuredClock, SystemClock
from rota.service.context import Context
from rota.store.memory import MemoryStore
from rota.store.port import Store
from rota.zones import Zones

if TYPE_CHECKING:  # settings load slowly, and a preview needs none
    from fastapi import FastAPI

    from rota.config import Settings
    from rota.store.sql.inspection import SqliteReport
    from rota.store.sql.postgresql_inspection import PostgresReport


def open_clock(settings: "Settings", store: Store | None = None) -> Clock:
    """The file's that was set; else the store's, where it has one; else the machine's. Raises `StoreUnavailable`."""
    if settings.clock_file is not None:
        return FileClock(settings.clock_file)
    machine = SystemClock()
    if store is None or store.read_time() is None:
        return machine
    return MeasuredClock(machine, store.read_time)


def open_store(settings: "Settings") -> Store:
    """The store that `settings.database_url` names, migrated. Raises `StoreUnavailable`."""
    from rota.store.sql import open_sql_store  # noqa: PLC0415 - the driver loads only where a store is opened

    return open_sql_store(settings.database_url)


def open_context(
    settings: "Settings",
    *,
    store: Store | None = None,
    clock: Clock | None = None,
    zones: Zones | None = None,
) -> Context:
    """What the use cases are given. The partitions are made where the database has none."""
    store = store or open_store(settings)
    zones = zones or Zones()
    return Context(
        store=store,
        clock=clock or open_clock(settings, store),
        zones=zones,
        cadences=Cadences(zones),
        partition_count=store.ensure_partitions(settings.partitions),
    )


def open_existing_context(settings: "Settings") -> Context:
    """The same for who makes no tables on a PostgreSQL server and changes none. Raises `StoreUnavailable`."""
    from rota.store.sql import open_existing_sql_store  # noqa: PLC0415 - the driver loads only where one is opened

    return open_context(settings, store=open_existing_sql_store(settings.database_url))


def database_file(settings: "Settings") -> Path | None:
    """The file that `settings.database_url` names; None where the database is none."""
    from rota.store.sql import inspection  # noqa: PLC0415 - the driver loads only where a store is looked at

    return inspection.database_file(settings.database_url)


def inspect_sqlite(path: Path) -> "SqliteReport":
    """What the database is, without changing it. Raises `StoreUnavailable`."""
    from rota.store.sql import inspection  # noqa: PLC0415 - the same

    return inspection.inspect_sqlite(path)


def is_postgresql(settings: "Settings") -> bool:
    """Whether `settings.database_url` names a PostgreSQL server. Raises `StoreUnavailable` where it makes no sense."""
    from rota.store.sql import databases  # noqa: PLC0415 - the same

    return databases.is_postgresql(settings.database_url)


def inspect_postgresql(settings: "Settings") -> "PostgresReport":
    """What the database is, without changing it, and how its clock stands to ours. Raises `StoreUnavailable`."""
    from rota.store.sql import postgresql_inspection  # noqa: PLC0415 - the same

    return postgresql_inspection.inspect_postgresql(settings.database_url, now=SystemClock().now)


def sqlite_in_use() -> tuple[str, str]:
    """The driver that Rota uses here, and the version of its SQLite."""
    from rota.store.sql import inspection  # noqa: PLC0415 - the same

    return inspection.sqlite_in_use()


def open_preview_context(clock: Clock) -> Context:
    """A context that opens no database: for what is computed and not saved."""
    zones = Zones()
    store = MemoryStore()
    return Context(
        store=store,
        clock=clock,
        zones=zones,
        cadences=Cadences(zones),
        partition_count=store.ensure_partitions(1),
    )


def build_api(context: Context, *, hosts: Collection[str] | None = None) -> "FastAPI":
    """The HTTP API on a context. It answers to `hosts`, as `hosts_on` says them; None: to any."""
    from rota.api.application import create_api  # noqa: PLC0415 - the framework loads only where it serves

    return create_api(context, hosts=hosts)


def hosts_on(address: str, *, named: str) -> frozenset[str] | None:
    """The hosts that a server answers to which listens on `address`, given as `named`; None: to any."""
    from rota.api import origins  # noqa: PLC0415 - the same

    return origins.hosts_on(address, named=named)
