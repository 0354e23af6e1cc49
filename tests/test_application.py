"""Rota as a library: what may be done before a database is there, and when it is opened and closed."""

import subprocess
import sys
from pathlib import Path

import pytest

import rota
from rota import Rota, RunContext
from rota.config import Settings
from rota.domain.errors import Conflict
from rota.store.memory import MemoryStore


class LocalStore(MemoryStore):
    """Knows whether it was closed."""

    is_closed = False

    def close(self) -> None:
        self.is_closed = True


def test_an_application_touches_no_disk_before_its_first_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROTA_POLL_SECONDS", "no number")  # would be refused if it were read
    app = Rota("rota.db")

    @app.job("sales_report")
    def handle(context: RunContext) -> None: ...

    assert list(tmp_path.iterdir()) == []
    assert [job.name for job in app.registry.jobs()] == ["echo", "sales_report"]


def test_the_first_use_opens_the_database(tmp_path: Path) -> None:
    path = tmp_path / "rota.db"
    with Rota(path) as app:
        assert app.list_schedules() == []
        assert path.exists()


def test_a_given_database_wins_over_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_DATABASE_URL", "environment.db")
    monkeypatch.setenv("ROTA_CONCURRENCY", "3")
    settings = Settings(database_url="settings.db", page=7)
    assert Rota().settings.database_url == "environment.db"
    assert Rota("given.db").settings.database_url == "given.db"
    assert Rota("given.db").settings.concurrency == 3
    assert Rota(settings=settings).settings == settings
    assert Rota("given.db", settings=settings).settings.page == 7


def test_settings_may_be_replaced_until_the_database_is_open() -> None:
    app = Rota("given.db", store=MemoryStore())
    settings = Settings(database_url="other.db", partitions=2)
    app.configure(settings)
    assert app.settings == settings
    assert app.context.partition_count == 2
    with pytest.raises(Conflict, match="before its first use"):
        app.configure(settings)


def test_every_application_has_the_job_echo_and_keeps_its_name_for_it() -> None:
    with pytest.raises(Conflict, match="'echo' has a handler already"):
        Rota().job("echo")(lambda context: None)


def test_closing_closes_what_was_opened_and_leaves_what_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    given, opened = LocalStore(), LocalStore()
    with Rota(store=given) as app:
        app.list_schedules()
    monkeypatch.setattr("rota.wiring.open_store", lambda settings: opened)
    with Rota("rota.db") as app:
        app.list_schedules()
        assert not opened.is_closed
    assert (given.is_closed, opened.is_closed) == (False, True)


def test_closing_what_was_never_opened_is_nothing() -> None:
    Rota("rota.db").close()


def test_importing_rota_loads_no_library() -> None:
    script = (
        "import sys, rota\n"
        "heavy = {'sqlalchemy', 'pydantic', 'fastapi', 'structlog', 'asyncio'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "from rota import Rota, RunContext, Moot\n"
        "assert Rota('rota.db').registry.jobs()[0].name == 'echo'\n"
        "assert 'sqlalchemy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_everything_that_rota_names_is_there() -> None:
    assert set(rota.__all__) <= set(dir(rota))
    assert [name for name in rota.__all__ if getattr(rota, name).__name__ != name] == []
    with pytest.raises(AttributeError, match="no attribute 'Scheduler'"):
        rota.Scheduler  # noqa: B018 - the look is what is tested
