"""The driver: asks for schedules, edits, pauses, plans and all else while others are killed, and notes every answer.

It uses the library, and asks again where the store could not be used, as a client does that is told 503. As a process
(`python -m tests.soak.driver JOURNAL SEED`) it goes on until SIGTERM.
"""

import sys
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import cast

from sqlalchemy.exc import SQLAlchemyError

from rota.application import Rota
from rota.application.stopping import stopped_by_signals
from rota.clock import Clock, SystemClock
from rota.domain.errors import Conflict, InvalidRequest, NotFound, RotaError, Stale, TooLarge
from rota.domain.instants import format_instant, parse_instant
from rota.service.idempotency import KeyReused
from rota.store.port import StoreUnavailable
from rota.telemetry import get_logger
from tests.soak.bodies import Bodies
from tests.soak.journal import Entry, Journal, Outcome, Wire

REFUSALS = (Conflict, InvalidRequest, NotFound, Stale, TooLarge, KeyReused)
MISTAKES = (RotaError, SQLAlchemyError, LookupError, TypeError, ValueError, AttributeError, RuntimeError)
"""Errors that nobody means to answer with: the checker tells of each."""

TRIES_MAX = 40
TRY_AGAIN_SECONDS = 0.25
SCHEDULES_AT_FIRST = 20
PAUSE_SECONDS = (0.01, 0.15)

Request = Callable[[], object]


