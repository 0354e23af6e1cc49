"""The shop with its timers: each hold has a one-time schedule of Rota, which expires what was not decided before."""

from datetime import datetime

from examples.reservations.shop import Shop
from rota import Moot, Rota, RunContext

JOB = "expire_reservation"


class BoxOffice:
    """Holds seats for a while."""

    def __init__(self, app: Rota, shop: Shop) -> None:
        self.app = app
        self.shop = shop
        app.job(JOB, guard=self._guard)(self._expire)

    def hold(self, reservation_id: str, show: str, *, until: datetime) -> None:
        """Holds a seat until then (aware, a whole second). It may be repeated under the same id. Raises `SoldOut`.

        First the timer, then the hold: a process that dies in between leaves a timer for nothing, which ends as moot,
        and never a hold without a timer.
        """
        self._set_timer(reservation_id, until)
        self.shop.hold(reservation_id, show, until=until)

    def extend(self, reservation_id: str, *, until: datetime) -> bool:
        """Whether it is held for longer now, by a further timer. The one before will find it held until later.

        Timers are not edited: one that falls due in this very moment belongs to its run already, and what an edit would
        name in its place might be taken for the same occurrence.
        """
        self._set_timer(reservation_id, until)
        return self.shop.extend(reservation_id, until=until)

    def confirm(self, reservation_id: str) -> bool:
        """Whether the seat is the customer's. The timer may stay: it will find the reservation confirmed."""
        return self.shop.confirm(reservation_id)

    def _set_timer(self, reservation_id: str, until: datetime) -> None:
        self.app.create_schedule(
            id=timer_of(reservation_id, until),
            job=JOB,
            timezone="UTC",
            recurrence={"at": until},
            overdue={"policy": "catch_up_all"},  # However late: what is still held has to be freed.
            params={"reservation": reservation_id},
            labels={"reservation": reservation_id},
        )

    def _guard(self, ctx: RunContext) -> Moot | None:
        """A cheap look before the work. It decides nothing: between it and the handler anything may happen."""
        reservation = self.shop.get(_reservation_of(ctx))
        if reservation is not None and reservation.state == "confirmed":
            return Moot("the reservation is confirmed")
        return None

    def _expire(self, ctx: RunContext) -> dict[str, str] | Moot:
        reservation_id = _reservation_of(ctx)
        # Its time has come by the run's own instant, whatever the clock of this machine says.
        reason = self.shop.expire(reservation_id, now=ctx.scheduled_at)
        return {"expired": reservation_id} if reason is None else Moot(reason)


def timer_of(reservation_id: str, until: datetime) -> str:
    """The id of a timer's schedule: derived, so that it is set once however often it is asked for."""
    return f"hold-{reservation_id}-{int(until.timestamp())}"


def _reservation_of(ctx: RunContext) -> str:
    return str(ctx.params["reservation"])
