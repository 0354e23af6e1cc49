"""The signals that stop a process: which one asks, and which one ends it at once."""

import os
import signal
import threading

import pytest

from rota.application.stopping import SAME_SECONDS, stopped_by_signals


class Seconds:
    """A monotonic clock that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def exits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The codes with which the process would have ended at once."""
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    return codes


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("again", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_within_a_second_of_the_first_is_the_same_one_and_a_later_one_ends_the_process(
    exits: list[int], first: signal.Signals, again: signal.Signals
) -> None:
    stop, seconds = threading.Event(), Seconds()
    with stopped_by_signals(stop, seconds=seconds):
        signal.raise_signal(first)
        assert stop.wait(10)
        for later in (0.0, SAME_SECONDS - 0.01):
            seconds.now = 100.0 + later
            signal.raise_signal(again)
        assert exits == []
        seconds.now = 100.0 + SAME_SECONDS
        signal.raise_signal(again)
    assert exits == [128 + again]


def test_signals_are_handled_as_before_once_it_is_left() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with stopped_by_signals(threading.Event()):
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before
