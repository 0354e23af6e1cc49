"""Rota as a library: one object with the jobs, schedules and runs of an application, and the loops that work on them.

Fields, answers and errors are those of the HTTP API; durations and instants may be given as `timedelta` and aware
`datetime`. Nothing is opened before the first use, so a module may say `app = Rota("rota.db")` and be imported for its
jobs alone.

What may be asked is told by noun: `schedules.py`, `occurrences.py`, `runs.py`, `deliveries.py`, `jobs.py`, `zones.py`
and `partitions.py`, all upon `connection.py`.
"""

import threading
from contextlib import nullcontext
from datetime import timedelta

from rota.application.deliveries import Deliveries
from rota.application.jobs import Jobs
from rota.application.loops import run_side_by_side
from rota.application.occurrences import Occurrences
from rota.application.partitions import Partitions
from rota.application.runs import Runs
from rota.application.schedules import Schedules
from rota.application.stopping import stopped_by_signals
from rota.application.work import Work
from rota.application.zones import ZoneUpdates, report_differing_zones
from rota.delivery.addresses import Networks
from rota.delivery.relay import Relay
from rota.delivery.sinks import Senders, SendersByKind, SinkSettings
from rota.dispatch.dispatcher import Dispatcher
from rota.ids import new_process_name
from rota.worker.gateway import LONG_POLL
from rota.worker.worker import Worker


class Rota(Schedules, Occurrences, Runs, Deliveries, Jobs, ZoneUpdates, Partitions, Work):
    """An application: its jobs, and a database with its schedules and runs. Threads may share it.

    `settings` are those of the environment where none are given; `database` wins over them. With a `store` of one's
    own, that one is used, and left open by `close`. `zones` are those of the pinned tz data unless given.
    """

    def build_dispatcher(self) -> Dispatcher:
        """A dispatcher on this database.

        Zones whose rules are not the stored ones are told in the log: it will leave their schedules alone.
        """
        context, settings = self.context, self.settings
        report_differing_zones(context)
        return Dispatcher(
            context.store,
            cadences=context.cadences,
            clock=context.clock,
            owner=new_process_name("dispatch"),
            lease=timedelta(seconds=settings.lease_seconds),
            poll=timedelta(seconds=settings.poll_seconds),
            page=settings.page,
            batch=settings.batch,
            keep=None if settings.retention_days is None else timedelta(days=settings.retention_days),
        )

    def build_worker(self, *, inline: bool = False) -> Worker:
        """A worker of this application's jobs, which makes those of `declare_jobs` known too; `inline` runs handlers
        within its steps, for tests.

        One that fetches its runs from a server opens no database.
        """
        settings = self.settings
        poll = timedelta(seconds=settings.poll_seconds)
        return Worker(
            self.gateway,
            self.registry,
            clock=self._work_clock,
            name=new_process_name("worker"),
            concurrency=settings.concurrency,
            poll=poll if settings.server_url is None else max(poll, LONG_POLL),
            drain=timedelta(seconds=settings.drain_seconds),
            declared=self._declared_jobs(),
            inline=inline,
        )

    def build_relay(self, *, inline: bool = False, senders: Senders | None = None) -> Relay:
        """A relay of this database's jobs that have a sink; `inline` sends within its steps, for tests, and to
        `senders` instead of the sinks where they are given.

        Raises `WrongSetting` where ROTA_WEBHOOK_NETWORKS makes no sense.
        """
        context, settings = self.context, self.settings
        sinks = SinkSettings(
            event_source=settings.event_source,
            networks=Networks(settings.webhook_networks),
            celery_app=settings.celery_app,
            celery_broker_url=settings.celery_broker_url,
        )
        return Relay(
            context.store,
            senders or SendersByKind(sinks, inline=inline),
            clock=context.clock,
            name=new_process_name("relay"),
            poll=timedelta(seconds=settings.poll_seconds),
            drain=timedelta(seconds=settings.drain_seconds),
            inline=inline,
        )

    def run(self, stop: threading.Event | None = None) -> None:
        """Dispatches, relays and works until `stop` is set, then drains. Without one, until SIGINT or SIGTERM.

        `stop` is also set where a loop fails; raises `LoopFailed` then.
        """
        loops = [
            ("dispatcher", self.build_dispatcher().run, threading.Event()),
            ("relay", self.build_relay().run, threading.Event()),
            ("worker", self.build_worker().run, threading.Event()),
        ]
        stopping = threading.Event() if stop is None else stop
        with stopped_by_signals(stopping) if stop is None else nullcontext():
            run_side_by_side(loops, stopping)
