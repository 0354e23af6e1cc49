"""The sentences and lines of a diff that few changes bring about."""

from datetime import UTC, datetime

import pytest

from rota.cli.dry_run_tables import changed_lines, head_of, write_change, write_occurrences
from rota.cli.explanations import Telling, why
from rota.service.representation import Wire

NOW = datetime(2026, 1, 14, 10, tzinfo=UTC)
BEFORE: Wire = {"version": 1, "latest_version": 1}
TOLD: Wire = {
    "operation": "edit",
    "schedule_id": "x",
    "version": 2,
    "boundary": "keep_period",
    "effective_from": "2026-01-14T10:00:01Z",
    "is_pending": False,
    "replaces": None,
    "changed": {"gap": {"from": "skip", "to": "forward"}},
    "is_complete": True,
}
ENTRY: Wire = {
    "scheduled_at": "2026-01-14T14:00:00Z",
    "due_at": "2026-01-14T14:00:00Z",
    "local": "2026-01-14T09:00",
    "offset": "-05:00",
    "version": 1,
    "period_key": "week:2026-W03",
    "state": "named",
    "run_id": None,
    "note": None,
}


def nowhere(version: object, instant: object) -> None:
    """No local time is known."""


def said(section: str, members: Wire) -> str:
    return why(Telling.of(TOLD, local_of=nowhere), section, {**ENTRY, **members})


@pytest.mark.parametrize(
    ("section", "members", "sentence"),
    [
        ("kept", {"state": "held"}, "held since the pause, and decided on resume"),
        ("kept", {"state": "running"}, "running already"),
        (
            "kept",
            {"state": "planned", "note": "moved from 2026-01-14T14:00:00Z", "due_at": "2026-01-14T16:00:00Z"},
            "planned already, and stays version 1's; moved: falls due at 2026-01-14T16:00:00Z",
        ),
        (
            "carried",
            {"state": "planned", "note": "carried by version 2"},
            "version 2's occurrence of that week lies before it takes over; version 1 still runs it",
        ),
        (
            "next",
            {"state": "planned", "note": "backfill", "due_at": "2026-01-14T16:00:00Z"},
            "planned; backfill: falls due at 2026-01-14T16:00:00Z",
        ),
        (
            "skipped",
            {
                "reason": "on_request",
                "note": "moved from 2026-01-14T14:00:00Z",
                "due_at": "2026-01-14T16:00:00Z",
            },
            "skipped on request; its period stays used",
        ),
        (
            "suppressed",
            {"note": "k is used by run r, which was cancelled"},
            "k is used by run r, which was cancelled; it is not brought back",
        ),
        ("skipped", {"reason": "gap", "note": "02:30 does not exist"}, "02:30 does not exist"),
        ("skipped", {"reason": "expired"}, "later than its overdue policy allows"),
        ("skipped", {"reason": "period_used", "note": "k is used by run r"}, "k is used by run r"),
        ("skipped", {"reason": "ended"}, "the schedule has ended"),
        (
            "skipped",
            {"reason": "error", "count": 3, "until": "2026-01-17T14:00:00Z"},
            "3 of them, all before 2026-01-17T14:00:00Z: fell due while the schedule was in error",
        ),
        ("next", {"note": "02:30 occurs twice"}, "02:30 occurs twice"),
        ("next", {"state": "planned", "note": "carried by version 2"}, "planned; carried by version 2"),
        ("next", {}, ""),
    ],
)
def test_each_place_has_its_reason(section: str, members: Wire, sentence: str) -> None:
    assert said(section, members) == sentence


def test_objects_are_compared_member_by_member() -> None:
    old = {"same": 1, "gone": True, "inner": {"a": 1, "b": "x"}, "null": None, "list": [1]}
    new = {"same": 1, "inner": {"a": 2, "b": "x"}, "list": [1, 2], "text": "two\nlines", "null": None}
    assert list(changed_lines({"params": {"from": old, "to": new}})) == [
        "- params.gone: true",
        "- params.inner.a: 1",
        "+ params.inner.a: 2",
        "- params.list: [1]",
        "+ params.list: [1, 2]",
        '+ params.text: "two\\nlines"',
    ]


def test_a_member_that_is_not_there_has_no_line() -> None:
    ends = {"from": None, "to": "2027-01-01T00:00:00Z"}
    assert list(changed_lines({"ends_at": ends})) == ["+ ends_at: 2027-01-01T00:00:00Z"]
    policy = {"policy": "expire", "deadline": "PT5M"}
    assert list(changed_lines({"overdue": {"from": policy, "to": None}})) == [
        "- overdue: expire PT5M",
        "+ overdue: as the job says",
    ]


def test_a_version_that_waits_behind_new_rules_is_told() -> None:
    told = {**TOLD, "operation": "tzdata", "replaces": 2}
    assert head_of(told, BEFORE, now=NOW).endswith("version 2, which waits, comes after it by another number")


def test_what_is_told_in_part_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    write_change({**TOLD, "is_complete": False}, BEFORE, local_of=nowhere, now=NOW)
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "Nothing is kept, carried, suppressed or skipped.",
        "Nothing falls due after it.",
        "More is owed than is told here; the rest is decided in the same way.",
    ]


def test_a_long_section_is_cut_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    told = {**TOLD, "kept": [{**ENTRY, "state": "planned"}] * 12, "next": [ENTRY] * 200}
    write_occurrences(told, ["kept", "next"], local_of=nowhere)
    shown = capsys.readouterr().out.splitlines()
    assert "  and 2 more, which --json lists" in shown
    assert shown[-1] == "  and at least 190 more, which --json lists"
    write_occurrences(told, ["kept"], local_of=nowhere, shown_max=None)
    assert len(capsys.readouterr().out.splitlines()) == 3 + 12
