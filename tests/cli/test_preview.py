"""`rota preview`: the answer of POST /preview, without a database."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rota.clock import SystemClock
from rota.service import occurrences
from rota.wiring import open_preview_context
from tests.cli.conftest import Run

HALF_PAST_TWO = [
    *("--cron", "30 2 * * *", "--timezone", "America/New_York", "--after", "2026-03-07T00:00:00Z"),
    *("--count", "3", "--gap", "skip", "--fold", "first"),
]


def test_the_document_is_the_answer_of_the_use_case(run: Run) -> None:
    body = {
        "timezone": "America/New_York",
        "recurrence": {"cron": "30 2 * * *"},
        "after": "2026-03-07T00:00:00Z",
        "count": 3,
        "gap": "skip",
        "fold": "first",
    }
    ended = run("preview", *HALF_PAST_TWO, "--json")
    assert ended.code == 0
    assert ended.wire == occurrences.preview(open_preview_context(SystemClock()), body)
    assert ended.err == ""


def test_the_table_shows_local_time_offset_utc_and_what_is_skipped(run: Run) -> None:
    lines = run("preview", *HALF_PAST_TWO).out.splitlines()
    assert [line.split("  ")[0] for line in lines if line.startswith("2026")] == [
        "2026-03-07 02:30 -05:00",
        "2026-03-09 02:30 -04:00",
        "2026-03-10 02:30 -04:00",
        "2026-03-08 02:30",
    ]
    assert any("2026-03-09T06:30:00Z" in line for line in lines)
    assert any(line.startswith("2026-03-08 02:30") and "does not exist" in line for line in lines)


def test_no_database_is_made(run: Run, tmp_path: Path) -> None:
    assert run("preview", *HALF_PAST_TWO).code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["now"]


def test_the_time_is_that_of_the_clock_file_where_none_is_given(run: Run) -> None:
    ended = run("preview", "--cron", "0 9 * * *", "--timezone", "UTC", "--count", "1", "--json")
    assert ended.wire["occurrences"][0]["scheduled_at"] == "2026-01-11T09:00:00Z"  # type: ignore[index]


@pytest.mark.parametrize(
    ("options", "local"),
    [
        (["--at", "2026-02-01T09:00"], "2026-02-01T09:00"),
        (["--every", "PT6H", "--anchor", "2026-01-10T00:30:00Z"], "2026-01-10T12:30"),
        (["--rrule", "DTSTART:20260105T090000\nRRULE:FREQ=WEEKLY;BYDAY=MO"], "2026-01-12T09:00"),
        (["--rrule", r"DTSTART:20260105T090000\nRRULE:FREQ=WEEKLY;BYDAY=MO"], "2026-01-12T09:00"),
    ],
)
def test_every_kind_of_rule_has_its_option(run: Run, options: list[str], local: str) -> None:
    ended = run("preview", *options, "--timezone", "UTC", "--count", "1", "--json")
    assert ended.code == 0, ended.err
    assert ended.wire["occurrences"][0]["local"] == local  # type: ignore[index]


def test_each_bad_field_has_its_line(run: Run) -> None:
    ended = run(
        "preview", "--cron", "61 * * * *", "--timezone", "Europe/Lundon", "--count", "0", "--gap", "no"
    )
    assert ended.code == 2
    assert {line.split(": ")[1] for line in ended.problems} >= {"--count", "--cron", "--gap"}
    assert all(line.startswith("rota: ") for line in ended.problems)
    assert ended.out == ""


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            ["--at", "2025-01-01T09:00"],
            "2025-01-01T09:00 in Europe/Berlin has passed, it is 2026-01-10T12:00:00Z",
        ),
        (
            ["--at", "2027-01-01T09:00", "--after", "2027-02-01T00:00:00Z"],
            "2027-01-01T09:00 in Europe/Berlin is not after 2027-02-01T00:00:00Z, the given --after.",
        ),
        (["--at", "2026-03-29T02:30"], "what the rule names does not exist, since the clocks go forward"),
        (
            ["--rrule", "DTSTART:20250105T090000\nRRULE:FREQ=DAILY;COUNT=2"],
            "the rule names none after 2026-01-10T12:00:00Z, which is now.",
        ),
        (
            [
                "--rrule",
                "DTSTART:20250105T090000\nRRULE:FREQ=DAILY;COUNT=2",
                "--after",
                "2026-02-01T00:00:00Z",
            ],
            "the rule names none after 2026-02-01T00:00:00Z.",
        ),
    ],
)
def test_where_there_is_no_occurrence_it_says_why(run: Run, options: list[str], says: str) -> None:
    ended = run("preview", *options, "--timezone", "Europe/Berlin")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines()[1].startswith(f"No occurrence: {says}")


@pytest.mark.slow
def test_help_and_preview_load_no_framework(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROTA_CLOCK_FILE")  # it is a setting, which takes pydantic to read
    program = (
        "import json, sys\n"
        "from rota.cli import main\n"
        "main(['--help'])\n"
        f"main({['preview', *HALF_PAST_TWO]!r})\n"
        "json.dump(sorted({name.partition('.')[0] for name in sys.modules}), sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(json.loads(done.stderr))
    assert "cyclopts" in loaded
    assert loaded.isdisjoint({"alembic", "fastapi", "pydantic", "sqlalchemy", "starlette", "uvicorn"})
