"""`rota up`, `serve`, `dispatch`, `work`: processes that go on until a signal stops them."""

import sys
import threading
from typing import Annotated

from cyclopts import Parameter

from rota.application.loops import Loop, run_side_by_side
from rota.application.stopping import stopped_by_signals
from rota.cli.config_option import NAMED_CONFIG, OPTION
from rota.cli.errors import Usage, complain
from rota.cli.options import Database
from rota.cli.output import write_line
from rota.cli.supervising import Child, stopped_with_supervisor
from rota.cli.user_application import load_application
from rota.cli.whole_numbers import WHOLE
from rota.cli.zone_rules import warn_of_zone_rules
from rota.config import Settings
from rota.telemetry import configure_logging
from rota.wiring import build_api, hosts_on

Host = Annotated[str | None, Parameter(help="The address to listen on, instead of ROTA_HOST.")]
Port = Annotated[int | None, WHOLE, Parameter(help="The port, instead of ROTA_PORT; 0 takes a free one.")]
Concurrency = Annotated[
    int | None, WHOLE, Parameter(help="How many attempts are open at once, instead of ROTA_CONCURRENCY.")
]
ServerUrl = Annotated[
    str | None,
    Parameter(help="Fetch runs from this server, instead of ROTA_SERVER_URL; no database is needed then."),
]
Processes = Annotated[
    int, WHOLE, Parameter(help="How many processes work; those that die are started anew. 1 if not given.")
]
PROCESSES_MAX = 256


def up(
    *,
    database: Database = None,
    host: Host = None,
    port: Port = None,
    app: Annotated[str | None, Parameter(help="Your application, as MODULE:app; without it, echo.")] = None,
    concurrency: Concurrency = None,
) -> None:
    """Serve the API, dispatch, relay and work in one process, on a database that is made if there is none."""
    from rota.cli.server import Server, listen  # noqa: PLC0415 - the server loads only where it serves

    application, settings = load_application(
        app, database_url=database, host=host, port=port, concurrency=concurrency
    )
    _configure_logging(settings)
    with listen(settings.host, settings.port) as listener, application:
        application.register_jobs()
        warn_of_zone_rules(application.context)
        hosts = hosts_on(listener.getsockname()[0], named=settings.host)
        api = build_api(application.context, hosts=hosts)
        _run(
            ("API", Server(api, listener, announce=_announce, stopping=api.state.waiting_room.end).run),
            ("application", lambda stop, _: application.run(stop)),
        )


def serve(*, database: Database = None, host: Host = None, port: Port = None) -> None:
    """Serve the API. Other processes dispatch, relay and work."""
    from rota.cli.server import Server, listen  # noqa: PLC0415 - the server loads only where it serves

    application, settings = load_application(None, database_url=database, host=host, port=port)
    _configure_logging(settings)
    with listen(settings.host, settings.port) as listener, application:
        application.register_declared_jobs()
        hosts = hosts_on(listener.getsockname()[0], named=settings.host)
        api = build_api(application.context, hosts=hosts)
        _run(("API", Server(api, listener, announce=_announce, stopping=api.state.waiting_room.end).run))


def dispatch(*, database: Database = None) -> None:
    """Turn due occurrences into runs. Other processes serve and work; several share the partitions."""
    application, settings = load_application(None, database_url=database)
    _configure_logging(settings)
    with application:
        application.register_declared_jobs()
        warn_of_zone_rules(application.context)
        _run(("dispatcher", application.build_dispatcher().run))


def work(
    app: Annotated[str | None, Parameter(help="Your application, as MODULE:app; without it, echo.")] = None,
    *,
    database: Database = None,
    url: ServerUrl = None,
    concurrency: Concurrency = None,
    processes: Processes = 1,
) -> None:
    """Run the jobs of an application. Other processes serve and dispatch."""
    if database is not None and url is not None:
        raise Usage("--url: A worker has either a database or a server; leave out --database.")
    if not 1 <= processes <= PROCESSES_MAX:
        raise Usage(f"--processes: Give a whole number from 1 to {PROCESSES_MAX}.")
    application, settings = load_application(
        app, database_url=database, server_url=url, concurrency=concurrency
    )
    if database is not None and settings.server_url is not None:
        # What is typed wins over the environment, as everywhere.
        settings = settings.model_copy(update={"server_url": None})
        application.configure(settings)
    if app is None:
        complain(
            "No application was given, so only the job echo is worked; `rota work MODULE:app` works yours."
        )
    _configure_logging(settings)
    if processes > 1:
        given = {"--app": app, "--database": database, "--url": url, "--concurrency": concurrency}
        given[OPTION] = NAMED_CONFIG.get()
        command = [sys.executable, "-m", "rota.cli.supervised", "work"]
        command += [f"{name}={value}" for name, value in given.items() if value is not None]
        _run(
            *(
                (f"worker {number}", Child(command, name=f"worker {number}").run)
                for number in range(processes)
            )
        )
        return
    with application:
        if settings.server_url is None:
            application.register_declared_jobs()
        _run(("worker", application.build_worker().run))


def _run(*loops: tuple[str, Loop]) -> None:
    """Until a signal comes, or a loop fails."""
    stop = threading.Event()
    with stopped_by_signals(stop), stopped_with_supervisor(stop):
        run_side_by_side([(name, loop, threading.Event()) for name, loop in loops], stop)


def _announce(url: str) -> None:
    write_line(f"Rota listens on {url}")


def _configure_logging(settings: Settings) -> None:
    configure_logging(level=settings.log_level, log_format=settings.log_format)
