"""What versions and jobs tell statements that cannot read their texts: until when and how late there are runs."""

from collections.abc import Mapping
from datetime import timedelta

from rota.domain.beat import named_until
from rota.domain.json_text import INTEGER_MAX
from rota.domain.overdue import OverduePolicy, longest_lateness
from rota.domain.schedule import Version
from rota.store.sql import cells

LATENESS_UNLIMITED = INTEGER_MAX
"""Milliseconds: more than the years that there are."""

FOLLOWED = ("cadence_id", "period", "series", "named_until", "lateness_max")
"""Columns of a schedule that say what its cursor's version says, so that no version is read to admit it."""

_MILLISECOND = timedelta(milliseconds=1)


def bound_values(version: Version) -> Mapping[str, int | None]:
    """`lateness_max` is null where the version leaves it to the job."""
    policy = version.definition.overdue
    return {
        "named_until": cells.millis_or_none(named_until(version)),
        "lateness_max": None if policy is None else lateness_of(policy),
    }


def followed_values(version: Version) -> Mapping[str, object]:
    """Of `FOLLOWED`, in the row of a schedule at whose cursor the version stands.

    Without a cadence it stands at no beat: of runs that may not overlap the planner decides.
    """
    return {
        "cadence_id": version.cadence_id if version.definition.overlap == "allow" else None,
        "period": version.period,
        "series": version.series,
        **bound_values(version),
    }


def lateness_of(policy: OverduePolicy) -> int:
    """The policy's `longest_lateness` in milliseconds; `LATENESS_UNLIMITED` where it has none."""
    longest = longest_lateness(policy)
    return LATENESS_UNLIMITED if longest is None else longest // _MILLISECOND
