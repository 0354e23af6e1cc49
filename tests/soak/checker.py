"""The checker: every fault that the evidence of a soak shows, in sentences."""

from collections.abc import Callable, Iterator

from tests.soak.attempts import check_attempts
from tests.soak.evidence import Evidence
from tests.soak.identities import check_runs
from tests.soak.outcomes import check_schedules
from tests.soak.promises import check_promises
from tests.soak.take_overs import check_take_overs

CHECKS: tuple[Callable[[Evidence], Iterator[str]], ...] = (
    check_schedules,
    check_runs,
    check_attempts,
    check_take_overs,
    check_promises,
)


def judge(evidence: Evidence) -> list[str]:
    """Empty where nothing was lost, doubled or made up."""
    return [fault for check in CHECKS for fault in check(evidence)]
