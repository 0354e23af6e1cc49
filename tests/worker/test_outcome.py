"""What becomes of a handler's return value and of its exceptions."""

from collections.abc import Callable
from types import MappingProxyType

import pytest

from rota.domain.job import RESULT_BYTES_MAX
from rota.domain.json_text import encode_json
from rota.domain.run import AttemptOutcome
from rota.domain.settlement import ERROR_CHARACTERS_MAX, AttemptEnd
from rota.wire.reports import storable
from rota.worker.outcome import (
    CancelledRun,
    Moot,
    PermanentFailure,
    end_of_error,
    end_of_result,
    message_of,
)


class CardDeclined(PermanentFailure):
    pass


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError


async def forgotten() -> int:
    return 1


def test_nothing_returned_is_a_success_without_a_result() -> None:
    assert end_of_result(None) == AttemptEnd(outcome=AttemptOutcome.SUCCEEDED)


@pytest.mark.parametrize("result", [0, "", False, [], {"rows": [1, 2.5, None, {"ok": True}]}])
def test_a_result_is_kept_as_canonical_json(result: object) -> None:
    assert end_of_result(result) == AttemptEnd(outcome=AttemptOutcome.SUCCEEDED, result=encode_json(result))


def test_a_result_of_the_greatest_size_is_kept() -> None:
    end = end_of_result("x" * (RESULT_BYTES_MAX - 2))
    assert (end.outcome, end.error) == (AttemptOutcome.SUCCEEDED, None)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: "x" * (RESULT_BYTES_MAX - 1), f"at most {RESULT_BYTES_MAX} are stored"),
        (lambda: "€" * (RESULT_BYTES_MAX // 3), f"at most {RESULT_BYTES_MAX} are stored"),
        (object, "A value of type object is not JSON"),
        (lambda: {1: "one"}, "keys are strings"),
        (lambda: float("nan"), "NaN and infinities are not JSON"),
        (lambda: 2**60, "2^53"),
        (lambda: "a\x00b", "NUL"),
        (lambda: "\ud800", "surrogate"),
        (lambda: MappingProxyType({"a": 1}), "mappingproxy"),
        (forgotten, "declare the handler with `async def`"),
    ],
)
def test_a_result_that_cannot_be_kept_fails_the_attempt_for_good(
    make: Callable[[], object], problem: str
) -> None:
    end = end_of_result(make())
    assert (end.outcome, end.retryable) == (AttemptOutcome.FAILED, False)
    assert end.error is not None
    assert end.error.startswith("The handler's result cannot be kept: ")
    assert problem in end.error


def test_a_result_that_contains_itself_fails_the_attempt_for_good() -> None:
    result: list[object] = []
    result.append(result)
    end = end_of_result(result)
    assert (end.outcome, end.retryable) == (AttemptOutcome.FAILED, False)


def test_moot_carries_its_reason() -> None:
    expected = AttemptEnd(outcome=AttemptOutcome.MOOT, error="already confirmed")
    assert end_of_result(Moot("already confirmed")) == expected


def test_an_exception_fails_the_attempt_with_its_type_and_message() -> None:
    expected = AttemptEnd(outcome=AttemptOutcome.FAILED, error="ValueError: no such report")
    assert end_of_error(ValueError("no such report"), cancel_requested=False) == expected


@pytest.mark.parametrize("error", [PermanentFailure("no such card"), CardDeclined("no such card")])
def test_a_permanent_failure_is_not_tried_again(error: PermanentFailure) -> None:
    end = end_of_error(error, cancel_requested=False)
    assert (end.outcome, end.retryable) == (AttemptOutcome.FAILED, False)
    assert end.error == f"{type(error).__name__}: no such card"


def test_a_handler_that_heeds_a_cancel_request_ends_cancelled() -> None:
    expected = AttemptEnd(outcome=AttemptOutcome.CANCELLED)
    assert end_of_error(CancelledRun("asked"), cancel_requested=True) == expected


def test_a_handler_that_cancels_without_a_request_has_failed() -> None:
    end = end_of_error(CancelledRun("on its own"), cancel_requested=False)
    assert (end.outcome, end.retryable) == (AttemptOutcome.FAILED, True)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError(), "ValueError"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyError("a"), "KeyError: 'a'"),
        (ValueError("a\x00b\ud800c"), "ValueError: a\ufffdb\ufffdc"),
        (ExceptionGroup("two", [ValueError("a")]), "ExceptionGroup: two (1 sub-exception)"),
    ],
)
def test_a_message_is_the_type_and_what_it_says(error: BaseException, message: str) -> None:
    assert message_of(error) == message


def test_an_exception_that_cannot_be_shown_is_still_named() -> None:
    assert message_of(Mute()).startswith("Mute: ")


def test_a_long_message_is_cut_at_the_limit() -> None:
    message = message_of(ValueError("x" * 10 * ERROR_CHARACTERS_MAX))
    assert len(message) == ERROR_CHARACTERS_MAX
    assert message.endswith("x…")


def test_a_text_of_the_greatest_length_is_not_cut() -> None:
    assert storable("abc", characters_max=3) == "abc"
    assert storable("abcd", characters_max=3) == "ab…"
