"""The demonstrations: two weeks of a report, and a schedule that is edited, on real processes and a real file."""

import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

from rota.demo import story, walkthrough
from rota.demo.telling import say
from rota.domain.errors import FieldError, InvalidRequest

EDIT = "edit"
THE_OTHER = {
    False: "`rota demo edit` moves a schedule to another zone while a dispatcher still decides by the old one.",
    True: "`rota demo` lets two weeks pass, nearly every day with something that goes wrong.",
}
"""What is named at the end, by whether the edit was told."""

ENDING = (signal.SIGTERM, signal.SIGHUP)


def main(options: list[str]) -> int:
    """`rota demo [edit] [FOLDER]`: the exit code is 0 where every check held, 1 where not, 2 for a bad folder."""
    is_edit = options[:1] == [EDIT]
    tell, folders = (walkthrough.tell, options[1:]) if is_edit else (story.tell, options)
    if len(folders) > 1 or any(folder.startswith("-") for folder in folders):
        words = "rota demo edit" if is_edit else "rota demo"
        raise InvalidRequest(FieldError("folder", f"Give at most one folder, which is kept: {words} FOLDER."))
    with _ended_by_signals():
        if folders:
            code = tell(_made(Path(folders[0])))
        else:
            with tempfile.TemporaryDirectory(prefix="rota-demo-") as temporary:
                code = tell(Path(temporary))
    say(f"\nThe other story: {THE_OTHER[is_edit]}")
    return code


def _made(folder: Path) -> Path:
    if folder.exists() and any(folder.iterdir()):
        raise InvalidRequest(FieldError("folder", f"The folder {folder} is not empty; give a new one."))
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """A signal that ends the demonstration ends it as an error does: its processes and its folder go with it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _frame: FrameType | None) -> NoReturn:
        for other in ENDING:  # a second one must not break off the clearing up
            signal.signal(other, signal.SIG_IGN)
        raise SystemExit(128 + number)

    heeded = [
        number for number in ENDING if signal.getsignal(number) is not signal.SIG_IGN
    ]  # nohup ignores one
    before = {number: signal.signal(number, end) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
