"""Claims that wait, on a real server: what ends a wait, and what many of them cost."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta

import pytest
from httpx2 import Client

from rota.api.waiting import WaitingRoom
from rota.service import work
from rota.service.context import Context
from rota.service.representation import Wire
from rota.service.work_requests import ClaimRequest
from rota.testing import World
from tests.worker.served import Served, running_server

pytestmark = pytest.mark.slow

MANY = 500
DEADLINE_SECONDS = 20.0
SECOND = timedelta(seconds=1)


class Shop:
    """A server on a world whose clock stands still, with its waiting room."""

    def __init__(self, world: World, served: Served) -> None:
        self.world = world
        self.served = served
        room = served.api.state.waiting_room
        assert isinstance(room, WaitingRoom)
        self.room = room

    @property
    def waiting(self) -> int:
        return sum(len(group.waiting) for group in list(self.room._groups.values()))

    def queue(self, count: int, job: str = "echo") -> None:
        """So many runs, queued by one commit."""
        app, due = self.world.app, self.world.now + SECOND
        for _ in range(count):
            app.create_schedule(job=job, timezone="UTC", recurrence={"at": due})
        self.world.clock.set(due)
        self.world.dispatcher.step(due)

    def wait_until(self, is_reached: Callable[[], bool]) -> None:
        pause = threading.Event()
        for _ in range(int(DEADLINE_SECONDS * 100)):
            if is_reached():
                return
            pause.wait(0.01)
        pytest.fail("it did not come to that in time")


@pytest.fixture
def shop() -> Iterator[Shop]:
    world = World()
    with running_server(world.app.context) as served:
        yield Shop(world, served)


class Poll:
    """One claim that waits, in a connection of its own."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def begin(cls, url: str, **fields: object) -> "Poll":
        host, _, port = url.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        body = json.dumps({"worker": "w", "jobs": ["echo"], "wait": "PT1M"} | fields).encode()
        head = f"POST /attempts/claim HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        return cls(reader, writer)

    async def answer(self) -> dict[str, object]:
        head = await self.reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        length = next(
            int(line.split(b":")[1])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length")
        )
        answer: dict[str, object] = json.loads(await self.reader.readexactly(length))
        await self.leave()
        return answer

    async def leave(self) -> None:
        self.writer.close()
        with suppress(OSError):
            await self.writer.wait_closed()


def test_many_that_wait_hold_no_thread_and_each_run_ends_one_wait(shop: Shop) -> None:
    async def poll() -> None:
        polls = [await Poll.begin(shop.served.url) for _ in range(MANY)]
        await asyncio.to_thread(shop.wait_until, lambda: shop.waiting == MANY)
        # Far fewer threads than there are waits, and others are answered: a route that needs a thread, too.
        assert threading.active_count() < 80
        answered = await asyncio.to_thread(get_jobs, shop.served.url)
        assert answered == 200
        answers = [asyncio.create_task(each.answer()) for each in polls]
        await asyncio.to_thread(shop.queue, 30)
        await asyncio.to_thread(shop.wait_until, lambda: sum(each.done() for each in answers) >= 30)
        done = [each.result() for each in answers if each.done()]
        given = [attempt["run_id"] for each in done for attempt in each["attempts"]]  # type: ignore[attr-defined]  # JSON
        assert len(given) == len(set(given)) == 30
        # Who looks in vain waits again.
        await asyncio.to_thread(shop.wait_until, lambda: shop.waiting == MANY - 30)
        for each in answers:
            each.cancel()
        for each_poll in polls:
            await each_poll.leave()
        # Who has left waits no more: nothing is given to nobody.
        await asyncio.to_thread(shop.wait_until, lambda: shop.waiting == 0)
        assert shop.room._groups == {}

    asyncio.run(asyncio.wait_for(poll(), 60))


def get_jobs(url: str) -> int:
    with Client(base_url=url, timeout=10) as client:
        return client.get("/jobs").status_code


def test_a_wait_ends_when_its_time_is_over(shop: Shop) -> None:
    async def poll() -> dict[str, object]:
        return await (await Poll.begin(shop.served.url, wait="PT0.1S")).answer()

    answer = asyncio.run(asyncio.wait_for(poll(), DEADLINE_SECONDS))
    assert answer == {"attempts": [], "may_be_more": False, "next_in": None}


