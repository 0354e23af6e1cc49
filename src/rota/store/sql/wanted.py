"""Partitions that a statement is asked for: parameters by their place, so that it is compiled once for each count."""

from collections.abc import Sequence

from sqlalchemy import BindParameter, Integer, bindparam, column, values
from sqlalchemy.sql.selectable import CTE


def partition_values(partitions: Sequence[int]) -> dict[str, object]:
    return {_name(place): partition for place, partition in enumerate(partitions)}


def partition_parameters(count: int) -> list[BindParameter[int]]:
    return [bindparam(_name(place), type_=Integer) for place in range(count)]


def wanted_partitions(count: int) -> CTE:
    """A row for each, to probe an index with."""
    rows = [(parameter,) for parameter in partition_parameters(count)]
    return values(column("partition", Integer), name="wanted").data(rows).cte()


def _name(place: int) -> str:
    return f"partition_{place}"
