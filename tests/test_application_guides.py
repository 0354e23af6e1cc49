"""The guides' Python is run as it stands: each block is the file that its first line names."""

import importlib
import json
import os
import re
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from inspect import signature
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from rota import Rota, RunContext
from rota.api.application import create_api
from rota.cli import main
from rota.config import Settings
from rota.domain.errors import Conflict
from rota.service.representation import Wire
from rota.store.port import Store
from rota.store.sql import SqlStore
from rota.testing import World, world
from rota.wiring import open_context
from tests.doctored_zones import doctored_zones

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
EDITING = ROOT / "docs/guides/editing.md"
OPERATING = ROOT / "docs/guides/operating.md"
GUIDES = [
    ROOT / "docs/guides/effects.md",
    ROOT / "docs/guides/handlers.md",
    ROOT / "docs/guides/testing.md",
    EDITING,
]
BENEATH = {
    "build_dispatcher",
    "build_relay",
    "build_worker",
    "context",
    "declare_jobs",
    "gateway",
    "own_settings",
    "register_declared_jobs",
}
"""Of an application, what tests and the command line use; users need none of it."""

BLOCK = re.compile(r"^```python\n(# ([\w./]+)\n.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current directory, from which modules are imported; they are forgotten at the end."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if Path(getattr(module, "__file__", None) or "/").parent == tmp_path:
            del sys.modules[name]


def write_blocks(page: Path, folder: Path) -> list[Path]:
    text = page.read_text()
    blocks = BLOCK.findall(text)
    assert len(blocks) == text.count("```python"), "a block does not begin with the name of its file"
    paths = [folder / name for _, name in blocks]
    assert len(set(paths)) == len(paths), "two blocks have the same name"
    for path, (code, _) in zip(paths, blocks, strict=True):
        path.write_text(code)
    return paths


@pytest.mark.parametrize("page", [README, *GUIDES], ids=lambda page: str(page.name))
def test_the_modules_of_a_page_run(page: Path, folder: Path) -> None:
    paths = write_blocks(page, folder)
    assert paths
    for path in paths:
        importlib.import_module(path.stem)


def test_the_handlers_of_the_guide_do_what_it_says(folder: Path) -> None:
    write_blocks(ROOT / "docs/guides/handlers.md", folder)
    reports, reminders, exports = map(importlib.import_module, ("reports", "reminders", "exports"))

    def settled(app: Rota, job: str, **params: object) -> Wire:
        with World(registry=app.registry) as world:
            due = world.now + timedelta(seconds=1)
            world.app.create_schedule(id="b", job=job, timezone="UTC", recurrence={"at": due}, params=params)
            world.pass_time(timedelta(minutes=5))
            [run] = world.app.runs()
            return world.app.get_run(str(run["run_id"]))

    assert settled(reports.app, "sales_report")["result"] == {"day": "2026-01-01", "rows": 2}
    assert settled(reminders.app, "reminder", booking="b-1")["state"] == "succeeded"
    assert [mail["Message-ID"] for mail in reminders.outgoing] == ["<b.1.20260101T000001Z@shop.example>"]
    reminders.bookings["b-1"]["confirmed"] = True
    assert settled(reminders.app, "reminder", booking="b-1")["state"] == "moot"
    assert settled(reminders.app, "reminder", booking="b-2")["attempt"] == 1
    for _ in range(2):
        assert settled(reminders.app, "ledger_entry", amount=7)["state"] == "succeeded"
    with closing(sqlite3.connect("ledger.db")) as ledger:
        assert ledger.execute("SELECT * FROM entries").fetchall() == [("b.1.20260101T000001Z", 7)]
    assert settled(exports.app, "export")["result"] == {"pages": 100}
    assert settled(exports.app, "notify")["result"] == "sent"


def test_the_guard_and_the_message_of_the_guide_do_what_it_says(folder: Path) -> None:
    write_blocks(ROOT / "docs/guides/handlers.md", folder)
    reservations, receiving = map(importlib.import_module, ("reservations", "receiving"))
    with World(registry=reservations.app.registry) as world:
        due = world.now + timedelta(seconds=1)
        for number in (7, 8):
            world.app.create_schedule(
                id=f"r-{number}",
                job="expire_reservation",
                timezone="UTC",
                recurrence={"at": due},
                params={"reservation": number},
            )
        world.pass_time(timedelta(minutes=1))
        states = {str(run["schedule_id"]): run["state"] for run in world.app.runs()}
    assert states == {"r-7": "succeeded", "r-8": "moot"}
    assert reservations.reservations == {7: "expired", 8: "confirmed"}
    receiving.app.declare("notify_shop")
    receiving.app.register_jobs()
    receiving.app.create_schedule(
        id="n", job="notify_shop", timezone="UTC", recurrence={"cron": "0 0 1 1 *"}, params={"shop": 3}
    )
    run_id = str(receiving.app.run_now("n")["run_id"])
    message = {"run_id": run_id, "attempt": 1}
    assert receiving.receive(message) == "done"
    assert receiving.app.get_run(run_id)["result"] == {"notified": 3}
    assert receiving.receive(message) == "a duplicate: nothing to do"
    receiving.app.close()


def test_the_effects_of_the_guide_are_done_once(folder: Path) -> None:
    write_blocks(ROOT / "docs/guides/effects.md", folder)
    orders = importlib.import_module("orders")
    with World(registry=orders.app.registry) as world:
        due = world.now + timedelta(seconds=1)
        world.app.create_schedule(
            id="o", job="settle_order", timezone="UTC", recurrence={"at": due}, params={"amount": 5}
        )
        world.pass_time(timedelta(minutes=1))
        [run] = world.app.runs()
        shown = world.app.get_run(str(run["run_id"]))
    assert (shown["state"], shown["attempt"], shown["result"]) == ("succeeded", 2, {"charge_id": "ch-1"})
    assert orders.charged == [("o.1.20260101T000001Z", 5)]
    assert orders.mailed == ["ch-1"]


def test_the_guide_tells_every_attribute_of_a_context() -> None:
    text = (ROOT / "docs/guides/handlers.md").read_text()
    names = [name for name in dir(RunContext) if not name.startswith("_")]
    assert [name for name in names if re.search(rf"^\|.*`{name}[`(]", text, re.MULTILINE) is None] == []


def test_the_guide_tells_every_call_of_the_library() -> None:
    text = (ROOT / "docs/guides/handlers.md").read_text()
    told = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| [\w ]+ \| (`.*) \|$", text, re.MULTILINE))))
    names = {name for name in dir(Rota) if not name.startswith("_")}
    assert names - told == BENEATH
    assert told - names == {"job", "declare"}, "which are the registry's"


def test_every_call_that_has_a_dry_run_is_told() -> None:
    text = (ROOT / "docs/guides/handlers.md").read_text()
    [sentence] = re.findall(r"^(.*) take `dry_run=True`", text, re.MULTILINE)
    calls = [getattr(Rota, name) for name in dir(Rota) if not name.startswith("_")]
    dry = {call.__name__ for call in calls if callable(call) and "dry_run" in signature(call).parameters}
    assert set(re.findall(r"`(\w+)`", sentence)) == dry


@pytest.mark.slow
def test_the_tests_of_the_testing_guide_pass(folder: Path) -> None:
    write_blocks(ROOT / "docs/guides/testing.md", folder)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "11 passed" in done.stdout


def test_the_example_of_a_world_works_with_the_handler_of_the_readme(folder: Path) -> None:
    write_blocks(README, folder)
    assert world.__doc__ is not None
    [example] = re.findall(r"::\n\n((?:    .*\n|\n)+)", world.__doc__)
    exec(re.sub(r"^    ", "", example, flags=re.MULTILINE), {})


# --- the guide to editing: its table, its answers and its commands ---

BEFORE_THE_EDIT = datetime(2026, 1, 14, 10, tzinfo=UTC)
TERMINAL_COLUMNS = "124"
TZDATA = re.compile(r"\b20\d\d[a-z]\b")
"""A release of the tz data: which one is pinned is not told by the guide."""


def life_of_the_guide(store: Store | None = None) -> World:
    """The guide's report on the Wednesday on which it moves, just before it does."""
    world = World(store=store, now=datetime(2026, 1, 13, 12, tzinfo=UTC))
    world.app.create_schedule(
        id="report-7",
        job="echo",
        timezone="America/New_York",
        recurrence={"cron": "0 9 * * *"},
        actor="ops",
    )
    world.pass_time(BEFORE_THE_EDIT)
    return world


def blocks_of(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", EDITING.read_text(), re.MULTILINE | re.DOTALL)


def test_the_table_of_the_editing_guide_is_what_happened(folder: Path) -> None:
    write_blocks(EDITING, folder)
    moving = importlib.import_module("moving")
    zones = {version["version"]: str(version["timezone"]) for version in moving.app.versions("report-7")}
    rows = re.findall(
        r"^\| \w+ \d+ \| ([\d:]+) ([\w ]+) \| ([-+\d:]+) \| (\S+) \| (\d) \| `(\S+)` \| (.*) \|$",
        EDITING.read_text(),
        re.MULTILINE,
    )
    told = {
        (instant, int(version)): (time, place, offset, key, what)
        for time, place, offset, instant, version, key, what in rows
    }
    entries = moving.app.occurrences("report-7")
    assert set(told) == {
        (entry.get("scheduled_at", entry.get("from")), entry["version"]) for entry in entries
    }
    for entry in entries:
        instant = entry.get("scheduled_at", entry.get("from"))
        time, place, offset, key, what = told[instant, entry["version"]]
        assert zones[entry["version"]].endswith(place.replace(" ", "_"))
        local = datetime.fromisoformat(str(instant)) + timedelta(hours=int(offset[:3]))
        assert local.strftime("%H:%M") == time
        if entry["kind"] == "run":
            assert (entry["offset"], entry["period_key"], entry["state"]) == (offset, key, "succeeded")
            assert ("**carried**" in what) is (entry["carried_by"] is not None)
        else:
            assert (entry["reason"], entry["count"]) == ("period_used", 1)
            assert entry["note"] == f"{key} is used by run {what.rpartition(' ')[2]}"


def test_the_dry_run_of_the_editing_guide_is_what_the_api_answers() -> None:
    [shown] = blocks_of("json")
    with life_of_the_guide() as world, TestClient(create_api(world.app.context)) as client:
        told = client.patch(
            "/schedules/report-7",
            params={"dry_run": "true"},
            headers={"If-Match": '"1"'},
            json={"timezone": "Europe/London"},
        ).json()
        assert told == world.app.edit("report-7", timezone="Europe/London", dry_run=True)
    assert {name: told[name] for name in json.loads(shown)} == json.loads(shown)
    text = EDITING.read_text()
    lists = [name for name, value in told.items() if isinstance(value, list)]
    assert [name for name in lists if f"| `{name}` |" not in text] == []


@pytest.fixture
def shell(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], str]:
    """Carries out a command in the guide's life, as in a terminal, and answers what it printed."""
    for name in [name for name in os.environ if name.startswith("ROTA_")]:
        monkeypatch.delenv(name)
    context = open_context(Settings(database_url=str(folder / "rota.db"), partitions=4))
    life_of_the_guide(context.store).close()
    (folder / "clock").write_text(BEFORE_THE_EDIT.isoformat())
    monkeypatch.setenv("ROTA_CLOCK_FILE", str(folder / "clock"))
    monkeypatch.setenv("COLUMNS", TERMINAL_COLUMNS)

    def call(command: str) -> str:
        capsys.readouterr()
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        code = main(shlex.split(command)[1:])
        printed = capsys.readouterr()
        assert (code, printed.err) == (0, ""), command
        return printed.out

    return call


def test_the_commands_of_the_editing_guide_answer_as_it_shows(
    folder: Path, shell: Callable[[str], str]
) -> None:
    """Those of a `console` block with what it shows, those of an `sh` block without a complaint."""
    for document in blocks_of("toml"):
        (folder / document.partition("\n")[0].removeprefix("# ")).write_text(document)
    blocks = re.findall(r"^```(console|sh)\n(.*?)^```$", EDITING.read_text(), re.MULTILINE | re.DOTALL)
    for kind, block in blocks:
        commands = re.findall(r"^(?:\$ )?(rota .*)$", block, re.MULTILINE)
        assert commands
        answers = "".join(f"$ {command}\n{shell(command)}" for command in commands)
        if kind == "console":
            assert TZDATA.sub("RELEASE", answers) == TZDATA.sub("RELEASE", block)


def test_a_version_waits_also_where_nothing_is_left_before_it_as_the_guide_says() -> None:
    with life_of_the_guide() as world:
        world.pass_time(timedelta(hours=6))
        shown = world.app.edit("report-7", params={"x": 1}, effective_from="2026-01-14T23:00:00Z")
        assert shown["version"] == 1
        assert world.app.run_now("report-7")["version"] == 1
        world.app.edit("report-7", at_once=True, replaces_pending=True)
        assert world.app.get_schedule("report-7")["version"] == 3


# --- the guide to operating ---


@pytest.mark.slow
def test_an_update_of_the_tz_data_is_rehearsed_on_a_copy_as_the_guide_says(tmp_path: Path) -> None:
    context = open_context(Settings(database_url=str(tmp_path / "copy.db"), partitions=4))
    with World(store=context.store) as world:
        world.app.create_schedule(
            id="report-7", job="echo", timezone="Europe/Paris", recurrence={"cron": "0 9 * * *"}
        )
    [block] = re.findall(r"^```\n(mkdir newer.*?)^```$", OPERATING.read_text(), re.MULTILINE | re.DOTALL)
    script = block.replace(".venv/", f"{sys.prefix}/")
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"Europe/Paris +\S+ +2099a +1 +1", done.stdout)
    assert "1 with a new version" in done.stdout


def test_an_edit_mends_a_schedule_in_error(tmp_path: Path) -> None:
    store = open_context(Settings(database_url=str(tmp_path / "rota.db"), partitions=4)).store
    assert isinstance(store, SqlStore)
    with life_of_the_guide(store) as world:
        with store._database.writing() as connection:
            connection.exec_driver_sql("UPDATE versions SET definition = replace(definition, '0 9', '0 99')")
            connection.exec_driver_sql("UPDATE schedules SET cadence_id = 'no cadence'")
        world.pass_time(timedelta(days=1))
        assert world.app.get_schedule("report-7")["status"] == "error"
        with pytest.raises(Conflict, match="still cannot be computed"):
            world.app.resume("report-7")
        world.app.edit("report-7", recurrence={"cron": "0 9 * * *"})
        world.app.resume("report-7")
        world.pass_time(timedelta(days=1))
        assert [entry.get("state", entry["reason"]) for entry in world.app.occurrences("report-7")] == [
            "succeeded",
            "error",
            "succeeded",
        ]


def test_a_schedule_that_cannot_take_new_rules_up_can_be_ended(tmp_path: Path) -> None:
    newer = doctored_zones(tmp_path / "zones", {"Europe/Paris": "America/New_York"}, release="2099a")
    with World() as before:
        before.app.create_schedule(
            id="once", job="echo", timezone="Europe/Paris", recurrence={"at": "2027-03-14T02:30"}
        )
        after = World(store=before.store, now=before.now, zones=newer, log_level="critical")
        assert after.app.apply_zones()["counts"] == {"version": 0, "restamped": 0, "failed": 1}
        assert after.app.end("once")["status"] == "ended"
        after.settle()
        assert after.app.check_zones()["zones"] == []
