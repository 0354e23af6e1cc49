"""How commands fail: one line each, an exit code by kind, and never a traceback."""

from pathlib import Path

import pytest

from rota.cli.errors import ExitCode, Failed, Usage, exit_code_of, fail
from rota.clock import ClockUnreadable
from rota.domain import errors
from rota.store.port import StoreUnavailable
from tests.cli.conftest import Run

FIELD = errors.FieldError("timezone", "Give one.")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nonsense"], "There is no command 'nonsense'; there are up, serve,"),
        (["schedulse"], "did you mean 'schedules'?"),
        (["schedules", "nonsense"], 'Unknown command "nonsense".'),
        (["schedules", "show"], "SCHEDULE_ID: Give it; `rota schedules show --help`"),
        (["schedules", "show", "a", "b"], "'b' is one argument too many"),
        (["preview", "--crom", "x"], "Unknown option: --crom. Did you mean --cron?"),
        (["preview", "--tz", "UTC"], "There is no --tz; did you mean --timezone?"),
        (["preview", "--tz=UTC"], "did you mean --timezone?"),
        (["jobs", "list", "--db", "x"], "did you mean --database?"),
        (["preview", "--cron"], "--cron requires an argument"),
        (["preview", "--count", "x"], "Invalid value for --count: 'x' is not a whole number."),
        (["preview", "--count", "1.5"], "Invalid value for --count: '1.5' is not a whole number."),
        (["preview", "--cron", "x", "--cron", "y"], "--cron is given twice"),
        (["up", "--port", "65536"], "--port: "),
        (["up", "--concurrency", "0"], "--concurrency: "),
        (["demo", "--nonsense"], "folder: Give at most one folder"),
        (
            ["demo", "nope"],
            "There is no story 'nope': `rota demo` tells two weeks of a report, `rota demo edit`",
        ),
        (["work", "module"], "'module' names no application; write MODULE:app"),
        (["work", "a b:app"], "'a b:app' names no application"),
        (["work", "missing_module:app"], "missing_module:app: There is no module 'missing_module' in "),
    ],
)
@pytest.mark.usefixtures("database")
def test_a_mistyped_command_is_answered_with_one_line(run: Run, arguments: list[str], says: str) -> None:
    ended = run(*arguments)
    assert ended.code == 2
    assert len(ended.problems) == 1, ended.err
    assert ended.problems[0].startswith("rota: ")
    assert says in ended.problems[0]
    assert ended.out == ""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InvalidRequest(FIELD), ExitCode.USAGE),
        (errors.InvalidExpression("hour", "Give one."), ExitCode.USAGE),
        (errors.MalformedBody("It is not JSON."), ExitCode.USAGE),
        (errors.TooLarge("It is too large.", field="params"), ExitCode.USAGE),
        (Usage("Type it."), ExitCode.USAGE),
        (errors.NotFound("schedule", "x"), ExitCode.NOT_FOUND),
        (errors.Conflict("It is taken."), ExitCode.CONFLICT),
        (errors.Stale("It changed."), ExitCode.CONFLICT),
        (errors.IllegalTransition("It cannot."), ExitCode.CONFLICT),
        (errors.ZoneRulesDiffer("They differ."), ExitCode.CONFLICT),
        (StoreUnavailable("It is locked."), ExitCode.FAILED),
        (ClockUnreadable("It is empty."), ExitCode.FAILED),
        (Failed("It cannot."), ExitCode.FAILED),
    ],
)
def test_the_exit_code_says_what_kind_of_error_it_was(
    error: errors.RotaError, code: ExitCode, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fail(error) is exit_code_of(error) is code
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_each_bad_field_has_a_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    fail(errors.InvalidRequest(FIELD, errors.FieldError("recurrence.cron", "Two\nlines and \x1b[2J.")))
    assert capsys.readouterr().err == ("rota: --timezone: Give one.\nrota: --cron: Two lines and \\x1b[2J.\n")


def test_the_field_that_is_too_large_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    fail(errors.TooLarge("It has 9 bytes.", field="params"))
    assert capsys.readouterr().err == "rota: --params: It has 9 bytes.\n"


def test_a_command_that_reads_makes_no_database(run: Run, tmp_path: Path) -> None:
    ended = run("schedules", "list", "--database", "missing.db")
    assert ended.code == 1
    assert ended.problems == [
        "rota: There is no database missing.db; `rota up --database missing.db` makes it."
    ]
    assert not (tmp_path / "missing.db").exists()


def test_a_command_that_writes_makes_one(run: Run, tmp_path: Path) -> None:
    assert run("jobs", "put", "sales", "--database", "new.db").code == 0
    assert (
        run("jobs", "list", "--database", f"sqlite:///{tmp_path / 'new.db'}", "--json").items[0]["name"]
        == "sales"
    )


@pytest.mark.parametrize(
    ("address", "code"),
    [("missing/folder/x.db", 1), ("postgresql://host/x", 1), ("nonsense://", 2), ("mysql://host/x", 2)],
)
def test_a_database_that_cannot_be_opened_is_one_line(run: Run, address: str, code: int) -> None:
    ended = run("jobs", "put", "sales", "--database", address)
    assert (ended.code, len(ended.problems)) == (code, 1)


def test_a_file_that_is_no_database_is_one_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("This is no database, and long enough to have a header.\n" * 10)
    ended = run("jobs", "list", "--database", "text.db")
    assert (ended.code, len(ended.problems)) == (1, 1)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("ROTA_PORT", "http", "Give a whole number, 0 to 65535; 'http' is none."),
        ("ROTA_LEASE_SECONDS", "0", "Give a number, 6 to 600; '0' is none."),
        ("ROTA_POLL_SECONDS", "0", "Give a number, more than 0, at most 60; '0' is none."),
        ("ROTA_LOG_LEVEL", "loud", "Give one of debug, info, warning, error; 'loud' is none."),
        ("ROTA_RETENTION_DAYS", "0", "Give a whole number, 1 to 36500; '0' is none."),
        ("ROTA_PARTITIONS", "0", "Give a whole number, 1 to 4096; '0' is none."),
    ],
)
@pytest.mark.usefixtures("database")
def test_a_bad_setting_is_named_by_its_variable_and_told_in_plain_words(
    run: Run, monkeypatch: pytest.MonkeyPatch, name: str, value: str, says: str
) -> None:
    monkeypatch.setenv(name, value)
    ended = run("jobs", "list")
    assert ended.code == 2
    assert ended.problems == [f"rota: {name}: {says}"]


@pytest.mark.usefixtures("database")
def test_an_unreadable_clock_file_is_one_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "now").write_text("noon")
    ended = run("preview", "--cron", "0 9 * * *", "--timezone", "UTC")
    assert (ended.code, len(ended.problems)) == (1, 1)


def test_version_and_help_answer(run: Run) -> None:
    assert run("--version").out.startswith("rota ")
    assert "schedules" in run("--help").out
    assert "--timezone" in run("schedules", "create", "--help").out
    assert run().code == 0
