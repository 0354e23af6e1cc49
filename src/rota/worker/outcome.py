"""How a handler's return or exception becomes the end of its attempt, in text that every store can keep."""

import inspect
from dataclasses import dataclass
from traceback import TracebackException

from rota.domain.errors import RotaError
from rota.domain.job import RESULT_BYTES_MAX
from rota.domain.json_text import encode_json
from rota.domain.run import AttemptOutcome
from rota.domain.settlement import AttemptEnd
from rota.wire.reports import storable


@dataclass(frozen=True, slots=True)
class Moot:
    """A handler returns it where the current state leaves nothing to do (a reservation already confirmed).

    The run ends as `moot` with the reason, which is neither a success nor a failure and is not tried again.
    """

    reason: str


class PermanentFailure(RotaError):
    """A handler raises it, or a class of its own below it, where trying again is useless: the run fails at once."""


class EffectInDoubt(PermanentFailure):
    """An earlier attempt began an effect and recorded no end of it, and the handler asked to fail then.

    Find out whether it came to pass, and replay the run where it did not.
    """


class CancelledRun(RotaError):
    """The run was asked to stop, or its attempt is no longer this worker's; let it pass out of the handler."""


def end_of_result(result: object) -> AttemptEnd:
    """The end of an attempt whose handler returned; a result that cannot be kept fails it for good."""
    if isinstance(result, Moot):
        return AttemptEnd(outcome=AttemptOutcome.MOOT, error=storable(str(result.reason)))
    if inspect.isawaitable(result):
        if inspect.iscoroutine(result):
            result.close()
        return _unusable("it is an awaitable, not a value; declare the handler with `async def`")
    if result is None:
        return AttemptEnd(outcome=AttemptOutcome.SUCCEEDED)
    try:
        return AttemptEnd(
            outcome=AttemptOutcome.SUCCEEDED, result=encode_json(result, bytes_max=RESULT_BYTES_MAX)
        )
    except RotaError as error:
        return _unusable(str(error))
    except (TypeError, ValueError, RuntimeError) as error:
        # A mapping that only looks like one, or a dict that another thread still changes.
        return _unusable(message_of(error))


def verdict_of(answer: object) -> Moot | None:
    """What a guard's answer means: None lets the handler go on. Raises `TypeError` for what is no answer."""
    if answer is None or isinstance(answer, Moot):
        return answer
    if isinstance(answer, str) and answer:
        return Moot(answer)
    if inspect.iscoroutine(answer):
        answer.close()
    raise TypeError(
        f"The guard returned {type(answer).__name__}; it returns None to go on, or a reason (a text, or Moot) not to."
    )


def end_of_error(error: BaseException, *, cancel_requested: bool) -> AttemptEnd:
    """The end of an attempt whose handler raised."""
    if isinstance(error, CancelledRun) and cancel_requested:
        return AttemptEnd(outcome=AttemptOutcome.CANCELLED)
    return AttemptEnd(
        outcome=AttemptOutcome.FAILED,
        error=message_of(error),
        retryable=not isinstance(error, PermanentFailure),
    )


def message_of(error: BaseException) -> str:
    """`Type: message`, storable and bounded; the type alone where there is no message."""
    name = type(error).__name__
    # The standard library's way to a message, which holds where the exception's own `__str__` raises.
    message = str(TracebackException(type(error), error, None, compact=True))
    return storable(f"{name}: {message}" if message else name)


def _unusable(problem: str) -> AttemptEnd:
    return AttemptEnd(
        outcome=AttemptOutcome.FAILED,
        error=storable(f"The handler's result cannot be kept: {problem}"),
        retryable=False,
    )
