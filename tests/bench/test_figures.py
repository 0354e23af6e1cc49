"""Percentiles are values that were seen."""

import pytest

from bench.figures import median, middle_and_tail, percentile


def test_a_percentile_is_the_smallest_value_no_less_than_its_share() -> None:
    values = [float(number) for number in range(100, 0, -1)]
    assert (median(values), percentile(values, 0.99), percentile(values, 1.0)) == (50, 99, 100)
    assert percentile([7.0], 0.0) == 7


def test_where_nothing_was_seen_there_is_no_figure() -> None:
    assert middle_and_tail([]) == ("-", "-", "-")
    with pytest.raises(ValueError, match="nothing"):
        percentile([], 0.5)