def test_a_wait_for_a_notice_of_other_jobs_goes_on(shop: Shop) -> None:
    async def poll() -> None:
        other = await Poll.begin(shop.served.url, jobs=["other"])
        own = await Poll.begin(shop.served.url, limit=0)
        await asyncio.to_thread(shop.wait_until, lambda: shop.waiting == 2)
        await asyncio.to_thread(shop.queue, 1)
        assert (await own.answer())["may_be_more"] is True
        await asyncio.to_thread(shop.wait_until, lambda: shop.waiting == 1)
        await other.leave()
        await asyncio.to_thread(shop.wait_until, lambda: shop.waiting == 0)

    asyncio.run(asyncio.wait_for(poll(), DEADLINE_SECONDS))


def test_what_nobody_was_told_of_is_found_within_a_second(shop: Shop) -> None:
    async def poll() -> dict[str, object]:
        waiting = await Poll.begin(shop.served.url)
        await asyncio.to_thread(shop.wait_until, lambda: shop.waiting == 1)
        subscription = shop.room._subscription
        assert subscription is not None
        subscription.close()  # as where another process commits, on SQLite
        await asyncio.to_thread(shop.queue, 1)
        return await waiting.answer()

    answer = asyncio.run(asyncio.wait_for(poll(), DEADLINE_SECONDS))
    assert len(answer["attempts"]) == 1  # type: ignore[arg-type]  # JSON


@pytest.mark.parametrize("limit", [0, 5])
def test_those_who_go_on_waiting_look_too_when_one_has_left_with_what_it_found(
    shop: Shop, limit: int
) -> None:
    async def poll() -> None:
        polls = []
        for count in range(1, 5):
            polls.append(await Poll.begin(shop.served.url, limit=limit))
            await asyncio.to_thread(shop.wait_until, lambda count=count: shop.waiting == count)  # type: ignore[misc]  # bound early
        subscription = shop.room._subscription
        assert subscription is not None
        subscription.close()  # as where another process commits, on SQLite
        answers = [asyncio.create_task(each.answer()) for each in polls]
        for count in range(1, 5):
            await asyncio.to_thread(shop.queue, 1)
            await asyncio.to_thread(
                shop.wait_until,
                lambda count=count: sum(each.done() for each in answers) >= count,  # type: ignore[misc]  # the same
            )
        given = [attempt["run_id"] for each in answers for attempt in each.result()["attempts"]]  # type: ignore[attr-defined]  # JSON
        assert len(set(given)) == len(given) == (4 if limit else 0)

    asyncio.run(asyncio.wait_for(poll(), 60))


@pytest.mark.parametrize("wait", ["PT0S", "PT1M"])
def test_what_was_claimed_for_a_client_that_has_gone_is_given_back(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, wait: str
) -> None:
    looking, left = threading.Event(), threading.Event()
    claim = work.claim

    def slow(context: Context, asked: ClaimRequest) -> Wire:
        looking.set()
        assert left.wait(DEADLINE_SECONDS)
        return claim(context, asked)

    monkeypatch.setattr(work, "claim", slow)

    async def poll() -> None:
        await asyncio.to_thread(shop.queue, 1)
        gone = await Poll.begin(shop.served.url, wait=wait)
        assert await asyncio.to_thread(looking.wait, DEADLINE_SECONDS)
        await gone.leave()
        # The server has heard of it when it has answered somebody who came later.
        assert await asyncio.to_thread(get_jobs, shop.served.url) == 200
        left.set()
        await asyncio.to_thread(shop.wait_until, lambda: len(outcomes(shop)) == 1)

    asyncio.run(asyncio.wait_for(poll(), DEADLINE_SECONDS))
    [run] = shop.world.app.runs()
    assert (run["state"], outcomes(shop)) == ("queued", ["interrupted"])
    # It costs the run no try, and is there at once.
    assert shop.world.store.read_next_intent_time(["echo"]) <= shop.world.now  # type: ignore[operator]  # it is queued


def outcomes(shop: Shop) -> list[object]:
    """Of the attempts of its only run, those that have ended."""
    [run] = shop.world.app.runs()
    attempts = shop.world.app.get_run(str(run["run_id"]))["attempts"]
    assert isinstance(attempts, list)
    return [attempt["outcome"] for attempt in attempts if attempt["outcome"] is not None]


def test_a_server_that_stops_ends_every_wait_at_once() -> None:
    world = World()

    async def poll(shop: Shop) -> None:
        polls = [await Poll.begin(shop.served.url) for _ in range(20)]
        await asyncio.to_thread(shop.wait_until, lambda: shop.waiting == 20)
        shop.room.end()
        for each in polls:
            answer = await asyncio.wait_for(each.answer(), 5)
            assert answer["attempts"] == []
        assert (await (await Poll.begin(shop.served.url)).answer())["attempts"] == []

    with running_server(world.app.context) as served:
        asyncio.run(asyncio.wait_for(poll(Shop(world, served)), DEADLINE_SECONDS))
