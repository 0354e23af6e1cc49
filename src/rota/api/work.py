"""Routes of workers: claim, open, heartbeat, settle, and the ledger of effects."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import APIRouter, Depends
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from rota.api import answer_shapes, request_shapes
from rota.api.answers import GivenContext, answer
from rota.api.bodies import ObjectBody, ReportsBody
from rota.api.operations import Answer, operation
from rota.api.parameters import read_query
from rota.api.waiting import LOOK_SECONDS, WaitingRoom
from rota.domain.durations import parse_duration
from rota.service import work
from rota.service.context import Context
from rota.service.representation import Wire
from rota.service.work_requests import ClaimRequest, parse_claim
from rota.telemetry import get_logger

BACKLOG_FIRST_EVERY = 4
"""Of the claims that leave it to the server, one in so many asks for a backlog first."""

log = get_logger("api")

router = APIRouter(dependencies=[Depends(read_query)])


@router.post(
    "/attempts/claim",
    **operation(
        "attempt.claim",
        summary="Claim runs",
        answers={
            200: Answer(
                shape=answer_shapes.Claim, description="The attempts that were opened; there may be none."
            )
        },
        body=request_shapes.ClaimRequest,
    ),
)
async def claim(context: GivenContext, request: Request, body: ObjectBody) -> Response:
    """Opens attempts at runs that are available, up to `limit`; waits for them, up to `wait`, where there are none."""
    asked = parse_claim(body)
    room = request.app.state.waiting_room
    assert isinstance(room, WaitingRoom)  # noqa: S101 - put there by create_api
    async with _leaving(request) as gone:
        found = await (_claim(context, room, asked, gone) if asked.wait else _look(context, room, asked))
        if found["attempts"] and gone.done():
            # Nobody hears of them: they are not to wait until their leases have run out.
            await run_in_threadpool(work.give_back, context, found)
            log.warning("attempt.give_back", worker=asked.worker)
        return answer(found)


@router.post(
    "/attempts/open",
    **operation(
        "attempt.open",
        summary="Open the attempt of a message",
        answers={200: Answer(shape=answer_shapes.Opening, description="The attempt, or that it is stale.")},
        body=request_shapes.OpeningRequest,
    ),
)
def open_attempt(context: GivenContext, body: ObjectBody) -> Response:
    """Of several copies of a message one opens the attempt; to the others it is stale, as to what comes too late."""
    return answer(work.open_attempt(context, body))


@router.post(
    "/attempts/heartbeat",
    **operation(
        "attempt.heartbeat",
        summary="Keep attempts open",
        answers={200: Answer(shape=answer_shapes.HeartbeatOutcomes, description="One outcome for each.")},
        body=request_shapes.Heartbeats,
    ),
)
def heartbeat(context: GivenContext, body: ReportsBody) -> Response:
    """Prolongs the leases of attempts, stores their progress, and tells whether they are to stop."""
    return answer(work.heartbeat(context, body))


@router.post(
    "/attempts/settle",
    **operation(
        "attempt.settle",
        summary="Report the ends of attempts",
        answers={200: Answer(shape=answer_shapes.SettleOutcomes, description="One outcome for each.")},
        body=request_shapes.Ends,
    ),
)
def settle(context: GivenContext, body: ReportsBody) -> Response:
    """What becomes of their runs follows from the retry policies of their jobs. What comes too late changes nothing."""
    return answer(work.settle(context, body))


@router.post(
    "/effects/begin",
    **operation(
        "effect.begin",
        summary="Begin an effect",
        answers={200: Answer(shape=answer_shapes.EffectBegun, description="Whether it is to be done.")},
        body=request_shapes.EffectBegin,
    ),
)
def begin_effect(context: GivenContext, body: ObjectBody) -> Response:
    """Notes that the attempt begins an effect of its run, before it does it; or tells that it has been done."""
    return answer(work.begin_effect(context, body))


@router.post(
    "/effects/record",
    **operation(
        "effect.record",
        summary="Record an effect",
        answers={200: Answer(shape=answer_shapes.EffectRecorded, description="Whether it was recorded.")},
        body=request_shapes.EffectRecord,
    ),
)
def record_effect(context: GivenContext, body: ReportsBody) -> Response:
    """Notes that the effect was done, with its result, so that no later attempt does it again."""
    return answer(work.record_effect(context, body))


async def _claim(
    context: Context, room: WaitingRoom, asked: ClaimRequest, gone: asyncio.Future[None]
) -> Wire:
    """Looks, and waits for its turn to look again, until it has found something or its time is over."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + asked.wait.total_seconds()
    await room.enter(context)
    while True:
        notices = room.notices
        found = await _look(context, room, asked)
        if found["attempts"] or found["may_be_more"]:
            return found
        seconds = deadline - loop.time()
        if seconds <= 0:
            return found
        look_in = _seconds_to_next(found)
        is_turn = await room.wait(asked.jobs, gone, seconds=seconds, look_in=look_in, notices=notices)
        if not is_turn:
            return found


async def _look(context: Context, room: WaitingRoom, asked: ClaimRequest) -> Wire:
    if asked.backlog_first is None:
        asked = asked.with_backlog_first(room.is_backlogs_turn(BACKLOG_FIRST_EVERY))
    found = await run_in_threadpool(work.claim, context, asked)
    if found["attempts"] and found["may_be_more"]:
        room.pass_on(asked.jobs)
    elif found["attempts"]:
        room.look_in(asked.jobs, _seconds_to_next(found))
    return found


def _seconds_to_next(found: Wire) -> float:
    """When there will be more, as far as that is known."""
    next_in = found["next_in"]
    return parse_duration(next_in).total_seconds() if isinstance(next_in, str) else LOOK_SECONDS


@asynccontextmanager
async def _leaving(request: Request) -> AsyncIterator[asyncio.Future[None]]:
    """Done when the client has left."""

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    gone = asyncio.ensure_future(watch())
    try:
        yield gone
    finally:
        gone.cancel()
