"""What commands print: one JSON document, or tables for people."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from rota.cli.tables import Column, Section, section_lines, table_lines, terminal_width

NOTHING = "-"


def write_json(document: object) -> None:
    """The wire form as one document. Outside of UTF-8 the text is escaped, which JSON readers do not notice."""
    sys.stdout.write(json.dumps(document, ensure_ascii=not _is_unicode(), indent=2) + "\n")


def write_line(text: str) -> None:
    """At once, for whoever waits for this line in a pipe."""
    sys.stdout.write(f"{as_one_line(text)}\n")
    sys.stdout.flush()


def write_table(
    columns: Sequence[Column | str], rows: Iterable[Sequence[object]], *, width_elsewhere: int | None = None
) -> None:
    """A header and a row for each entry; None is shown as `-`. A column that is a mere name is never cut.

    `width_elsewhere` is for what is prose: how wide the table is where there is no terminal.
    """
    texts = [[_text(cell) for cell in row] for row in rows]
    width = terminal_width() or width_elsewhere
    _write_lines(_with_rule(table_lines(_described(columns), texts, width=width)))


def write_sections(columns: Sequence[Column | str], sections: Sequence[Section]) -> None:
    """Several tables below one header, each below its title."""
    texts = [
        replace(section, rows=[[_text(cell) for cell in row] for row in section.rows]) for section in sections
    ]
    _write_lines(_with_rule(section_lines(_described(columns), texts, width=terminal_width())))


def write_facts(facts: Iterable[tuple[str, object]]) -> None:
    """One thing: a line for each of its fields, which is never broken: a terminal copies it whole."""
    texts = [(name, _text(value)) for name, value in facts]
    widest = max((len(name) for name, _ in texts), default=0)
    _write_lines(f"{name.ljust(widest)}  {text}".rstrip() for name, text in texts)


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


def _described(columns: Sequence[Column | str]) -> list[Column]:
    return [Column(name=column) if isinstance(column, str) else column for column in columns]


def _with_rule(lines: Sequence[str]) -> list[str]:
    """The lines with the rule below the head as one that the output can show."""
    head, rule, *body = lines
    return [head, rule if _is_unicode() else rule.replace("─", "-"), *body]


def _text(cell: object) -> str:
    shown = NOTHING if cell is None else str(cell)
    return "\n".join(as_one_line(line) for line in shown.split("\n"))


def _is_unicode() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def _write_lines(lines: Iterable[str]) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
