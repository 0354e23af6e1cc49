"""Ids that nothing determines: the only place that draws them."""

import os
import socket

from uuid_utils.compat import uuid7

from rota.domain.identity import ScheduleId


def new_schedule_id() -> ScheduleId:
    """A time-ordered id, for schedules whose maker did not name them."""
    return ScheduleId(f"s-{uuid7().hex}")


def new_process_name(role: str) -> str:
    """Names one start of one process, as `dispatch@host:4711:<random>`: two starts never share a name."""
    return f"{role}@{socket.gethostname()}:{os.getpid()}:{uuid7().hex[-8:]}"


def new_request_key() -> str:
    """The key of a request that came with none: it is repeated by nobody."""
    return uuid7().hex
