"""A small sales database, made up: the state of the world that the report tells of."""

import sqlite3
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

PRODUCTS = (("espresso", 2.8), ("flat white", 3.9), ("cold brew", 4.2), ("beans, 250 g", 9.5))


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What one product sold on one day."""

    product: str
    pieces: int
    revenue: float


def make_shop(path: Path, *, first: date, days: int) -> None:
    """Sales for `days` days; the same numbers each time it is made."""
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE sales (day TEXT, product TEXT, pieces INTEGER, revenue REAL)")
        rows = [
            (str(first + timedelta(days=day)), product, pieces, round(pieces * price, 2))
            for day in range(days)
            for number, (product, price) in enumerate(PRODUCTS)
            for pieces in [20 + (day * 7 + number * 13) % 31]
        ]
        connection.executemany("INSERT INTO sales VALUES (?, ?, ?, ?)", rows)
    connection.close()


def sales_of(path: Path, day: date) -> list[Line]:
    """The day's sales by product."""
    connection = sqlite3.connect(path)
    rows = connection.execute(
        "SELECT product, sum(pieces), sum(revenue) FROM sales WHERE day = ? GROUP BY product ORDER BY product",
        (str(day),),
    ).fetchall()
    connection.close()
    return [Line(product=product, pieces=pieces, revenue=revenue) for product, pieces, revenue in rows]
