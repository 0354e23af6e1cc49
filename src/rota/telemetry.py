"""Structured log lines on standard error: one event name a line, the same nouns and verbs as everywhere."""

import logging
import sys

import structlog


def configure_logging(*, level: str, log_format: str) -> None:
    """Call once, at the start of a process."""
    renderer: structlog.typing.Processor
    if log_format == "json":
        renderer = structlog.processors.JSONRenderer()
    else:
        renderer = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=_print_to_standard_error,
        cache_logger_on_first_use=False,
    )


def _print_to_standard_error(*_: object) -> structlog.PrintLogger:
    """Asked for at each use: a program may have put another file in its place since."""
    return structlog.PrintLogger(sys.stderr)


# A program that uses Rota as a library may configure structlog for itself, before or after; this stands in for none.
if not structlog.is_configured():
    configure_logging(level="info", log_format="console")


def get_logger(room: str) -> structlog.typing.FilteringBoundLogger:
    """The logger of a room (`dispatch`, `worker`, `api`)."""
    logger: structlog.typing.FilteringBoundLogger = structlog.get_logger(room=room)
    return logger
