"""`rota relay`: sends the due runs of jobs that have a sink, until a signal stops it."""

import threading

from rota.application.loops import run_side_by_side
from rota.application.stopping import stopped_by_signals
from rota.cli.options import Database
from rota.cli.user_application import load_application
from rota.telemetry import configure_logging


def relay(*, database: Database = None) -> None:
    """Send due runs to the sinks of their jobs. Other processes serve, dispatch and work; several share what is due."""
    application, settings = load_application(None, database_url=database)
    configure_logging(level=settings.log_level, log_format=settings.log_format)
    stop = threading.Event()
    with application, stopped_by_signals(stop):
        application.register_declared_jobs()
        run_side_by_side([("relay", application.build_relay().run, threading.Event())], stop)
