"""Callers that do something at the same time, in threads of their own."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

CALLERS = 4
Answer = TypeVar("Answer")


def all_at_once(call: Callable[[int], Answer]) -> list[Answer]:
    """The answers of `CALLERS` threads that each make the call with their own number."""
    barrier = Barrier(CALLERS, timeout=30)

    def wait_and_call(number: int) -> Answer:
        barrier.wait()
        return call(number)

    with ThreadPoolExecutor(CALLERS) as pool:
        return list(pool.map(wait_and_call, range(CALLERS)))
