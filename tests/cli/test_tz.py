"""`rota tz`, and what the doctor and the processes say where the rules of a zone differ."""

import importlib.resources
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rota.cadences import Cadences
from rota.cli.zone_rules import warn_of_zone_rules
from rota.service.context import Context
from rota.service.creation import create_schedule
from rota.service.zone_updates import apply_zones, check_zones
from rota.zones import Zones
from tests.cli.conftest import Run, lines_of, open_database
from tests.cli.processes import Process

OLDER, NEWER = "2019a", "2099a"
NINE = {"job": "report", "timezone": "Europe/Paris", "recurrence": {"cron": "0 9 * * *"}}

pytestmark = pytest.mark.usefixtures("with_job")


@pytest.fixture
def with_rules_of(tmp_path: Path, database: Path) -> Iterator[Callable[[str], Context]]:
    """What another process has, with tz data of some release in which Paris and Atlantis keep London's time."""
    contexts: list[Context] = []

    def make(release: str) -> Context:
        folder = tmp_path / release / "Europe"
        folder.mkdir(parents=True)
        london = Path(str(importlib.resources.files("tzdata"))) / "zoneinfo" / "Europe" / "London"
        for name in ("Paris", "Atlantis"):
            shutil.copy(london, folder / name)
        (folder.parent / "tzdata.zi").write_text(f"# version {release}\n")
        zones = Zones(folder.parent)
        context = replace(open_database(database), zones=zones, cadences=Cadences(zones))
        contexts.append(context)
        return context

    yield make
    for context in contexts:
        context.store.close()


@pytest.fixture
def older(with_job: None, with_rules_of: Callable[[str], Context]) -> None:
    """Two schedules of an older release: one whose instants change with the rules, and one whose instants stay."""
    context = with_rules_of(OLDER)
    create_schedule(context, {"id": "report-7", **NINE})
    create_schedule(context, {"id": "hourly", **NINE, "recurrence": {"every": "PT1H"}})


def test_where_nothing_differs_the_check_ends_with_zero(run: Run) -> None:
    run("schedules", "create", "--job", "report", "--timezone", "Europe/Paris", "--every", "PT1H")
    ended = run("tz", "check")
    assert ended.code == 0
    assert ended.out == "No zone differs: schedules were computed with the rules of tz data 2026f, as here.\n"
    assert run("tz", "check", "--json").wire == {"tzdata": "2026f", "zones": []}
    assert run("tz", "apply").code == 0


@pytest.mark.usefixtures("older")
def test_the_check_tells_what_differs_and_what_to_do(run: Run, database: Path) -> None:
    ended = run("tz", "check")
    assert ended.code == 5
    assert lines_of(ended.out) == [
        "TIMEZONE       COMPUTED WITH   HERE    SCHEDULES   WITH OTHER INSTANTS   WHAT TO DO",
        "─",
        "Europe/Paris   2019a           2026f   2           1                     newer here: apply",
        "",
        "Schedules of these zones are left alone until then: nothing of them is admitted.",
        (
            "The rules are newer here: `rota tz apply` takes them up; with --dry-run it tells what that does to each "
            "schedule."
        ),
    ]
    context = open_database(database)
    assert run("tz", "check", "--json").wire == check_zones(context)
    context.store.close()


@pytest.mark.usefixtures("older")
def test_a_dry_application_tells_each_change_and_writes_nothing(run: Run, database: Path) -> None:
    ended = run("tz", "apply", "--dry-run")
    assert ended.code == 0
    shown = lines_of(ended.out)
    assert shown[:3] == [
        "report-7: version 1 -> 2, takes over 2026-01-10T12:00:02Z (keep_period)",
        "- tzdata: 2019a",
        "+ tzdata: 2026f",
    ]
    assert any(line.startswith("  2026-01-11 09:00 +01:00   2026-01-11T08:00:00Z   2") for line in shown)
    assert shown[-2:] == [
        "tz data 2026f: 1 with a new version, 1 whose instants stay, 0 failed",
        "This was a dry run: nothing was written.",
    ]
    assert run("tz", "check").code == 5
    context = open_database(database)
    assert run("tz", "apply", "--dry-run", "--json").wire == apply_zones(context, dry_run=True)
    context.store.close()


