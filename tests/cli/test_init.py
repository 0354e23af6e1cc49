"""`rota init`: the database is made once, with a number of partitions that is fixed from then on."""

from pathlib import Path

import pytest

from rota.config import Settings
from rota.wiring import open_store
from tests.cli.conftest import PARTITIONS, Run


def partitions_of(path: Path) -> int:
    store = open_store(Settings(database_url=str(path)))
    try:
        return len(store.list_partitions())
    finally:
        store.close()


def test_init_makes_a_database_with_so_many_partitions(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    ended = run("init", "--database", str(path), "--partitions", "7")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == "The database was made, with 7 partitions; its tables are up to date.\n"
    assert partitions_of(path) == 7


def test_without_a_number_a_database_gets_the_one_that_is_set(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("init", "--database", "one.db").out.startswith("The database was made, with 64 partitions;")
    monkeypatch.setenv("ROTA_PARTITIONS", "1")
    assert run("init", "--database", "two.db").out.startswith("The database was made, with 1 partition;")


@pytest.mark.parametrize("said", [(), ("--partitions", str(PARTITIONS))])
def test_the_same_number_or_none_tells_what_there_is(run: Run, database: Path, said: tuple[str, ...]) -> None:
    ended = run("init", *said)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == f"The database has {PARTITIONS} partitions; its tables are up to date.\n"
    assert partitions_of(database) == PARTITIONS


@pytest.mark.parametrize("is_by_environment", [True, False])
def test_another_number_is_a_conflict_in_one_line(
    run: Run, database: Path, monkeypatch: pytest.MonkeyPatch, is_by_environment: bool
) -> None:
    if is_by_environment:
        monkeypatch.setenv("ROTA_PARTITIONS", "8")
    ended = run("init") if is_by_environment else run("init", "--partitions", "8")
    assert (ended.code, ended.out) == (4, "")
    assert ended.problems == [
        f"rota: The database has {PARTITIONS} partitions, which is fixed; 8 would need a new database."
    ]
    assert partitions_of(database) == PARTITIONS


def test_a_number_that_cannot_be_is_refused_before_anything_is_made(run: Run, tmp_path: Path) -> None:
    ended = run("init", "--database", "new.db", "--partitions", "0")
    assert ended.code == 2
    assert ended.problems[0].startswith("rota: --partitions: ")
    assert not (tmp_path / "new.db").exists()
