"""Webhooks: each message is posted to its job's URL as a signed CloudEvent, by one event loop in a thread.

| answer | what becomes of it |
|---|---|
| 2xx | the attempt succeeded; a JSON body is the run's result, if it comes whole and in time |
| 202 | accepted: the receiver opens, heartbeats and settles the attempt by the worker protocol |
| 410 | the run fails for good |
| 413 | the message is dead: this one can never be taken |
| 429, 503 | the try failed; `Retry-After` is honoured |
| any other, none in time | the try failed |

Redirects are not followed, proxies of the environment not used, no more of an answer is read than could be kept, and
every address is looked at when it is connected to (`rota.delivery.addresses`).
"""

import asyncio
import concurrent.futures
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from rota.delivery.addresses import Networks
from rota.delivery.message import event_id_of, event_of
from rota.delivery.outcome import Accepted, Completed, Failed, Outcome, Rejected, Says, failure_of, shown
from rota.delivery.sends import Call, Done, Send, Threads
from rota.delivery.signing import read_secrets, signature_headers
from rota.domain.errors import RotaError, WrongSetting
from rota.domain.job import RESULT_BYTES_MAX
from rota.domain.json_text import JsonText, decode_json, encode_json
from rota.domain.sink import WebhookSink
from rota.telemetry import get_logger

CONTENT_TYPE = "application/cloudevents+json; charset=utf-8"
KEPT_ALIVE_SECONDS = 1.5
"""Less than servers keep an idle connection: one that is closed while a request begins fails it."""
RETRY_AFTER_MAX = timedelta(days=1)
EXCERPT_BYTES = 400
LOOKUPS_MAX = 128
"""Names that are resolved at once. Each may take long, and cannot be given up."""
CLOSES_WITHIN_SECONDS = 2.0

log = get_logger("delivery")

AddressInfos = Sequence[
    tuple[int, int, int, str, tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]]
]
Lookup = Callable[[str, int], AddressInfos]
"""Resolves a name and a port as `socket.getaddrinfo` does. Raises `OSError`."""


class WebhookSender:
    """Starts requests from one thread, and has them made in another one."""

    batch_max = 1

    def __init__(
        self,
        *,
        source: str,
        networks: Networks,
        environment: Mapping[str, str],
        inline: bool = False,
        lookup: Lookup | None = None,
    ) -> None:
        self._source = source
        self._networks = networks
        self._environment = environment
        self._inline = inline
        self._resolver = NameResolver(lookup or resolve_stream)
        self._session: aiohttp.ClientSession | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="rota-webhooks", daemon=True)
        self._thread.start()

    def start(self, batch: Sequence[Send], done: Done) -> None:
        for send in batch:
            future = asyncio.run_coroutine_threadsafe(self._send(send), self._loop)
            if self._inline:
                concurrent.futures.wait([future])
                done(send, _outcome_of(future))
            else:
                future.add_done_callback(partial(_tell, send, done))

    def write_off(self, send: Send) -> None:
        """Its request has a timeout of its own."""

    def close(self) -> None:
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._end(), self._loop)
            self._thread.join(CLOSES_WITHIN_SECONDS)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.close()

    async def _end(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for each in others:
            each.cancel()
        if others:
            await asyncio.wait(others, timeout=CLOSES_WITHIN_SECONDS / 2)
        if self._session is not None:
            await self._session.close()
        self._loop.stop()

    async def _send(self, send: Send) -> Outcome:
        sink = send.taken.job.sink
        assert isinstance(sink, WebhookSink)  # noqa: S101 - what this sender is asked for
        try:
            secrets = read_secrets(sink.secrets_from, self._environment)
        except WrongSetting as error:
            return Failed(error=str(error), says=Says.NOTHING)
        body = event_of(send.taken, source=self._source).encode()
        event_id = event_id_of(send.taken)
        headers = {
            "content-type": CONTENT_TYPE,
            "accept-encoding": "identity",
            "user-agent": "rota",
            "idempotency-key": send.taken.run.run_id,
            **signature_headers(event_id, body, secrets=secrets, now=send.began),
        }
        try:
            async with self._open_session().post(
                URL(sink.url, encoded=True),
                data=body,
                headers=headers,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=sink.timeout.total_seconds()),
            ) as response:
                return await _judge(response, now=send.began)
        except TimeoutError:
            return Failed(error=f"There was no whole answer within {sink.timeout.total_seconds():g} seconds.")
        except aiohttp.ClientConnectorError as error:
            problem = error.os_error.strerror or str(error.os_error)
            return Failed(error=shown(f"The receiver cannot be reached: {problem}."), says=Says.AWAY)
        except (aiohttp.ClientError, OSError) as error:
            return Failed(error=shown(f"The request failed: {type(error).__name__}: {error}"))

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=0,  # the relay's slots are the limit
                    keepalive_timeout=KEPT_ALIVE_SECONDS,
                    resolver=self._resolver,
                    socket_factory=self._networks.open_socket,
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
            )
        return self._session


