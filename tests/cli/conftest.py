"""Commands called in this process, on a database of their own and at a time that a file holds."""

import io
import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from rota.application import Rota
from rota.cli import main
from rota.config import Settings
from rota.service.context import Context
from rota.wiring import open_context
from rota.worker.registry import Registry

NOW = "2026-01-10T12:00:00Z"
PARTITIONS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def wire(self) -> dict[str, object]:
        """The one JSON document."""
        return cast("dict[str, object]", json.loads(self.out))

    @property
    def items(self) -> list[dict[str, object]]:
        return cast("list[dict[str, object]]", self.wire["items"])

    @property
    def problems(self) -> list[str]:
        """The lines on standard error."""
        return self.err.splitlines()


Run = Callable[..., Ended]


@pytest.fixture(scope="session")
def made_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with its tables, made once: the first opening takes most of a second."""
    path = tmp_path_factory.mktemp("made") / "rota.db"
    open_context(Settings(database_url=str(path), partitions=PARTITIONS)).store.close()
    return path


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty current directory, no settings of the one who runs the tests, and a time."""
    for name in [name for name in os.environ if name.startswith("ROTA_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "now").write_text(NOW)
    monkeypatch.setenv("ROTA_CLOCK_FILE", str(tmp_path / "now"))


@pytest.fixture
def database(tmp_path: Path, made_database: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A database for one test, which every command takes by default."""
    path = tmp_path / "rota.db"
    shutil.copy(made_database, path)
    monkeypatch.setenv("ROTA_DATABASE_URL", str(path))
    return path


@pytest.fixture
def set_time(tmp_path: Path) -> Callable[[str], None]:
    def write(instant: str) -> None:
        (tmp_path / "now").write_text(instant)

    return write


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Carries out a command, with `stdin` as its standard input."""

    def call(*arguments: str, stdin: bytes = b"") -> Ended:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        code = main(arguments)
        captured = capsys.readouterr()
        return Ended(code=code, out=captured.out, err=captured.err)

    return call


@pytest.fixture
def with_job(database: Path, run: Run) -> None:
    """The job `report` exists."""
    assert run("jobs", "put", "report").code == 0


@pytest.fixture
def report(with_job: None, run: Run, set_time: Callable[[str], None], database: Path) -> None:
    """A daily report at nine in New York, on the morning of the 14th: yesterday's has run, today's is to come."""
    set_time("2026-01-12T15:00:00Z")
    create = ["schedules", "create", "--id", "report-7", "--job", "report", "--timezone", "America/New_York"]
    options = ["--cron", "0 9 * * *", "--label", "customer=acme", "--params", '{"of": "sales"}']
    assert run(*create, *options).code == 0
    set_time("2026-01-13T14:00:00Z")
    dispatch_and_work(database)
    set_time("2026-01-14T10:00:00Z")


def lines_of(text: str) -> list[str]:
    """The lines, with the rule below a head as one sign: it is as long as the longest reason."""
    return [re.sub("─+", "─", line) for line in text.splitlines()]


def open_database(path: Path) -> Context:
    """What the use cases are given, to look at what a command did."""
    return open_context(Settings(database_url=str(path)))


def dispatch_and_work(database: Path) -> None:
    """A step of a dispatcher and one of a worker whose only job is `report`, which returns its params."""
    application = Rota(settings=Settings(database_url=str(database)), registry=Registry())
    application.job("report")(lambda context: context.params)
    with application:
        now = application.context.clock.now()
        dispatcher = application.build_dispatcher()
        dispatcher.step(now)
        dispatcher.step(now)
        application.build_worker(inline=True).step(now)
