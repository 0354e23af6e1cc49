"""Tables in a terminal and in a pipe: an identifier is never broken, and no line ends in spaces."""

import io

import pytest

from rota.cli.output import write_table
from rota.cli.tables import Column, Narrow, table_lines

RUN_ID = "s-01a22b246a08751e85d12a82421116ef.1.20260110T130000Z"
COLUMNS = [
    Column(name="RUN"),
    Column(name="STATE"),
    Column(name="LOCAL", leave_out=2),
    Column(name="UTC", leave_out=1),
    Column(name="WHY", narrow=Narrow.CUT),
]
ROW = [RUN_ID, "succeeded", "2026-01-10 14:00 +01:00", "2026-01-10T13:00:00Z", "The handler did not return."]


def test_outside_of_a_terminal_everything_is_shown_without_spaces_at_the_end() -> None:
    lines = table_lines(COLUMNS, [ROW, [*ROW[:-1], ""]], width=None)
    assert [line.rstrip() for line in lines] == lines
    assert all(cell in lines[2] for cell in ROW)
    assert ROW[3] in lines[3]


@pytest.mark.parametrize(
    ("width", "left_out"), [(150, []), (125, ["UTC"]), (110, ["UTC"]), (80, ["LOCAL", "UTC"])]
)
def test_columns_are_left_out_in_their_turn(width: int, left_out: list[str]) -> None:
    lines = table_lines(COLUMNS, [ROW], width=width)
    assert len(lines) == 3
    assert max(len(line) for line in lines) <= width
    assert RUN_ID in lines[2]
    names = [column.name for column in COLUMNS]
    assert lines[0].split() == [name for name in names if name not in left_out]


def test_prose_alone_is_cut() -> None:
    assert table_lines(COLUMNS, [ROW], width=80)[2] == f"{RUN_ID}   succeeded   The handler…"


def test_where_nothing_can_be_left_out_an_identifier_is_longer_than_the_terminal() -> None:
    lines = table_lines(COLUMNS, [ROW], width=40)
    assert RUN_ID in lines[2]
    assert len(lines) == 3


def test_wrapped_prose_breaks_between_words_and_no_word() -> None:
    columns = [Column(name="CHECK"), Column(name="FOUND", narrow=Narrow.WRAP)]
    row = ["schedules", f"In error: {RUN_ID}, as was said.\n-> Look at it."]
    lines = table_lines(columns, [row], width=40)
    assert [line.strip() for line in lines[2:]] == [
        "schedules   In error:",
        f"{RUN_ID},",
        "as was said.",
        "-> Look at it.",
    ]


def test_a_wide_sign_takes_two_columns() -> None:
    lines = table_lines([Column(name="NAME"), Column(name="NEXT")], [["日本", "x"], ["ab", "y"]], width=None)
    assert lines[2:] == ["日本   x", "ab     y"]


@pytest.mark.parametrize(("encoding", "rule"), [("utf-8", "───"), ("ascii", "---")])
def test_the_line_below_the_head_is_one_that_the_terminal_can_show(
    monkeypatch: pytest.MonkeyPatch, encoding: str, rule: str
) -> None:
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, encoding=encoding, write_through=True))
    write_table(["RUN"], [["x"]])
    assert written.getvalue().decode(encoding).splitlines() == ["RUN", rule, "x"]
