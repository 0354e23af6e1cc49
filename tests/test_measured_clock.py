"""The database's clock as a machine measures it: right within a round trip, and never taken back by a measurement."""

import threading
from datetime import UTC, datetime, timedelta

import pytest

from rota.clock import MeasuredClock, SystemClock
from rota.config import Settings
from rota.store.memory import MemoryStore
from rota.store.port import StoreUnavailable
from rota.store.sql import open_sql_store
from rota.testing.clock import ManualClock
from rota.wiring import open_clock
from tests.database_clock import Server
from tests.postgresql import Databases

START = datetime(2025, 6, 10, 8, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)
LATER = timedelta(seconds=MeasuredClock.MEASURED_AFTER_SECONDS)


@pytest.fixture
def machine() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
def server(machine: ManualClock) -> Server:
    return Server(machine)


def test_the_time_is_the_databases(machine: ManualClock, server: Server) -> None:
    clock = MeasuredClock(machine, server.read_time)
    assert clock.now() == START + HOUR
    machine.advance(5 * SECOND)
    assert clock.now() == START + HOUR + 5 * SECOND


def test_setting_this_machines_clock_changes_nothing(machine: ManualClock, server: Server) -> None:
    clock = MeasuredClock(machine, server.read_time)
    for leap in (8 * HOUR, -16 * HOUR):
        machine.leap(leap)
        assert clock.now() == server.time
        machine.advance(LATER)
        assert clock.now() == server.time


def test_the_fastest_of_a_few_answers_is_believed(machine: ManualClock, server: Server) -> None:
    ways = [(900, 10), (2, 2), (10, 900)]

    def read_time() -> datetime:
        there, back = ways[server.asked % len(ways)]
        server.there, server.back = there * MILLISECOND, back * MILLISECOND
        return server.read_time()

    clock = MeasuredClock(machine, read_time)
    assert clock.now() == server.time
    assert server.asked == len(ways)


def test_an_error_is_half_of_a_round_trip_at_most(machine: ManualClock, server: Server) -> None:
    server.there = 100 * MILLISECOND
    clock = MeasuredClock(machine, server.read_time)
    assert clock.now() == server.time + 50 * MILLISECOND


def test_it_is_measured_again_only_after_a_while(machine: ManualClock, server: Server) -> None:
    clock = MeasuredClock(machine, server.read_time)
    server.ahead += SECOND
    machine.advance(LATER - SECOND)
    assert clock.now() == server.time - SECOND
    machine.advance(SECOND)
    assert clock.now() == server.time
    assert clock.now() == server.time
    assert server.asked == 2 * MeasuredClock.ANSWERS


def test_a_measurement_takes_nobody_back(machine: ManualClock, server: Server) -> None:
    server.there = 100 * MILLISECOND
    clock = MeasuredClock(machine, server.read_time)
    ahead = clock.now()
    assert ahead == server.time + 50 * MILLISECOND
    machine.advance(LATER - MILLISECOND)
    before = clock.now()
    # Now the other way takes the time: the clock is found 100 ms earlier, and was not set.
    server.there, server.back = timedelta(0), server.there
    machine.advance(MILLISECOND)
    measured = clock.now()
    assert measured >= before
    machine.advance(200 * MILLISECOND)
    assert clock.now() == server.time - 50 * MILLISECOND


def test_a_clock_that_stands_still_goes_on_when_it_has_been_caught_up_with(
    machine: ManualClock, server: Server
) -> None:
    server.there = 10 * MILLISECOND
    clock = MeasuredClock(machine, server.read_time)
    machine.advance(LATER)
    server.ahead -= 8 * MILLISECOND
    told = [clock.now()]
    for _ in range(20):
        machine.advance(MILLISECOND)
        told.append(clock.now())
    assert told == sorted(told)
    assert told[-1] == server.time + 5 * MILLISECOND


def test_a_databases_clock_that_is_set_back_is_gone_along_with(machine: ManualClock, server: Server) -> None:
    clock = MeasuredClock(machine, server.read_time)
    clock.now()
    server.ahead -= 2 * HOUR
    machine.advance(LATER)
    assert clock.now() == server.time


def test_the_last_measurement_holds_while_the_database_is_away(machine: ManualClock, server: Server) -> None:
    clock = MeasuredClock(machine, server.read_time)
    server.is_away = True
    machine.advance(LATER)
    assert clock.now() == server.time
    asked = server.asked
    machine.advance(LATER - SECOND)
    assert clock.now() == server.time
    assert server.asked == asked, "what cannot be reached is not asked each time"
    server.is_away = False
    server.ahead += SECOND
    machine.advance(SECOND)
    assert clock.now() == server.time


def test_nobody_waits_for_a_measurement_of_another(machine: ManualClock, server: Server) -> None:
    is_asked, goes_on = threading.Event(), threading.Event()
    is_slow = False

    def read_time() -> datetime:
        if is_slow:
            is_asked.set()
            assert goes_on.wait(10)
        return server.read_time()

    clock = MeasuredClock(machine, read_time)
    is_slow = True
    machine.advance(LATER)
    measuring = threading.Thread(target=clock.now)
    measuring.start()
    assert is_asked.wait(10)
    assert clock.now() == server.time
    goes_on.set()
    measuring.join(10)


def test_a_database_that_is_away_at_the_start_is_told(machine: ManualClock, server: Server) -> None:
    server.is_away = True
    with pytest.raises(StoreUnavailable):
        MeasuredClock(machine, server.read_time)


def test_the_clock_of_postgresql_is_measured_and_that_of_others_is_the_machines(
    postgresql: Databases,
) -> None:
    settings = Settings()
    assert isinstance(open_clock(settings, MemoryStore()), SystemClock)
    url = postgresql.lend()
    store = open_sql_store(url)
    clock = open_clock(settings, store)
    assert isinstance(clock, MeasuredClock)
    before = store.read_time()
    between = clock.now()
    after = store.read_time()
    assert before is not None
    assert after is not None
    # Measured at half a round trip's error, of a socket: far below this.
    assert before - 100 * MILLISECOND <= between <= after + 100 * MILLISECOND
    store.close()
    postgresql.give_back(url)
