"""The shapes of request bodies, for OpenAPI: they describe, the domain validates.

Defaults are told in descriptions, so that a generated client sends only what its user said.
"""

from rota.api.request_shapes.commands import (
    BackfillRequest,
    MoveRequest,
    PlanRequest,
    Reason,
    ReplayRequest,
    Resumption,
)
from rota.api.request_shapes.definitions import (
    AtRecurrence,
    CatchUpAll,
    CronRecurrence,
    EveryRecurrence,
    Expire,
    Fold,
    FoldAsked,
    Gap,
    LatestOnly,
    NewSchedule,
    Overdue,
    Period,
    PeriodAsked,
    PreviewRequest,
    Recurrence,
    RRuleRecurrence,
    Shape,
)
from rota.api.request_shapes.edits import (
    Document,
    DocumentEntry,
    EditFields,
    EndedEntry,
    OverduePatch,
)
from rota.api.request_shapes.jobs import JobFields, RetryFields

__all__ = [
    "AtRecurrence",
    "BackfillRequest",
    "CatchUpAll",
    "CronRecurrence",
    "Document",
    "DocumentEntry",
    "EditFields",
    "EndedEntry",
    "EveryRecurrence",
    "Expire",
    "Fold",
    "FoldAsked",
    "Gap",
    "JobFields",
    "LatestOnly",
    "MoveRequest",
    "NewSchedule",
    "Overdue",
    "OverduePatch",
    "Period",
    "PeriodAsked",
    "PlanRequest",
    "PreviewRequest",
    "RRuleRecurrence",
    "Reason",
    "Recurrence",
    "ReplayRequest",
    "Resumption",
    "RetryFields",
    "Shape",
]
