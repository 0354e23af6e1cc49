"""The gateway to a server's HTTP API, as `docs/reference/worker-protocol.md` tells it. It needs no database.

Requests go over a few connections that are kept open. Nothing is repeated here: a request that failed raises, and
whoever asked knows what a repetition means. What waits for work does so in a thread of its own (`listening.py`), so
that heartbeats and settlements never wait behind it.
"""

import json
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime

import urllib3

from rota.domain.durations import parse_duration
from rota.domain.effect import EffectBegin, EffectState
from rota.domain.errors import InvalidExpression, MalformedBody
from rota.domain.job import Job
from rota.domain.job_form import job_to_wire
from rota.domain.json_text import JsonText, load_json
from rota.store.port import HeartbeatOutcome, Subscription, Wanted
from rota.wire.assignment import Assignment, json_of, read_assignment
from rota.wire.reports import NamedAttempt, end_to_wire, progress_to_wire
from rota.worker.gateway import Claim, EndReport, HeartbeatReport, ReportRefused, WakeUp
from rota.worker.listening import Listener
from rota.worker.server_answers import ServerAddress, ServerRefused, ServerUnavailable, read_answer

CONNECTIONS = 8
"""Kept open at most; threads beyond that open connections of their own for a request."""
CONNECT_SECONDS, READ_SECONDS = 5.0, 30.0
BATCH_MAX = 100
BATCH_BYTES_MAX = 768 * 1024
"""Of the ends in one request: the server takes 1 MiB, and one end may have a result of 256 KiB."""

Wire = dict[str, object]


class HttpGateway:
    """Threads may share it."""

    def __init__(self, url: str) -> None:
        """Raises `WrongSetting` where `url` is none of a server."""
        self.batch_max = BATCH_MAX
        self._address = ServerAddress.parse(url)
        self._pool = self._new_pool()
        self._lock = threading.Lock()
        self._listeners: list[Listener] = []

    def register(self, job: Job, *, now: datetime) -> None:  # noqa: ARG002  the server's clock decides
        self._ask(f"/jobs/{job.name}", job_to_wire(job), method="PUT")

    def claim(
        self, worker: str, wanted: Sequence[Wanted], *, now: datetime, limit: int, backlog_first: bool = False
    ) -> Claim:
        body: Wire = {
            "worker": worker,
            "jobs": [{"job": each.job, "limit": each.limit} for each in wanted],
            "limit": limit,
            "backlog_first": backlog_first,
        }
        answer = self._ask("/attempts/claim", body)
        claim = Claim(
            assignments=[read_assignment(item) for item in _list_in(answer, "attempts")],
            may_be_more=answer.get("may_be_more") is True,
            next_at=_instant_in(answer, now=now),
        )
        if not claim.may_be_more:
            with self._lock:
                for listener in self._listeners:
                    listener.arm(worker, [each.job for each in wanted])
        return claim

    def open(self, worker: str, attempt: NamedAttempt, *, now: datetime) -> Assignment | None:  # noqa: ARG002  the server's clock decides
        answer = self._ask("/attempts/open", {"worker": worker, **_named(attempt)})
        given = answer.get("attempt")
        return None if given is None else read_assignment(given)

    def heartbeat(self, reports: Sequence[HeartbeatReport], *, now: datetime) -> list[HeartbeatOutcome]:  # noqa: ARG002  the server's clock decides
        body = [{**_attempt_of(report), "progress": progress_to_wire(report.progress)} for report in reports]
        outcomes = _outcomes(self._ask("/attempts/heartbeat", {"attempts": body}), count=len(reports))
        try:
            return [HeartbeatOutcome(outcome) for outcome in outcomes]
        except ValueError as error:
            raise MalformedBody(f"The answer cannot be read: {error}.") from None

    def settle(self, reports: Sequence[EndReport], *, now: datetime) -> list[bool]:  # noqa: ARG002  the server's clock decides
        answers: list[bool] = []
        for batch in _batches([_attempt_of(report) | end_to_wire(report.end) for report in reports]):
            try:
                answer = self._ask("/attempts/settle", {"attempts": batch})
            except ServerRefused as refused:
                raise ReportRefused(str(refused)) from None
            answers += [outcome == "settled" for outcome in _outcomes(answer, count=len(batch))]
        return answers

    def begin_effect(self, attempt: NamedAttempt, name: str, *, now: datetime) -> EffectBegin:  # noqa: ARG002  the server's clock decides
        answer = self._ask("/effects/begin", {**_named(attempt), "name": name})
        result = answer.get("result")
        try:
            state = EffectState(str(answer.get("state")))
        except ValueError as error:
            raise MalformedBody(f"The answer cannot be read: {error}.") from None
        return EffectBegin(state=state, result=None if result is None else json_of(result))

    def record_effect(
        self,
        attempt: NamedAttempt,
        name: str,
        *,
        result: JsonText | None,
        now: datetime,  # noqa: ARG002  the server's clock decides
    ) -> bool:
        body = {**_named(attempt), "name": name, "result": None if result is None else load_json(result)}
        return self._ask("/effects/record", body).get("state") == EffectState.RECORDED

    def subscribe(self, wake_up: WakeUp) -> Subscription:
        listener = Listener(self._address, wake_up, left=self._leave)
        with self._lock:
            self._listeners.append(listener)
        return listener

    def close(self) -> None:
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners:
            listener.close()
        self._pool.close()
        self._pool = self._new_pool()

    def _leave(self, listener: Listener) -> None:
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)

    def _new_pool(self) -> urllib3.HTTPConnectionPool:
        return urllib3.connection_from_url(
            self._address.url,
            maxsize=CONNECTIONS,
            retries=False,
            timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS),
        )

    def _ask(self, path: str, body: Mapping[str, object], *, method: str = "POST") -> Wire:
        """The answer's members. Raises `ServerUnavailable`, `ServerRefused`, `MalformedBody`."""
        try:
            response = self._pool.urlopen(
                method,
                self._address.path_of(path),
                body=json.dumps(body, ensure_ascii=False).encode(),
                headers={"Content-Type": "application/json", "Accept": "application/json"},
                redirect=False,
            )
        except urllib3.exceptions.HTTPError as error:
            raise ServerUnavailable(f"{self._address.url} cannot be reached: {error}.") from None
        return read_answer(self._address, path, status=response.status, data=response.data)


