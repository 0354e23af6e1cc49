"""Jobs as the JSON texts that their table keeps.

Limits are not judged when one is read: what was allowed when it was written still is.
"""

from collections.abc import Mapping
from functools import lru_cache

from rota.domain.definition import parse_overdue
from rota.domain.durations import parse_duration
from rota.domain.job import Job, RetryPolicy
from rota.domain.job_form import job_to_wire
from rota.domain.json_text import JsonText, encode_json, load_json
from rota.domain.sink import CelerySink, DeliveryPolicy, Sink, SqsSink, WebhookSink, WorkerSink
from rota.store.sql import cells

KEPT = 4_096
"""Texts whose jobs are kept: some megabytes."""


def job_text(job: Job) -> JsonText:
    return encode_json(job_to_wire(job))


@lru_cache(maxsize=KEPT)
def read_job(name: str, text: str) -> Job:
    """The job of a text that `job_text` made."""
    wire = cells.members(load_json(JsonText(text)))
    return Job(
        name=name,
        overdue=parse_overdue(wire["overdue"]),
        retry=_retry(cells.members(wire["retry"])),
        timeout=cells.optional(wire["timeout"], lambda cell: parse_duration(cells.text(cell))),
        lease=parse_duration(cells.text(wire["lease"])),
        params_bytes_max=cells.integer(wire["params_bytes_max"]),
        sink=_sink(wire["sink"]),
        delivery=_delivery(cells.members(wire["delivery"])),
        priority=cells.integer(wire["priority"]),
        max_running=cells.optional(wire["max_running"], cells.integer),
        description=cells.text_or_none(wire["description"]),
    )


def _retry(wire: Mapping[str, object]) -> RetryPolicy:
    return RetryPolicy(
        max_attempts=cells.integer(wire["max_attempts"]),
        initial_delay=parse_duration(cells.text(wire["initial_delay"])),
        factor=cells.number(wire["factor"]),
        max_delay=parse_duration(cells.text(wire["max_delay"])),
        jitter=cells.number(wire["jitter"]),
    )


def _delivery(wire: Mapping[str, object]) -> DeliveryPolicy:
    return DeliveryPolicy(
        initial_delay=parse_duration(cells.text(wire["initial_delay"])),
        factor=cells.number(wire["factor"]),
        max_delay=parse_duration(cells.text(wire["max_delay"])),
        jitter=cells.number(wire["jitter"]),
        max_age=parse_duration(cells.text(wire["max_age"])),
        redeliver_after=parse_duration(cells.text(wire["redeliver_after"])),
        concurrency=cells.integer(wire["concurrency"]),
    )


def _sink(wire: object) -> Sink:
    match wire:
        case {"type": "worker"}:
            return WorkerSink()
        case {"type": "webhook", "url": str(url), "secrets_from": list(names), "timeout": str(timeout)}:
            secrets_from = tuple(cells.text(name) for name in names)
            return WebhookSink(url=url, secrets_from=secrets_from, timeout=parse_duration(timeout))
        case {"type": "celery", "task": str(task), "queue": queue}:
            return CelerySink(task=task, queue=cells.text_or_none(queue))
        case {"type": "sqs", "queue_url": str(url)}:
            return SqsSink(queue_url=url)
        case _:
            raise ValueError(f"{wire!r} is no sink")
