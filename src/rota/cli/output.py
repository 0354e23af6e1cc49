"""What commands print: one JSON document, or tables for people. `rich` is loaded only for a table."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

WIDTH_OUTSIDE_A_TERMINAL = 400
"""Wide enough that no cell is cut: a program or a file reads it, not a screen."""

NOTHING = "-"


def write_json(document: object) -> None:
    """The wire form as one document. Outside of UTF-8 the text is escaped, which JSON readers do not notice."""
    is_unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    sys.stdout.write(json.dumps(document, ensure_ascii=not is_unicode, indent=2) + "\n")


def write_line(text: str) -> None:
    """At once, for whoever waits for this line in a pipe."""
    sys.stdout.write(f"{as_one_line(text)}\n")
    sys.stdout.flush()


def write_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A header and a row for each entry; None is shown as `-`."""
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415 - loaded only where a table is shown
    from rich.table import Table  # noqa: PLC0415 - the same

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        table.add_column(_text(column), overflow="fold")
    for row in rows:
        table.add_row(*(_text(cell) for cell in row))
    _console().print(table)


def write_facts(facts: Iterable[tuple[str, object]]) -> None:
    """One thing: a line for each of its fields."""
    from rich.table import Table  # noqa: PLC0415 - loaded only where a table is shown

    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(_text(name), _text(value))
    _console().print(table)


def write_more(page: Mapping[str, object]) -> None:
    """How to see the rest, where the page is not the last one."""
    if page["next_cursor"] is not None:
        write_line(f"There are more: --cursor {page['next_cursor']}, or --all.")


def as_one_line(text: str) -> str:
    """The text with its line breaks as spaces and without control characters, which could steer a terminal."""
    joined = " ".join(text.split())
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in joined)


def shown_json(value: object) -> str:
    """A JSON value in a table."""
    return json.dumps(value, ensure_ascii=False)


def shown_labels(labels: object) -> str:
    """`customer=acme, region=eu`"""
    return ", ".join(f"{name}={value}" for name, value in labels.items()) if isinstance(labels, dict) else ""


def _text(cell: object) -> "Text":
    from rich.text import Text  # noqa: PLC0415 - loaded only where a table is shown

    shown = NOTHING if cell is None else str(cell)
    # Not a string: rich would read markup and emoji in it.
    return Text("\n".join(as_one_line(line) for line in shown.split("\n")))


def _console() -> "Console":
    from rich.console import Console  # noqa: PLC0415 - loaded only where a table is shown

    is_terminal = sys.stdout.isatty()
    return Console(file=sys.stdout, highlight=False, width=None if is_terminal else WIDTH_OUTSIDE_A_TERMINAL)
