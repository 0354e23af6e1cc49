"""`--overlap` and `--spread`: asked for, shown, compared and taken back."""

import pytest

from tests.cli.conftest import Run

NINE = ["--job", "report", "--timezone", "America/New_York", "--cron", "0 9 * * 1-5"]

pytestmark = pytest.mark.usefixtures("with_job")


def test_both_reach_the_definition_and_are_shown(run: Run) -> None:
    made = run(
        *("schedules", "create", "--id", "report-7", *NINE),
        *("--overlap", "skip", "--spread", "PT10M", "--json"),
    )
    assert made.code == 0, made.err
    assert (made.wire["overlap"], made.wire["spread"], made.wire["delay"]) == ("skip", "PT10M", "PT3M33S")
    shown = run("schedules", "show", "report-7").out
    assert "skip\n" in shown
    assert "PT10M: each falls due PT3M33S after it is scheduled" in shown
    assert "09:03:33" in shown
    versions = run("schedules", "versions", "report-7").out
    assert "cron 0 9 * * 1-5, overlap skip, spread PT10M" in versions


def test_an_edit_tells_both_as_a_diff_and_takes_them_back(run: Run) -> None:
    run("schedules", "create", "--id", "report-7", *NINE)
    told = run("schedules", "edit", "report-7", "--overlap", "queue", "--spread", "PT1H", "--dry-run").out
    assert "- overlap: allow\n+ overlap: queue\n" in told
    assert "+ spread: PT1H\n" in told
    assert "falls due at" in told
    run("schedules", "edit", "report-7", "--overlap", "queue", "--spread", "PT1H")
    back = run("schedules", "edit", "report-7", "--unset", "overlap", "--unset", "spread", "--json")
    assert (back.wire["overlap"], back.wire["spread"], back.wire["delay"]) == ("allow", None, None)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--overlap", "never", "allow, skip, queue"),
        ("--spread", "PT25H", "PT24H"),
        ("--spread", "10m", "ISO 8601"),
    ],
)
def test_what_is_no_rule_is_refused_by_its_option(run: Run, option: str, value: str, message: str) -> None:
    ended = run("schedules", "create", *NINE, option, value)
    assert ended.code != 0
    assert option in ended.err
    assert message in ended.err
