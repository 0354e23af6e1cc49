"""Tables that fit a terminal: an identifier is never broken, since whoever reads it wants to copy it.

Where the terminal is too narrow, whole columns are left out, then prose is cut or wrapped. What is still too wide is
written as it is: the terminal breaks it, and copies it whole. Outside of a terminal nothing is left out.
"""

import os
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

GAP = "   "
INDENT = "  "
"""Before the rows of a section, so that its title stands out."""

PROSE_WIDTH_MIN = 12
WRAPPED_WIDTH_MIN = 20


class Narrow(Enum):
    """What becomes of a cell that has less room than it needs."""

    KEEP = "keep"
    CUT = "cut"
    WRAP = "wrap"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    name: str
    narrow: Narrow = Narrow.KEEP
    leave_out: int | None = None
    """Its turn to be left out where the terminal is too narrow, the lowest first; None: never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Rows below a title of their own."""

    title: str
    rows: Sequence[Sequence[str]]
    more: str | None = None
    """What is to be said below the rows, of those that are not shown."""


def terminal_width() -> int | None:
    """The columns of the terminal that standard output is; None where it is none."""
    if not sys.stdout.isatty():
        return None
    declared = os.environ.get("COLUMNS", "")
    if declared.isdecimal() and int(declared) > 0:
        return int(declared)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def table_lines(columns: Sequence[Column], rows: Iterable[Sequence[str]], *, width: int | None) -> list[str]:
    """The lines of a table no wider than `width`, where that can be; without spaces at their ends."""
    table = [list(row) for row in rows]
    layout = _layout(columns, table, width=width)
    return [*layout.head(), *(line for row in table for line in layout.lines_of(row))]


def section_lines(columns: Sequence[Column], sections: Sequence[Section], *, width: int | None) -> list[str]:
    """The same of several tables below one head: their columns stand below each other, each below its title."""
    inner = None if width is None else width - len(INDENT)
    layout = _layout(columns, [row for section in sections for row in section.rows], width=inner)
    lines = [f"{INDENT}{line}" for line in layout.head()]
    for place, section in enumerate(sections):
        lines += ["", section.title] if place else [section.title]
        lines += [f"{INDENT}{line}" for row in section.rows for line in layout.lines_of(row)]
        lines += [f"{INDENT}{section.more}"] if section.more else []
    return lines


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """Which columns are shown, in which places, and how wide each is."""

    columns: Sequence[Column]
    widths: Mapping[int, int]

    def head(self) -> list[str]:
        names = self.lines_of([column.name for column in self.columns])
        return [*names, "─" * _total(list(self.widths.values()))]

    def lines_of(self, row: Sequence[str]) -> list[str]:
        return _row_lines([(self.columns[place], row[place], width) for place, width in self.widths.items()])


def _layout(columns: Sequence[Column], rows: Iterable[Sequence[str]], *, width: int | None) -> _Layout:
    table = [[column.name for column in columns], *rows]
    natural = [max(_width(row[place]) for row in table) for place in range(len(columns))]
    shown = list(range(len(columns)))
    while width is not None and _total([_least(columns[p], natural[p]) for p in shown]) > width:
        turns = [(turn, p) for p in shown if (turn := columns[p].leave_out) is not None]
        if not turns:
            break
        shown.remove(min(turns)[1])
    widths = {place: natural[place] for place in shown}
    for place in reversed(shown):
        excess = 0 if width is None else _total(list(widths.values())) - width
        if excess > 0:
            widths[place] = max(_least(columns[place], natural[place]), widths[place] - excess)
    return _Layout(columns=columns, widths=widths)


def _row_lines(cells: Sequence[tuple[Column, str, int]]) -> list[str]:
    fitted = [_fitted(text, column.narrow, width) for column, text, width in cells]
    return [
        GAP.join(
            _padded(lines[line] if line < len(lines) else "", width)
            for lines, (_, _, width) in zip(fitted, cells, strict=True)
        ).rstrip()
        for line in range(max(len(lines) for lines in fitted))
    ]


def _fitted(text: str, narrow: Narrow, width: int) -> list[str]:
    """The lines of a cell."""
    lines = text.split("\n")
    match narrow:
        case Narrow.KEEP:
            return lines
        case Narrow.CUT:
            return [_cut(line, width) for line in lines]
        case Narrow.WRAP:
            # A word that is longer than the line may be an identifier.
            return [
                part
                for line in lines
                for part in (
                    [line]
                    if _width(line) <= width
                    else textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False)
                )
                or [""]
            ]


def _cut(text: str, width: int) -> str:
    if _width(text) <= width:
        return text
    while _width(text) > width - 1:
        text = text[:-1]
    return f"{text.rstrip()}…"


def _least(column: Column, natural: int) -> int:
    """The least width that the column can be read with."""
    match column.narrow:
        case Narrow.KEEP:
            return natural
        case Narrow.CUT:
            return min(natural, max(PROSE_WIDTH_MIN, len(column.name)))
        case Narrow.WRAP:
            return min(natural, max(WRAPPED_WIDTH_MIN, len(column.name)))


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _width(text))


def _width(text: str) -> int:
    """How many columns of a terminal the widest line takes: Chinese and Japanese signs take two."""
    if text.isascii() and "\n" not in text:
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415 - loaded only where it is needed

    return max(cell_len(line) for line in text.split("\n"))
