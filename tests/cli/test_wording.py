"""Errors in the words of the command line where options were typed, and of the wire form where a file was read."""

import pytest

from rota.cli.wording import OPTIONS, in_options, option_of
from rota.domain.edit_form import EDIT_FIELDS
from rota.domain.errors import FieldError
from rota.service.creation import SCHEDULE_FIELDS
from rota.service.occurrences import PREVIEW_FIELDS
from tests.cli.conftest import Run

RULE = "--cron, --at, --rrule or --every"
WITHOUT_OPTION = {"overlap"}
"""It has one value only."""


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ([], f"{RULE}: Give one of them."),
        (["--anchor", "2026-01-01T00:00:00Z"], f"{RULE}: Give one of them."),
        (
            ["--at", "2026-02-01T09:00", "--cron", "0 9 * * *"],
            f"{RULE}: Give exactly one of them; given are --at, --cron.",
        ),
        (
            ["--cron", "0 9 * * *", "--anchor", "2026-01-01T00:00:00Z"],
            "--anchor: Only --every has an anchor; leave it out beside --cron.",
        ),
        (
            ["--every", "P1D"],
            (
                "--every: P1D reads as calendar days, which are not always 24 hours; "
                "use --cron or --rrule for those, or PT24H for elapsed time"
            ),
        ),
        (
            ["--every", "PT1H", "--overdue", "foo:bar"],
            "--overdue: Give latest_only[:PT1M], expire:PT5M or catch_up_all[:PT1H].",
        ),
        (
            ["--every", "PT1H", "--overdue", "expire"],
            "--overdue: Say after how long an occurrence expires, such as expire:PT5M.",
        ),
        (
            ["--every", "PT1H", "--starts-at", "2027-01-01T00:00:00Z", "--ends-at", "2027-01-01T00:00:00Z"],
            "--ends-at: The end lies not after --starts-at; give a later instant.",
        ),
        (
            ["--at", "2026-03-29T02:30"],
            (
                "--at: 2026-03-29T02:30 does not exist in Europe/Berlin: the clocks go forward at "
                "2026-03-29T01:00:00Z. Give another time, or --gap forward."
            ),
        ),
        (
            ["--at", "2026-02-01T09:00", "--period", "day"],
            "--period: A one-time schedule has the period once, not day; leave the option out.",
        ),
        (
            ["--every", "PT1H", "--max-occurrences", "9999999"],
            "--max-occurrences: Give a whole number from 1 to 10000, or leave it out.",
        ),
        (
            ["--every", "PT1H", "--idempotency-key", ""],
            "--idempotency-key: Give 1 to 255 printable ASCII characters.",
        ),
    ],
)
@pytest.mark.usefixtures("with_job")
def test_an_option_is_named_as_it_is_typed(run: Run, options: list[str], line: str) -> None:
    ended = run("schedules", "create", "--job", "report", "--timezone", "Europe/Berlin", *options)
    assert (ended.code, ended.problems) == (2, [f"rota: {line}"])


@pytest.mark.usefixtures("database")
def test_a_missing_job_is_answered_with_the_command_that_makes_it(run: Run) -> None:
    ended = run("schedules", "create", "--job", "x", "--timezone", "UTC", "--every", "PT1H")
    assert ended.problems == [
        "rota: --job: There is no job 'x'; start a worker that has it, or create it by `rota jobs put NAME`."
    ]


@pytest.mark.usefixtures("with_job")
def test_a_used_key_is_told_as_the_option(run: Run) -> None:
    create = ["schedules", "create", "--job", "report", "--timezone", "UTC", "--idempotency-key", "k"]
    assert run(*create, "--every", "PT1H").code == 0
    assert run(*create, "--every", "PT2H").problems == [
        "rota: The --idempotency-key 'k' was used with another request; choose a new key."
    ]


@pytest.mark.usefixtures("with_job")
def test_what_is_wrong_in_a_file_keeps_the_words_of_the_file(run: Run) -> None:
    body = b'{"job": "report", "timezone": "UTC", "recurrence": {"at": "9"}, "overdue": {"policy": "foo"}}'
    ended = run("schedules", "create", "--file", "-", stdin=body)
    assert [line.split(": ")[1] for line in ended.problems] == ["recurrence.at", "overdue.policy"]
    assert 'Give an object with "policy"' in ended.problems[1]
    other = run("schedules", "create", "--file", "-", stdin=body.replace(b"report", b"missing"))
    assert other.problems[0].startswith("rota: job: ")
    assert other.problems[0].endswith("or create it by `rota jobs put NAME`.")
    keyed = run("schedules", "create", "--file", "-", "--idempotency-key", "", stdin=body)
    assert keyed.problems[0].startswith("rota: --idempotency-key: ")


@pytest.mark.usefixtures("with_job")
def test_options_beside_a_file_are_named(run: Run) -> None:
    ended = run("schedules", "create", "--file", "-", "--job", "report", "--every", "PT1H")
    assert ended.problems == ["rota: --file: The definition is in the file; leave out --every, --job."]


@pytest.mark.parametrize("field", sorted((SCHEDULE_FIELDS | EDIT_FIELDS | PREVIEW_FIELDS) - WITHOUT_OPTION))
def test_every_field_has_its_option(field: str) -> None:
    assert OPTIONS[field].startswith("--")


@pytest.mark.parametrize("option", sorted(set(OPTIONS.values()) - {RULE}))
def test_every_option_of_the_table_exists(run: Run, option: str) -> None:
    schedules = ("create", "list", "pause", "edit", "plan", "move", "backfill")
    commands = (*(["schedules", name] for name in schedules), ["runs", "list"])
    helps = [run(*command, "--help").out for command in (*commands, ["preview"])]
    assert any(f"{option} " in text for text in helps)


def test_a_field_without_an_option_keeps_its_name() -> None:
    assert option_of("recurrence.surprise") == "recurrence.surprise"
    assert option_of("labels.customer") == "--label"
    assert in_options(FieldError("name", "Give one.")) == FieldError("name", "Give one.")


def test_the_help_says_what_is_required(run: Run) -> None:
    text = " ".join(run("schedules", "create", "--help").out.replace("│", " ").split())
    assert "Required: what it runs." in text
    assert "Required: an IANA zone name" in text
    assert "Required, this or --at, --rrule or --every:" in text
