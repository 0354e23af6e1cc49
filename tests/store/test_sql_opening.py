"""Opening a SQL store: addresses, refusals that say what to do, and what a connection is set to."""

import sqlite3
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from rota.domain.job import Job
from rota.store.port import StoreUnavailable
from rota.store.sql import SqlStore, open_sql_store
from rota.store.sql.sqlite import switched_mode
from tests.contract.builders import NINE
from tests.store.raw import connect, execute

SWITCH = "PRAGMA journal_mode=WAL"
IMPATIENT = timedelta(milliseconds=20)


@pytest.mark.parametrize("form", ["{path}", "sqlite:///{path}", "sqlite+pysqlite:///{path}"])
def test_a_store_is_opened_by_path_or_address(tmp_path: Path, form: str) -> None:
    path = tmp_path / "rota.db"
    with_job = open_sql_store(form.format(path=path))
    with_job.commit_job(Job(name="mail"), now=NINE)
    with_job.close()
    again = open_sql_store(str(path))
    assert again.get_job("mail") == Job(name="mail")
    again.close()


def test_a_path_may_have_any_character(tmp_path: Path) -> None:
    path = tmp_path / "rota?mode=ro #1 %20 ü.db"
    open_sql_store(str(path)).close()
    assert path.exists()


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("sqlite:///:memory:", "use the memory store"),
        ("sqlite://", "use the memory store"),
        (":memory:", "use the memory store"),
        ("file:rota.db", "use the memory store"),
        ("", "use the memory store"),
        ("sqlite:///rota.db?mode=ro", "options"),
        ("mysql://localhost/rota", "SQLite or PostgreSQL, not in mysql"),
        ("sqlite:rota:///", "no database address"),
    ],
)
def test_an_address_that_names_no_file_is_refused(url: str, problem: str) -> None:
    with pytest.raises(StoreUnavailable, match=problem):
        open_sql_store(url)


def test_a_sqlite_that_is_too_old_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))
    with pytest.raises(StoreUnavailable, match=r"SQLite 3\.37\.0 or newer"):
        open_sql_store(str(tmp_path / "rota.db"))


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=f"no folder {tmp_path / 'none'}"):
        open_sql_store(f"sqlite:///{tmp_path / 'none' / 'rota.db'}")


def test_what_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    letter = tmp_path / "letter.txt"
    letter.write_text("Dear reader, " * 200)
    with pytest.raises(StoreUnavailable, match="not a database"):
        open_sql_store(str(letter))
    with pytest.raises(StoreUnavailable, match="unable to open"):
        open_sql_store(str(tmp_path))
    assert letter.read_text() == "Dear reader, " * 200


def test_a_commit_survives_a_loss_of_power(store: SqlStore, path: Path) -> None:
    assert execute(path, "PRAGMA journal_mode") == [("wal",)]
    with store._database.writing() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2


def test_a_reader_cannot_write(store: SqlStore) -> None:
    with pytest.raises(StoreUnavailable, match="readonly"), store._database.reading() as connection:
        connection.exec_driver_sql("DELETE FROM jobs")


def test_a_writer_that_waits_too_long_is_told_so_and_can_try_again(path: Path) -> None:
    store = open_sql_store(str(path), busy_timeout=IMPATIENT)
    other = connect(path)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="locked"):
        store.commit_job(Job(name="mail"), now=NINE)
    other.execute("ROLLBACK")
    assert store.commit_job(Job(name="mail"), now=NINE)
    other.close()
    store.close()


def test_a_thread_that_waits_too_long_for_another_is_told_so(path: Path) -> None:
    store = open_sql_store(str(path), busy_timeout=IMPATIENT)
    with store._database.writing(), pytest.raises(StoreUnavailable, match="waited too long"):
        store.commit_job(Job(name="mail"), now=NINE)
    assert store.commit_job(Job(name="mail"), now=NINE)
    store.close()


def test_a_reader_does_not_wait_for_a_writer(store: SqlStore, path: Path) -> None:
    store.commit_job(Job(name="mail"), now=NINE)
    other = connect(path)
    other.execute("BEGIN IMMEDIATE")
    other.execute("DELETE FROM jobs")
    assert store.get_job("mail") == Job(name="mail")
    other.execute("ROLLBACK")
    other.close()


def test_a_full_disk_is_told_and_leaves_nothing_half_written(store: SqlStore) -> None:
    with store._database.writing() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
    with store._database.writing() as connection:
        connection.exec_driver_sql(f"PRAGMA max_page_count={pages + 1}")
    with pytest.raises(StoreUnavailable, match="full"):
        store.commit_job(Job(name="mail", description="x" * 100_000), now=NINE)
    assert store.list_jobs(after=None, limit=10) == []
    assert store.commit_job(Job(name="mail"), now=NINE)


def test_a_lost_table_is_told(store: SqlStore, path: Path) -> None:
    execute(path, "DROP TABLE settings")
    with pytest.raises(StoreUnavailable, match="settings"):
        store.ping()


def test_a_look_into_the_file_by_the_standard_module_loses_no_commit(store: SqlStore, path: Path) -> None:
    store.commit_job(Job(name="mail"), now=NINE)
    assert execute(path, "SELECT name FROM jobs") == [("mail",)]
    store.commit_job(Job(name="report"), now=NINE)
    script = "import sqlite3, sys; sys.exit(len(sqlite3.connect(sys.argv[1]).execute('SELECT * FROM jobs').fetchall()))"
    assert subprocess.run([sys.executable, "-c", script, str(path)], check=False).returncode == 2


def test_a_switch_to_the_log_is_tried_again_after_that_of_another_process() -> None:
    cursor = BusyCursor()
    assert switched_mode(cursor) == "wal"
    assert cursor.executed == [SWITCH, "BEGIN IMMEDIATE", "ROLLBACK", SWITCH]


class BusyCursor:
    """A cursor whose first switch of the journal meets another one."""

    def __init__(self) -> None:
        self.executed: list[str] = []

    def execute(self, statement: str) -> None:
        self.executed.append(statement)
        if self.executed == [SWITCH]:
            raise sqlite3.OperationalError("database is locked")

    def fetchone(self) -> tuple[str]:
        return ("wal",)


def test_threads_may_open_a_new_database_at_once(tmp_path: Path) -> None:
    barrier = threading.Barrier(6)
    answers: list[int] = []

    def open_it() -> None:
        barrier.wait()
        store = open_sql_store(str(tmp_path / "rota.db"))
        answers.append(store.ensure_partitions(4))
        store.close()

    threads = [threading.Thread(target=open_it) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [4] * 6


@pytest.mark.slow
def test_processes_may_open_a_new_database_at_once(tmp_path: Path) -> None:
    script = (
        "import sys; from rota.store.sql import open_sql_store; sys.stdin.read(1);"
        "store = open_sql_store(sys.argv[1]); assert store.ensure_partitions(4) == 4; store.close()"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "rota.db")]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
    complaints = [process.communicate(b"x", timeout=60)[1] for process in processes]
    assert complaints == [b""] * 4
    assert [process.returncode for process in processes] == [0] * 4
