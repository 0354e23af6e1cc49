"""The options by which runs are chosen, for listing them, cancelling them and replaying them."""

from typing import Annotated

from cyclopts import Parameter

STATES = "planned, held, waiting, queued, running, succeeded, failed, cancelled, moot or skipped."

Schedule = Annotated[str | None, Parameter(help="Only those of this schedule.")]
State = Annotated[str | None, Parameter(help=STATES)]
Job = Annotated[str | None, Parameter(help="Only those of this job.")]
Origin = Annotated[str | None, Parameter(help="schedule, backfill, manual or replay.")]
Label = Annotated[str | None, Parameter(help="Only those whose schedule has it: customer=acme.")]
From = Annotated[
    str | None,
    Parameter(name="--from", help="Only those scheduled at this instant (2026-01-10T14:00:00Z) or later."),
]
Until = Annotated[str | None, Parameter(help="Only those scheduled before this instant.")]