class Driver:
    """Asks one thing after the other."""

    def __init__(
        self, rota: Rota, journal: Journal, *, seed: int, clock: Clock, schedules_max: int = 70
    ) -> None:
        self.rota, self.journal, self.clock = rota, journal, clock
        self.random = Random(seed)
        self.bodies = Bodies(self.random)
        self.schedules_max = schedules_max
        self.kinds: dict[str, str] = {}
        self.zones: dict[str, str] = {}
        self.ended: set[str] = set()
        self.edits = 0

    def act(self) -> None:
        """One thing, drawn at random."""
        doings: dict[Callable[[], None], float] = {
            self.edit: 6,
            self.pause: 1.5,
            self.resume: 2.5,
            self.plan: 2,
            self.skip: 2,
            self.move: 2,
            self.backfill: 1.5,
            self.run_now: 1.5,
            self.replay: 0.7,
            self.cancel: 0.7,
            self.end: 0.3,
        }
        if len(self.kinds) < self.schedules_max:
            doings[self.create] = 3
        if len(self.kinds) < SCHEDULES_AT_FIRST:
            doings = {self.create: 1}
        [doing] = self.random.choices(list(doings), list(doings.values()))
        doing()

    def create(self) -> None:
        id_ = f"soak-{len(self.kinds)}"
        kind, body = self.bodies.schedule(id_, now=self.clock.now())
        answer = self.ask(
            "create",
            id_,
            body,
            lambda: self.rota.create_schedule(**body),  # type: ignore[arg-type]  # drawn as a whole
        )
        self.kinds[id_], self.zones[id_] = kind, str(body["timezone"])
        if answer is None:
            self.ended.add(id_)  # a one-time schedule whose time has passed meanwhile

    def edit(self) -> None:
        id_ = self._some()
        if id_ is None or self.kinds[id_] == "bounded":
            return
        self.edits += 1
        patch = self.bodies.edit(self.kinds[id_], self.edits, self.zones[id_], now=self.clock.now())
        edited = self.ask(
            "edit",
            id_,
            patch,
            lambda: self.rota.edit(id_, **patch),  # type: ignore[arg-type]  # drawn as a whole
        )
        if edited is not None:
            self.zones[id_] = str(patch.get("timezone", self.zones[id_]))

    def pause(self) -> None:
        self._with_one("pause", self.rota.pause)

    def resume(self) -> None:
        applies = self.random.random() < 0.3
        self._with_one(
            "resume",
            lambda id_: self.rota.resume(id_, apply_overdue=applies),
            apply_overdue=applies,
        )

    def plan(self) -> None:
        until = self._in_seconds(4, 30)
        self._with_one("plan", lambda id_: self.rota.plan(id_, until), until=until)

    def skip(self) -> None:
        self._with_upcoming("skip", lambda id_, at: ({"scheduled_at": at}, lambda: self.rota.skip(id_, at)))

    def move(self) -> None:
        to = self._in_seconds(1, 15)
        self._with_upcoming(
            "move", lambda id_, at: ({"scheduled_at": at, "to": to}, lambda: self.rota.move(id_, at, to))
        )

    def backfill(self) -> None:
        from_, until = self._in_seconds(-40, -21), self._in_seconds(-20, -1)
        self._with_one(
            "backfill", lambda id_: self.rota.backfill(id_, from_, until), **{"from": from_, "until": until}
        )

    def run_now(self) -> None:
        id_ = self._some()
        if id_ is not None:
            key = f"{id_}-order-{self.random.randrange(5)}"
            self.ask("run_now", id_, {"key": key}, lambda: self.rota.run_now(id_, idempotency_key=key))

    def replay(self) -> None:
        run = self._some_run("succeeded")
        if run is not None:
            run_id, key = str(run["run_id"]), f"replay-{self.random.randrange(10**9)}"
            self.ask(
                "replay",
                str(run["schedule_id"]),
                {"run_id": run_id, "key": key},
                lambda: self.rota.replay(run_id, reason="the printer was empty", idempotency_key=key),
            )

    def cancel(self) -> None:
        run = self._some_run(self.random.choice(["planned", "held", "queued", "running"]))
        if run is not None:
            run_id = str(run["run_id"])
            self.ask(
                "cancel",
                str(run["schedule_id"]),
                {"run_id": run_id},
                lambda: self.rota.cancel_run(run_id),
            )

    def end(self) -> None:
        # The days of a daily one are counted to the end of the soak.
        id_ = self._some()
        if id_ is not None and self.kinds[id_] != "daily":
            self.end_one(id_)

    def resume_one(self, id_: str) -> None:
        self.ask("resume", id_, {"apply_overdue": False}, lambda: self.rota.resume(id_))

    def end_one(self, id_: str) -> None:
        if self.ask("end", id_, {}, lambda: self.rota.end(id_)) is not None:
            self.ended.add(id_)

    def ask(self, operation: str, id_: str, asked: Wire, request: Request) -> Wire | None:
        """The answer, once the store can be used; None where it was refused. Each try is noted."""
        never = threading.Event()
        for _ in range(TRIES_MAX):
            sent_at, answer, problem = self.clock.now(), {}, ""
            try:
                answer, outcome = cast("Wire", request()), Outcome.ACCEPTED
            except StoreUnavailable as error:
                outcome, problem = Outcome.UNKNOWN, str(error)
            except REFUSALS as error:
                outcome, problem = Outcome.REFUSED, str(error)
            except MISTAKES as error:
                outcome, problem = Outcome.BROKEN, f"{type(error).__name__}: {error}"
            entry = Entry(
                operation=operation,
                schedule_id=id_,
                asked=asked,
                sent_at=sent_at,
                answered_at=self.clock.now(),
                outcome=outcome,
                answer=answer,
                problem=problem,
            )
            self.journal.write(entry)
            if outcome is not Outcome.UNKNOWN:
                return answer if outcome is Outcome.ACCEPTED else None
            never.wait(TRY_AGAIN_SECONDS)
        return None

    def _with_one(self, operation: str, request: Callable[[str], object], **asked: object) -> None:
        id_ = self._some()
        if id_ is not None:
            self.ask(operation, id_, asked, lambda: request(id_))

    def _with_upcoming(self, operation: str, request: Callable[[str, str], tuple[Wire, Request]]) -> None:
        """With one of the next occurrences, rather a later one: the first may be gone meanwhile."""
        id_ = self._some()
        if id_ is None:
            return
        answer = self._look(lambda: self.rota.upcoming(id_, count=6))
        named = cast("list[Wire]", [] if answer is None else cast("Wire", answer)["occurrences"])
        if named:
            chosen = str(self.random.choice(named[-4:])["scheduled_at"])
            if self._is_soon(chosen):
                self.ask(operation, id_, *request(id_, chosen))

    def _some_run(self, state: str) -> Wire | None:
        runs = cast("list[Wire]", self._look(lambda: self.rota.runs(state=state, limit=30)) or [])
        return self.random.choice(runs) if runs else None

    def _look(self, question: Callable[[], object]) -> object:
        try:
            return question()
        except (StoreUnavailable, *REFUSALS):
            return None

    def _some(self) -> str | None:
        alive = [id_ for id_ in self.kinds if id_ not in self.ended]
        return self.random.choice(alive) if alive else None

    def _is_soon(self, instant: str) -> bool:
        """Far ones are left alone: they would keep nothing but their schedule's end from coming."""
        return parse_instant(instant) < self.clock.now() + timedelta(minutes=30)

    def _in_seconds(self, least: int, most: int) -> str:
        now: datetime = self.clock.now().replace(microsecond=0)
        return format_instant(now + timedelta(seconds=self.random.randint(least, most)))


def main(journal: str, seed: str) -> None:
    """Until SIGTERM; the database is that of `ROTA_DATABASE_URL`."""
    stop = threading.Event()
    with stopped_by_signals(stop), Rota() as rota:
        get_logger("soak").info("driver.start", seed=seed)
        driver = Driver(rota, Journal(Path(journal)), seed=int(seed), clock=SystemClock())
        while not stop.is_set():
            driver.act()
            stop.wait(driver.random.uniform(*PAUSE_SECONDS))


if __name__ == "__main__":
    main(*sys.argv[1:])