@pytest.mark.usefixtures("older")
def test_applying_takes_the_rules_up(run: Run) -> None:
    ended = run("tz", "apply", "--actor", "ops")
    assert ended.code == 0
    assert lines_of(ended.out) == [
        "SCHEDULE   NEW VERSION",
        "─",
        "report-7   2",
        "tz data 2026f: 1 with a new version, 1 whose instants stay, 0 failed",
    ]
    assert run("tz", "check").code == 0
    assert run("schedules", "show", "report-7", "--json").wire["next_due"] == "2026-01-11T08:00:00Z"
    version = run("schedules", "versions", "report-7", "--json").items[0]
    assert (version["tzdata"], version["actor"], version["reason"]) == ("2026f", "ops", "tzdata")
    assert "- tzdata: 2019a" in run("schedules", "history", "report-7").out


def test_a_schedule_that_cannot_take_them_up_is_named(
    run: Run, with_rules_of: Callable[[str], Context], set_time: Callable[[str], None]
) -> None:
    body = {"id": "once", **NINE, "recurrence": {"at": "2026-01-10T13:30"}}
    create_schedule(with_rules_of(OLDER), body)
    set_time("2026-01-10T13:00:00Z")
    ended = run("tz", "apply")
    assert ended.code == 1
    assert "COULD NOT TAKE THEM UP" in ended.out
    assert any(line.startswith("once       recurrence.at: ") for line in lines_of(ended.out))
    assert lines_of(ended.out)[-1] == "tz data 2026f: 0 with a new version, 0 whose instants stay, 1 failed"


def test_older_rules_are_never_applied(run: Run, with_rules_of: Callable[[str], Context]) -> None:
    create_schedule(with_rules_of(NEWER), {"id": "report-7", **NINE})
    checked = run("tz", "check")
    assert (checked.code, "older here: upgrade" in checked.out) == (5, True)
    applied = run("tz", "apply")
    assert applied.code == 5
    assert "Left alone, since the rules here are older: Europe/Paris." in applied.out
    assert run("schedules", "show", "report-7", "--json").wire["latest_version"] == 1


def test_a_zone_that_is_not_known_here_is_told(run: Run, with_rules_of: Callable[[str], Context]) -> None:
    create_schedule(with_rules_of(NEWER), {"id": "x", **NINE, "timezone": "Europe/Atlantis"})
    ended = run("tz", "check")
    assert ended.code == 5
    assert "this zone is not known here" in ended.out


@pytest.mark.usefixtures("older")
def test_a_schedule_of_other_rules_is_shown_and_says_what_to_do(run: Run) -> None:
    shown = run("schedules", "show", "report-7")
    assert shown.code == 0
    assert "apply the rule change first (rota tz apply)" in shown.out.splitlines()[-1]
    edit = ["schedules", "edit", "report-7", "--gap", "forward", "--dry-run"]
    assert "+ tzdata: 2026f" in run(*edit).out.splitlines()
    refused = run(*edit, "--effective-from", "2026-02-01T00:00:00Z")
    assert (refused.code, len(refused.problems)) == (4, 1)


@pytest.mark.usefixtures("older")
def test_whoever_would_leave_schedules_alone_is_warned(
    database: Path, capsys: pytest.CaptureFixture[str], with_rules_of: Callable[[str], Context]
) -> None:
    context = open_database(database)
    warn_of_zone_rules(context)
    assert capsys.readouterr().err == (
        "rota: zone rules: Those of Europe/Paris are others here (tz data 2026f) than schedules were computed with; "
        "these schedules are left alone. See `rota tz check`, then run `rota tz apply`: it takes up the new rules.\n"
    )
    create_schedule(with_rules_of(NEWER), {"id": "x", **NINE, "timezone": "Europe/Atlantis"})
    warn_of_zone_rules(context)
    assert "Those of Europe/Atlantis, Europe/Paris are" in (warned := capsys.readouterr().err)
    assert "Upgrade the tz data here" in warned
    context.store.close()


@pytest.mark.usefixtures("older")
def test_the_doctor_names_the_zones_and_the_command(run: Run) -> None:
    checks = run("doctor", "--json").wire["checks"]
    assert isinstance(checks, list)
    (check,) = [check for check in checks if check["name"] == "zone rules"]
    assert check["level"] == "warn"
    assert "Europe/Paris" in check["found"]
    assert "rota tz apply" in check["remedy"]


def test_where_nothing_differs_nobody_is_warned(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    context = open_database(database)
    warn_of_zone_rules(context)
    context.store.close()
    assert capsys.readouterr().err == ""


@pytest.mark.slow
@pytest.mark.usefixtures("older")
@pytest.mark.parametrize("words", [["dispatch"], ["up", "--port", "0"]])
def test_a_process_warns_when_it_starts(tmp_path: Path, words: list[str]) -> None:
    with Process(*words, cwd=tmp_path) as process:
        process.wait_for_log("rota: zone rules: Those of Europe/Paris are others here")
