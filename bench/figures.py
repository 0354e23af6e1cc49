"""Figures: percentiles, and tables as they are printed."""

from collections.abc import Sequence
from math import ceil


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest of `values` that is no less than the share (0 to 1) of them. Raises `ValueError`: there are none."""
    if not values:
        raise ValueError("there is nothing of which to take a percentile")
    return sorted(values)[max(0, ceil(share * len(values)) - 1)]


def median(values: Sequence[float]) -> float:
    return percentile(values, 0.5)


def middle_and_tail(values: Sequence[float]) -> tuple[str, str, str]:
    """p50, p99 and the largest, for a table; dashes where nothing was seen."""
    if not values:
        return "-", "-", "-"
    return f"{median(values):,.1f}", f"{percentile(values, 0.99):,.1f}", f"{max(values):,.1f}"


def mebibytes(size: float) -> str:
    return f"{size / 2**20:,.0f} MB"


def print_table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """The first column to the left, all others to the right."""
    widths = [max(len(row[place]) for row in (heading, *rows)) for place in range(len(heading))]
    for row in (heading, *rows):
        cells = [
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip(), flush=True)
