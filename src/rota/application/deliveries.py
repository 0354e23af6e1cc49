"""Deliveries in the library: what is on its way to sinks, and what is dead and may be tried again."""

from collections.abc import Mapping

from rota.application.connection import Connection
from rota.application.pages import checked_limit, given
from rota.service import deliveries
from rota.service.context import Actor
from rota.service.paging import LIMIT_DEFAULT
from rota.service.queries import parse_delivery_filter
from rota.service.representation import Wire


class Deliveries(Connection):
    """What is asked of deliveries."""

    def deliveries(
        self,
        *,
        state: str | None = None,
        job: str | None = None,
        schedule: str | None = None,
        after: Mapping[str, object] | None = None,
        limit: int = LIMIT_DEFAULT,
    ) -> list[Wire]:
        """One page, by run id: at most `limit` (up to 200); `after` is the last one of the page before.

        `state` is `sending`, `retrying`, `sent` or `dead`. Raises `InvalidRequest`.
        """
        return deliveries.list_deliveries(
            self.context,
            parse_delivery_filter(given(state=state, job=job, schedule=schedule)),
            after=None if after is None else str(after["run_id"]),
            limit=checked_limit(limit),
        )

    def redrive(self, run_id: str, *, actor: str | None = None, reason: str | None = None) -> Wire:
        """A dead delivery is tried again at once, its age counted anew; any other is left. Raises `NotFound`."""
        return deliveries.redrive_delivery(self.context, run_id, actor=Actor(name=actor, reason=reason))

    def redrive_deliveries(
        self,
        *,
        state: str | None = None,
        job: str | None = None,
        schedule: str | None = None,
        dry_run: bool = False,
        actor: str | None = None,
        reason: str | None = None,
    ) -> Wire:
        """The same of the dead ones that match, at most 1,000, and how many it were; `state="dead"` alone is all.

        Where the answer says `is_complete: false`, say it again. Raises `InvalidRequest`, also where nothing is chosen.
        """
        return deliveries.redrive_deliveries(
            self.context,
            parse_delivery_filter(given(state=state, job=job, schedule=schedule)),
            dry_run=dry_run,
            actor=Actor(name=actor, reason=reason),
        )
