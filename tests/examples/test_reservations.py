"""The example of reservations: whatever its timers do, a confirmed seat stays its customer's and no seat is lost."""

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from examples.reservations.box_office import BoxOffice
from examples.reservations.shop import Shop, SoldOut
from rota.store.sql import open_sql_store
from rota.testing import World

NOON = datetime(2026, 3, 6, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
SEATS = 2_500
HOLDS = 2_000


class Scene:
    """A box office in a world."""

    def __init__(self, folder: Path) -> None:
        self.world = World(now=NOON, store=open_sql_store(str(folder / "rota.db")), log_level="error")
        self.shop = Shop(folder / "shop.db")
        self.office = BoxOffice(self.world.app, self.shop)
        self.shop.open_show("hamlet", seats=SEATS)

    def hold(self, reservation_id: str, *, minutes: int = 10) -> None:
        self.office.hold(reservation_id, "hamlet", until=self.world.now + minutes * MINUTE)

    def state(self, reservation_id: str) -> str:
        reservation = self.shop.get(reservation_id)
        assert reservation is not None
        return reservation.state

    def run_states(self, reservation_id: str) -> list[object]:
        """Of its timers, the newest first."""
        return [run["state"] for run in self.world.app.runs(label=f"reservation={reservation_id}")]

    def check_seats(self) -> None:
        counted = self.shop.count("hamlet")
        taken = counted.get("held", 0) + counted.get("confirmed", 0)
        assert counted["free"] + taken == SEATS


@pytest.fixture
def scene(folder: Path) -> Iterator[Scene]:
    scene = Scene(folder)
    with scene.world:
        yield scene
        scene.check_seats()


def test_a_hold_expires_at_its_time_and_frees_its_seat(scene: Scene) -> None:
    scene.hold("a")
    scene.world.pass_time(10 * MINUTE - timedelta(seconds=1))
    assert (scene.state("a"), scene.shop.count("hamlet")["free"]) == ("held", SEATS - 1)
    scene.world.pass_time(timedelta(seconds=1))
    assert (scene.state("a"), scene.shop.count("hamlet")["free"]) == ("expired", SEATS)
    assert scene.run_states("a") == ["succeeded"]


def test_the_timer_of_a_confirmed_reservation_is_moot(scene: Scene) -> None:
    scene.hold("a")
    assert scene.office.confirm("a")
    scene.world.pass_time(timedelta(hours=1))
    assert (scene.state("a"), scene.run_states("a")) == ("confirmed", ["moot"])
    [run] = scene.world.app.runs(label="reservation=a")
    assert run["reason"] == "the reservation is confirmed"


def test_a_timer_that_fires_late_expires_what_is_held_and_nothing_else(scene: Scene) -> None:
    scene.hold("a")
    scene.hold("b")
    scene.world.clock.advance(timedelta(hours=3))  # Nobody was there to dispatch.
    assert scene.office.confirm("b")  # Late, but the seat is still there.
    scene.world.settle()
    assert (scene.state("a"), scene.state("b")) == ("expired", "confirmed")


def test_a_hold_that_is_extended_is_left_alone_until_then(scene: Scene) -> None:
    scene.hold("a")
    scene.world.pass_time(5 * MINUTE)
    assert scene.office.extend("a", until=scene.world.now + 30 * MINUTE)
    scene.world.pass_time(10 * MINUTE)
    assert scene.state("a") == "held"
    scene.world.pass_time(20 * MINUTE)
    assert (scene.state("a"), scene.run_states("a")) == ("expired", ["succeeded", "moot"])


def test_a_hold_that_is_extended_while_its_timer_fires_gets_another_timer(scene: Scene) -> None:
    scene.hold("a")
    scene.world.clock.advance(10 * MINUTE)
    scene.world.dispatcher.step(scene.world.now)  # The run is queued, and its handler has not begun.
    assert scene.office.extend("a", until=scene.world.now + 10 * MINUTE)
    scene.world.settle()
    assert (scene.state("a"), scene.run_states("a")) == ("held", ["moot"])
    scene.world.pass_time(10 * MINUTE)
    assert scene.state("a") == "expired"


def test_a_process_that_dies_between_timer_and_hold_leaves_a_moot_timer(scene: Scene) -> None:
    real, scene.office.shop = scene.shop, Dying()
    with pytest.raises(KeyboardInterrupt):
        scene.hold("a")
    scene.office.shop = real
    scene.world.pass_time(timedelta(hours=1))
    assert scene.run_states("a") == ["moot"]


class Dying(Shop):
    def __init__(self) -> None:
        pass

    def hold(self, reservation_id: str, show: str, *, until: datetime) -> None:
        raise KeyboardInterrupt


def test_a_hold_that_is_asked_for_twice_takes_one_seat_and_one_timer(scene: Scene) -> None:
    scene.hold("a")
    scene.hold("a")
    assert scene.shop.count("hamlet") == {"free": SEATS - 1, "held": 1}
    scene.world.pass_time(timedelta(hours=1))
    assert scene.run_states("a") == ["succeeded"]


def test_no_more_seats_are_held_than_there_are(scene: Scene) -> None:
    scene.shop.open_show("faust", seats=1)
    scene.office.hold("a", "faust", until=scene.world.now + 10 * MINUTE)
    with pytest.raises(SoldOut):
        scene.office.hold("b", "faust", until=scene.world.now + 10 * MINUTE)


def at_once(calls: list[Callable[[], object]]) -> None:
    """Makes the calls in threads that begin together."""
    barrier = threading.Barrier(len(calls))

    def make(call: Callable[[], object]) -> None:
        barrier.wait()
        call()

    threads = [threading.Thread(target=make, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.slow
def test_timers_that_fire_twice_beside_a_confirmation_free_a_seat_once_or_not_at_all(scene: Scene) -> None:
    until = NOON + 10 * MINUTE
    outcomes: Counter[str] = Counter()
    for number in range(50):
        reservation_id = f"r{number}"
        scene.shop.hold(reservation_id, "hamlet", until=until)
        confirmed: list[bool] = []
        expired: list[str | None] = []

        def confirm(id_: str = reservation_id, seen: list[bool] = confirmed) -> None:
            seen.append(scene.shop.confirm(id_))

        def expire(id_: str = reservation_id, seen: list[str | None] = expired) -> None:
            seen.append(scene.shop.expire(id_, now=until))

        at_once([confirm, expire, expire])
        assert expired.count(None) + confirmed.count(True) == 1
        outcomes[scene.state(reservation_id)] += 1
        scene.check_seats()
    assert set(outcomes) <= {"confirmed", "expired"}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1])
def test_of_thousands_none_that_was_confirmed_expires_and_none_is_held_for_ever(
    scene: Scene, seed: int
) -> None:
    draw = random.Random(seed)
    ids = [f"r{number}" for number in range(HOLDS)]
    for reservation_id in ids:
        scene.hold(reservation_id, minutes=draw.randrange(10, 40))
    confirmed: set[str] = set()
    for _ in range(40):
        # Sometimes nobody dispatches for a while, so that timers fire late, many at once and out of order.
        step = draw.choice([MINUTE, MINUTE, 7 * MINUTE])
        if draw.random() < 0.3:
            scene.world.clock.advance(step)
        else:
            scene.world.pass_time(step)
        for reservation_id in draw.sample(ids, 25):
            match draw.randrange(4):
                case 0:
                    if scene.office.confirm(reservation_id):
                        confirmed.add(reservation_id)
                case 1:
                    scene.shop.cancel(reservation_id)
                case 2:
                    scene.office.extend(
                        reservation_id, until=scene.world.now + draw.randrange(5, 30) * MINUTE
                    )
                case _:
                    _fire_again(scene, reservation_id)
        scene.check_seats()
    scene.world.pass_time(timedelta(hours=2))
    states = {reservation_id: scene.state(reservation_id) for reservation_id in ids}
    assert {reservation_id for reservation_id, state in states.items() if state == "confirmed"} == confirmed
    assert "held" not in states.values()
    assert {run["state"] for run in scene.world.app.iterate_runs()} <= {"succeeded", "moot"}


def _fire_again(scene: Scene, reservation_id: str) -> None:
    """Its timer once more, where it has fired already; else ahead of its time."""
    if runs := scene.world.app.runs(label=f"reservation={reservation_id}"):
        if runs[0]["state"] in ("succeeded", "moot"):
            scene.world.app.replay(str(runs[0]["run_id"]), reason="doubled")
    else:
        [timer, *_] = scene.world.app.list_schedules(label=f"reservation={reservation_id}")
        scene.world.app.run_now(str(timer["id"]))
