"""Rota's own log lines below a level, left out for a while: a test's output is about the test."""

import logging
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager

import structlog

LEVELS = logging.getLevelNamesMapping()


@contextmanager
def only_from(level: str) -> Iterator[None]:
    """Drops what a room of Rota logs below `level`; what handlers log stays, and so does the configuration."""
    least = LEVELS[level.upper()]

    def drop(_logger: object, method: str, event: MutableMapping[str, object]) -> MutableMapping[str, object]:
        if "room" in event and LEVELS.get(method.upper(), least) < least:
            raise structlog.DropEvent
        return event

    before = structlog.get_config()["processors"]
    structlog.configure(processors=[drop, *before])
    try:
        yield
    finally:
        structlog.configure(processors=before)
