"""`rota apply`: schedules as a TOML document has them."""

import textwrap
from pathlib import Path

import pytest

from rota.service.applying import apply_document
from tests.cli.conftest import Run, lines_of, open_database

DOCUMENT = """
reason = "from the repository"

[schedules.report-7]
timezone = "Europe/London"
recurrence = { cron = "0 9 * * *" }
labels = { customer = "acme" }
params = { of = "sales" }

[schedules.weekly]
job = "report"
timezone = "Europe/Paris"
recurrence = { cron = "0 9 * * 1" }
starts_at = 2026-02-01T00:00:00Z

[schedules.old]
ended = true

[schedules.never]
ended = true
"""
NINE_IN_LONDON = (
    "  2026-01-14 09:00 -05:00   2026-01-14T14:00:00Z   1         day:2026-01-14   "
    "version 2's occurrence of that day lies before it takes over; version 1 still runs it"
)

pytestmark = pytest.mark.usefixtures("report")


@pytest.fixture
def document(report: None, run: Run, tmp_path: Path) -> str:
    """A document that edits one schedule, creates one, ends one, and has one that was never there."""
    create = ["schedules", "create", "--job", "report", "--timezone", "UTC", "--every", "PT1H"]
    for id_ in ("old", "unnamed"):
        assert run(*create, "--id", id_).code == 0
    (tmp_path / "schedules.toml").write_text(DOCUMENT)
    return "schedules.toml"


def test_a_dry_run_tells_every_change_and_writes_nothing(run: Run, document: str) -> None:
    ended = run("apply", document, "--dry-run")
    assert (ended.code, ended.err) == (0, "")
    shown = lines_of(ended.out)
    assert shown[:3] == [
        "report-7: version 1 -> 2, takes over 2026-01-14T10:00:01Z (keep_period)",
        "- timezone: America/New_York",
        "+ timezone: Europe/London",
    ]
    assert NINE_IN_LONDON in shown
    created = shown.index("weekly: created as version 1")
    assert shown[created + 4 : created + 6] == [
        "next: what falls due first",
        "  2026-02-02 09:00 +01:00   2026-02-02T08:00:00Z   1         week:2026-W06",
    ]
    assert shown[-6:] == [
        "old: active -> ended",
        "",
        "never: there is no such schedule, nothing to end",
        "",
        "1 created, 1 edited, 1 ended, 1 unchanged",
        "This was a dry run: nothing was written.",
    ]
    assert [item["version"] for item in run("schedules", "list", "--json").items] == [1, 1, 1]


def test_applying_makes_it_so_and_applying_again_changes_nothing(run: Run, document: str) -> None:
    told = lines_of(run("apply", document, "--dry-run").out)
    done = run("apply", document, "--actor", "ci")
    assert lines_of(done.out) == told[:-1]
    found = {
        item["id"]: (item["version"], item["status"]) for item in run("schedules", "list", "--json").items
    }
    assert found == {
        "old": (1, "ended"),
        "report-7": (2, "active"),
        "unnamed": (1, "active"),
        "weekly": (1, "active"),
    }
    event = run("schedules", "history", "report-7", "--json").items[0]
    assert (event["actor"], event["reason"]) == ("ci", "from the repository")
    again = run("apply", document)
    assert again.out == (
        "never: there is no such schedule, nothing to end\n\n0 created, 0 edited, 0 ended, 4 unchanged\n"
    )


def test_the_document_comes_from_standard_input_too(run: Run, document: str, database: Path) -> None:
    told = run("apply", "-", "--dry-run", "--json", stdin=DOCUMENT.encode()).wire
    assert told == run("apply", document, "--dry-run", "--json").wire
    context = open_database(database)
    only_ended = apply_document(context, {"schedules": {"never": {"ended": True}}}, dry_run=True)
    context.store.close()
    assert (
        run("apply", "-", "--dry-run", "--json", stdin=b"[schedules.never]\nended = true").wire == only_ended
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"[schedules.x]\njob = = 1", "standard input: line 2, column 7: Invalid value."),
        (
            b"[schedules.x",
            "standard input: line 1, at the end: Expected ']' at the end of a table declaration.",
        ),
        (b'a = """x', "standard input: line 1, at the end: Unterminated string."),
        (b"[schedules.x]\n# \xff", "standard input: line 2: It is not UTF-8."),
        (
            b"schedules = 1",
            "standard input: schedules: Give a table for each schedule, such as [schedules.report-7]",
        ),
        (b"reason = 1", "standard input: reason: Give a text"),
    ],
)
def test_what_is_no_document_is_told_with_its_line(run: Run, text: bytes, line: str) -> None:
    ended = run("apply", "-", stdin=text)
    assert (ended.code, ended.out, len(ended.problems)) == (2, "", 1)
    assert ended.problems[0].startswith(f"rota: {line}")


@pytest.mark.usefixtures("document")
def test_nothing_is_written_unless_all_is_right(run: Run, tmp_path: Path) -> None:
    wrong = """
        [schedules.report-7]
        timezone = "Europe/Lundon"
        recurrence = { cron = "0 9 * * *" }

        [schedules.new]
        job = "nothing"
        timezone = "UTC"
        recurrence = { at = "2026-03-29T02:30" }

        [schedules.old]
        ended = true
        """
    (tmp_path / "wrong.toml").write_text(textwrap.dedent(wrong))
    ended = run("apply", "wrong.toml")
    assert (ended.code, ended.out) == (2, "")
    assert ended.problems == [
        (
            "rota: wrong.toml: schedules.report-7.timezone: Unknown zone 'Europe/Lundon'; "
            'did you mean "Europe/London"?'
        ),
        (
            "rota: wrong.toml: schedules.new.job: There is no job 'nothing'; start a worker that has it, "
            "or create it by `rota jobs put NAME`."
        ),
    ]
    assert {item["status"] for item in run("schedules", "list", "--json").items} == {"active"}


@pytest.mark.usefixtures("document")
def test_what_to_write_is_told_in_toml(run: Run) -> None:
    run("schedules", "edit", "report-7", "--gap", "forward", "--effective-from", "2026-02-01T00:00:00Z")
    waits = run("apply", "schedules.toml")
    assert "wait for it, or give replaces_pending = true" in waits.problems[0]
    gap = (
        b'[schedules.x]\njob = "report"\ntimezone = "Europe/Paris"\nrecurrence = { at = 2026-03-29T02:30:00 }'
    )
    assert run("apply", "-", stdin=gap).problems[0].endswith('Give another time, or gap = "forward".')


def test_a_file_that_is_not_there_and_one_that_is_too_large_are_one_line(run: Run, tmp_path: Path) -> None:
    assert run("apply", "missing.toml").problems == [
        "rota: missing.toml cannot be read: No such file or directory."
    ]
    (tmp_path / "large.toml").write_bytes(b"#" * 4_194_305)
    assert run("apply", "large.toml").problems == [
        "rota: large.toml is larger than 4194304 bytes; apply it in several documents."
    ]


def test_a_dry_run_makes_no_database(run: Run, tmp_path: Path) -> None:
    assert run("apply", "-", "--dry-run", "--database", "missing.db", stdin=b"").code == 1
    assert not (tmp_path / "missing.db").exists()
    assert run("apply", "-", "--database", "missing.db", stdin=b"").code == 0
