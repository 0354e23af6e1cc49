"""`rota partitions`: the table, what is below it, and the wire form."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import cast

from tests.cli.conftest import Run, lines_of, open_database

LEASE = timedelta(seconds=15)


def hold(database: Path, owner: str, *, limit: int) -> None:
    context = open_database(database)
    now = context.clock.now()
    context.store.commit_presence(owner, now=now, ttl=LEASE)
    context.store.commit_acquisitions(owner, held=[], now=now, ttl=LEASE, limit=limit)
    context.store.close()


def test_without_a_dispatcher_it_says_what_to_start(run: Run, database: Path) -> None:
    ended = run("partitions")
    assert ended.code == 0
    assert lines_of(ended.out) == [
        "0 of 4 held; lag 0 s; due 0, planned 0",
        "No dispatcher is there: start `rota dispatch` or `rota up`.",
        "",
        "PARTITION   OWNER   EPOCH   UNTIL   CHECKPOINT   LAG   DUE   PLANNED DUE",
        "─",
        *(f"{number}           -       0       -       -            0 s   0     0" for number in range(4)),
    ]


def save_daily_report(run: Run) -> None:
    create = ("schedules", "create", "--id", "report-7", "--job", "report", "--timezone", "UTC")
    assert run(*create, "--cron", "0 9 * * *").code == 0


def test_it_tells_all_together_and_who_dispatches_first(
    run: Run, with_job: None, database: Path, set_time: Callable[[str], None]
) -> None:
    save_daily_report(run)
    set_time("2026-01-11T09:00:01.500Z")
    hold(database, "node-a", limit=3)
    hold(database, "node-b", limit=0)
    lines = lines_of(run("partitions", "--all").out)
    assert lines[:6] == [
        "3 of 4 held; lag 1.5 s; due 1, planned 0",
        "",
        "DISPATCHER   PARTITIONS",
        "─",
        "node-a       3",
        "node-b       0",
    ]
    each = lines[9:]
    assert [line.split()[1] for line in each] == ["node-a", "node-a", "node-a", "-"]
    assert all("   1       2026-01-11T09:00:16.500Z   -            " in line for line in each[:3])
    assert [line.split()[-4:] for line in each].count(["1.5", "s", "1", "0"]) == 1


def test_partitions_that_are_held_and_not_late_are_shown_only_on_request(
    run: Run, with_job: None, database: Path, set_time: Callable[[str], None]
) -> None:
    save_daily_report(run)
    hold(database, "node-a", limit=4)
    assert lines_of(run("partitions").out)[4:] == [
        "node-a       4",
        "",
        "4 of 4 are held and not late; `--all` shows them too.",
    ]
    set_time("2026-01-11T09:00:01.500Z")
    hold(database, "node-a", limit=4)
    lines = lines_of(run("partitions").out)
    assert [line.split()[-4:] for line in lines[8:-2]] == [["1.5", "s", "1", "0"]]
    assert lines[-1] == "3 of 4 are held and not late; `--all` shows them too."
    set_time("2026-01-11T09:01:00Z")  # the lease has run out
    assert [line.split()[:2] for line in lines_of(run("partitions").out)[5:]] == [
        [str(number), "-"] for number in range(4)
    ]


def test_the_wire_form_is_that_of_the_api(run: Run, database: Path) -> None:
    hold(database, "node-a", limit=4)
    told = run("partitions", "--json").wire
    assert list(told) == ["at", "dispatchers", "partitions", "totals"]
    assert told["dispatchers"] == [{"owner": "node-a", "partitions": 4}]
    assert len(cast("list[object]", told["partitions"])) == 4, "also what the table leaves out"


def test_it_makes_no_database(run: Run, tmp_path: Path) -> None:
    assert run("partitions", "--database", "nothing.db").code == 1
    assert not (tmp_path / "nothing.db").exists()