def _named(attempt: NamedAttempt) -> Wire:
    return {"run_id": attempt.run_id, "attempt": attempt.attempt}


def _attempt_of(report: HeartbeatReport | EndReport) -> Wire:
    return {"run_id": report.assignment.run_id, "attempt": report.assignment.attempt}


def _batches(items: Sequence[Wire]) -> list[list[Wire]]:
    """The items in as few requests as their sizes allow."""
    batches: list[list[Wire]] = []
    size = 0
    for item in items:
        length = len(json.dumps(item, ensure_ascii=False).encode())
        if not batches or size + length > BATCH_BYTES_MAX:
            batches.append([])
            size = 0
        batches[-1].append(item)
        size += length
    return batches


def _list_in(answer: Wire, name: str) -> list[object]:
    given = answer.get(name)
    if not isinstance(given, list):
        raise MalformedBody(f"The answer has no list {name!r}.")
    return given


def _outcomes(answer: Wire, *, count: int) -> list[str]:
    items = _list_in(answer, "attempts")
    outcomes = [str(item.get("outcome")) for item in items if isinstance(item, dict)]
    if len(outcomes) != count:
        raise MalformedBody(f"The answer tells of {len(outcomes)} attempts, where {count} were asked for.")
    return outcomes


def _instant_in(answer: Wire, *, now: datetime) -> datetime | None:
    """When to ask again, by this side's clock: the answer tells how long that is from now."""
    given = answer.get("next_in")
    if not isinstance(given, str):
        return None
    try:
        return now + parse_duration(given)
    except InvalidExpression as error:
        raise MalformedBody(f"The answer cannot be read: {error}.") from None
