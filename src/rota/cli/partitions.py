"""`rota partitions`: who holds the partitions, and how much of each is due and waits."""

from typing import Annotated

from cyclopts import Parameter

from rota.cli.explanations import entries_of
from rota.cli.options import AsJson, Database, open_existing
from rota.cli.output import write_json, write_line, write_table
from rota.cli.tables import Column
from rota.service.partitions import show_partitions
from rota.service.representation import Wire

Every = Annotated[
    bool,
    Parameter(
        name="--all", help="Every partition, not only those that are not held or late; --json has all anyway."
    ),
]


def partitions(*, show_all: Every = False, database: Database = None, json: AsJson = False) -> None:
    """Show how late admission is, how much is due, and who dispatches; then each partition that is not held or late."""
    with open_existing(database) as context:
        answer = show_partitions(context)
    write_json(answer) if json else _write_partitions(answer, show_all=show_all)


def _write_partitions(answer: Wire, *, show_all: bool) -> None:
    _write_totals(answer)
    every = entries_of(answer, "partitions")
    shown = every if show_all else [entry for entry in every if not entry["is_held"] or entry["lag_ms"]]
    if shown:
        write_line("")
        _write_each(shown)
    if len(shown) < len(every):
        write_line("")
        write_line(
            f"{len(every) - len(shown)} of {len(every)} are held and not late; `--all` shows them too."
        )


def _write_totals(answer: Wire) -> None:
    totals, dispatchers = answer["totals"], entries_of(answer, "dispatchers")
    assert isinstance(totals, dict)  # noqa: S101 - as show_partitions makes it
    write_line(
        f"{totals['held']} of {totals['partitions']} held; lag {_shown_lag(totals)}; "
        f"due {_shown_amount(totals['due'])}, planned {_shown_amount(totals['planned_due'])}"
    )
    if not dispatchers:
        write_line("No dispatcher is there: start `rota dispatch` or `rota up`.")
        return
    write_line("")
    write_table(
        ["DISPATCHER", "PARTITIONS"], [(entry["owner"], entry["partitions"]) for entry in dispatchers]
    )


def _write_each(entries: list[Wire]) -> None:
    write_table(
        [
            "PARTITION",
            "OWNER",
            Column(name="EPOCH", leave_out=2),
            Column(name="UNTIL", leave_out=3),
            Column(name="CHECKPOINT", leave_out=1),
            "LAG",
            "DUE",
            "PLANNED DUE",
        ],
        [
            (
                entry["partition"],
                entry["owner"] if entry["is_held"] else None,
                entry["epoch"],
                entry["expires_at"],
                entry["checkpoint"],
                _shown_lag(entry),
                _shown_amount(entry["due"]),
                _shown_amount(entry["planned_due"]),
            )
            for entry in entries
        ],
    )


def _shown_lag(entry: Wire) -> str:
    """In seconds."""
    lag = entry["lag_ms"]
    assert isinstance(lag, int)  # noqa: S101 - as show_partitions makes it
    return f"{lag / 1000:g} s"


def _shown_amount(amount: object) -> str:
    """`1000+`, where counting stopped there."""
    assert isinstance(amount, dict)  # noqa: S101 - as show_partitions makes it
    return f"{amount['count']}{'+' if amount['is_at_least'] else ''}"