class NameResolver(AbstractResolver):
    """Resolves names in threads of its own, of which there are enough that names which hang hold up no others."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self._threads = Threads("rota-lookup", size=LOOKUPS_MAX)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        answer: concurrent.futures.Future[AddressInfos] = concurrent.futures.Future()

        def look() -> None:
            if not answer.set_running_or_notify_cancel():
                return  # nobody waits for it any more
            try:
                answer.set_result(self._lookup(host, port))
            except (OSError, UnicodeError) as error:
                answer.set_exception(OSError(f"the name {host} cannot be resolved: {error}"))

        self._threads.start(Call(look))
        return [
            ResolveResult(
                hostname=host,
                host=str(place[0]),
                port=port,
                family=of_family,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for of_family, _, protocol, _, place in await asyncio.wrap_future(answer)
            if family in {socket.AF_UNSPEC, of_family}
        ]

    async def close(self) -> None:
        self._threads.close()


def _tell(send: Send, done: Done, future: "concurrent.futures.Future[Outcome]") -> None:
    done(send, _outcome_of(future))


def resolve_stream(host: str, port: int) -> AddressInfos:
    """The machine's own resolution of a name. Raises `OSError`."""
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)


def _outcome_of(future: "concurrent.futures.Future[Outcome]") -> Outcome:
    """What a request came to, one that was given up as the relay stopped included."""
    if future.cancelled():
        return Failed(error="The relay was stopped before the answer came.", says=Says.NOTHING)
    error = future.exception()
    return future.result() if error is None else failure_of(error)


async def _judge(response: aiohttp.ClientResponse, *, now: datetime) -> Outcome:
    status = response.status
    if status == 202:
        return Accepted()
    if 200 <= status < 300:
        return Completed(result=await _result(response))
    error = f"The receiver answered {status}"
    if 300 <= status < 400:
        place = shown(response.headers.get("location", "nowhere"), characters_max=200)
        return Failed(
            error=f"{error}, a redirect to {place}; redirects are not followed: give the job's sink the final URL.",
            says=Says.REACHED,
        )
    excerpt = await _excerpt(response)
    error = f"{error}: {excerpt}" if excerpt else f"{error}."
    if status == 410:
        return Rejected(error=error)
    busy = status in {429, 503}
    away = busy or status in {502, 504}
    return Failed(
        error=error,
        retry_after=_retry_after(response.headers.get("retry-after"), now=now) if busy else None,
        is_final=status == 413,
        says=Says.AWAY if away else Says.FAILED if status >= 500 else Says.REACHED,
    )


async def _excerpt(response: aiohttp.ClientResponse) -> str:
    """How the body begins; nothing where it cannot be read: what the status says holds all the same."""
    try:
        begin = await response.content.read(EXCERPT_BYTES)
    except (TimeoutError, aiohttp.ClientError, OSError):
        return ""
    return shown(begin.decode(errors="replace"), characters_max=200)


async def _result(response: aiohttp.ClientResponse) -> JsonText | None:
    """The JSON of the answer; None where there is none, or none that can be kept: the work was done all the same."""
    kind = response.content_type
    if "content-encoding" in response.headers or not (kind == "application/json" or kind.endswith("+json")):
        return None
    body = bytearray()
    try:
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > RESULT_BYTES_MAX:
                log.warning("webhook.result_left_out", problem=f"It has more than {RESULT_BYTES_MAX} bytes.")
                return None
        if not body.strip():
            return None
        return encode_json(decode_json(bytes(body), bytes_max=RESULT_BYTES_MAX), bytes_max=RESULT_BYTES_MAX)
    except (TimeoutError, aiohttp.ClientError, OSError, RotaError) as error:
        log.warning(
            "webhook.result_left_out", problem=str(error) or f"It was not whole: {type(error).__name__}."
        )
        return None


def _retry_after(value: str | None, *, now: datetime) -> timedelta | None:
    """How long the receiver asks to be left alone: seconds or a date; None where it does not say."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdecimal():
        return min(timedelta(seconds=int(text[:9])), RETRY_AFTER_MAX)
    try:
        instant = parsedate_to_datetime(text)
        # A date without a zone (`-0000`) is meant as UTC.
        wait = (instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant) - now
    except (ValueError, TypeError, OverflowError, IndexError):
        return None  # no date, or one that no clock shows
    return min(max(wait, timedelta(0)), RETRY_AFTER_MAX)
