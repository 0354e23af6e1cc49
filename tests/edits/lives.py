"""A schedule's life with edits on any store: all that falls due on the way is done, time is a manual clock."""

from datetime import UTC, datetime

from rota.domain.edit_form import parse_edit
from rota.service.context import Context
from rota.service.creation import create_schedule
from rota.service.editing import edit_schedule
from rota.service.planning import plan_occurrences
from rota.service.schedules import list_versions
from rota.store.port import Store
from rota.testing import World
from rota.worker.context import RunContext

Wire = dict[str, object]
ID = "report-7"


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def rule(cron: str, timezone: str) -> Wire:
    return {"timezone": timezone, "recurrence": {"cron": cron}}


class Life:
    """One schedule in a world of its own."""

    def __init__(self, store: Store, /, *, start: object, handler: object = None, **fields: object) -> None:
        """`start` is an instant, `handler` what the job does; the fields are those of a creation."""
        begins = instant(start) if isinstance(start, str) else start
        assert isinstance(begins, datetime)
        self.world = World(store=store, now=begins)

        @self.world.app.job("sales_report")
        def report(run: RunContext) -> None:
            if callable(handler):
                handler(run)

        self.world.app.register_jobs()
        create_schedule(
            self.context, {"id": ID, "job": "sales_report", "gap": "skip", "fold": "first", **fields}
        )

    @property
    def context(self) -> Context:
        return self.world.app.context

    def until(self, moment: str | datetime) -> "Life":
        """Everything that falls due on the way is done."""
        self.world.pass_time(instant(moment) if isinstance(moment, str) else moment)
        return self

    def edit(self, **patch: object) -> Wire:
        return edit_schedule(self.context, ID, parse_edit(patch))

    def plan(self, until: str) -> Wire:
        return plan_occurrences(self.context, ID, until=until)

    def versions(self) -> list[Wire]:
        return list_versions(self.context, ID, before=None, limit=100)

    def entries(self) -> list[Wire]:
        """The ledger, oldest first."""
        return list(self.world.app.iterate_occurrences(ID))[::-1]

    def runs(self) -> list[Wire]:
        return [entry for entry in self.entries() if entry["kind"] == "run"]

    def kept(self) -> list[tuple[object, object, object]]:
        """Version, instant and key of every run, oldest first."""
        return [(run["version"], run["scheduled_at"], run["period_key"]) for run in self.runs()]

    def skips(self, reason: str) -> list[Wire]:
        return [entry for entry in self.entries() if entry["kind"] == "skip" and entry["reason"] == reason]


def entries_of(answer: Wire, member: str) -> list[Wire]:
    """A list in an answer, to be looked into."""
    entries = answer[member]
    assert isinstance(entries, list)
    return entries
