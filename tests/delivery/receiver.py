"""A real HTTP server on loopback that records what it is sent and answers as a test says."""

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType

from aiohttp import web

from tests.delivery.scene import DEADLINE_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One request."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the server says to every request of a path."""

    status: int = 204
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    hangs: bool = False
    """It says nothing until the server ends."""
    trickles: bool = False
    """It begins an answer that never ends."""
    breaks: bool = False
    """It ends the connection in the middle of its answer."""


class Receiver:
    """Threads share it: a test tells it what to answer, and looks at what came."""

    def __init__(self) -> None:
        self.port = 0
        self.answers: dict[str, Answer] = {}
        self.requests: list[Received] = []
        self.came = threading.Semaphore(0)
        self._ends = asyncio.Event()

    def url(self, path: str = "/hooks", *, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def wait(self) -> None:
        """Until one more request has come."""
        assert self.came.acquire(timeout=DEADLINE_SECONDS), "no request came in time"

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.requests.append(Received(method=request.method, path=request.path, headers=headers, body=body))
        self.came.release()
        answer = self.answers.get(request.path, Answer())
        if answer.hangs:
            await self._ends.wait()
        if not (answer.trickles or answer.breaks):
            return web.Response(status=answer.status, body=answer.body, headers=answer.headers)
        stream = web.StreamResponse(status=answer.status, headers=answer.headers)
        await stream.prepare(request)
        await stream.write(answer.body)
        if answer.trickles:
            await self._ends.wait()
        assert request.transport is not None
        request.transport.close()
        return stream

    async def end(self) -> None:
        self._ends.set()


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A server in a thread of its own."""
    receiver = Receiver()
    loop = asyncio.new_event_loop()
    is_ready = threading.Event()

    async def serve() -> web.AppRunner:
        application = web.Application(client_max_size=2**24)
        application.router.add_route("*", "/{tail:.*}", receiver.handle)
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        receiver.port = runner.addresses[0][1]
        is_ready.set()
        return runner

    def run() -> None:
        asyncio.set_event_loop(loop)
        runner = loop.run_until_complete(serve())
        loop.run_forever()
        loop.run_until_complete(receiver.end())
        loop.run_until_complete(runner.cleanup())
        loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    assert is_ready.wait(DEADLINE_SECONDS), "the server did not start"
    try:
        yield receiver
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(DEADLINE_SECONDS)
        assert not thread.is_alive(), "the server did not stop"
