"""Holds a few seats for some seconds, confirms two, and shows what their timers did."""

import tempfile
import threading
from datetime import timedelta
from pathlib import Path

from examples.reservations.box_office import BoxOffice
from examples.reservations.shop import Shop
from rota import Rota

SEATS = 6
HELD = timedelta(seconds=3)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, Rota(Path(folder) / "rota.db") as app:
        shop = Shop(Path(folder) / "shop.db")
        office = BoxOffice(app, shop)
        shop.open_show("hamlet", seats=SEATS)
        stop = threading.Event()
        service = threading.Thread(target=app.run, args=(stop,))
        service.start()
        until = (app.context.clock.now() + HELD).replace(microsecond=0) + timedelta(seconds=1)
        names = [f"seat-{number}" for number in range(1, SEATS + 1)]
        for name in names:
            office.hold(name, "hamlet", until=until)
        for name in names[:2]:
            office.confirm(name)
        show(f"held until {until:%H:%M:%S}", shop)
        while not all(app.runs(label=f"reservation={name}", state=state) for name, state in expected(names)):
            stop.wait(0.2)
        show("when the timers have fired", shop)
        for name in names:
            [run] = app.runs(label=f"reservation={name}")
            print(f"  {name}: {run['state']}" + (f", {run['reason']}" if run["reason"] else ""))
        stop.set()
        service.join()


def expected(names: list[str]) -> list[tuple[str, str]]:
    return [(name, "moot" if place < 2 else "succeeded") for place, name in enumerate(names)]


def show(when: str, shop: Shop) -> None:
    print(
        f"{when}: " + ", ".join(f"{count} {state}" for state, count in sorted(shop.count("hamlet").items()))
    )


if __name__ == "__main__":
    main()
