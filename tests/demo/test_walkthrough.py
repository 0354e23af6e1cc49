"""The story of an edit on real processes: it ends well, says the same every time, and leaves no process behind."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from rota.demo import main
from rota.domain.errors import InvalidRequest

TOLD = """\
          it expected                        there is
epoch     1                                  1
revision  5                                  6
cursor    2026-01-13T14:00:00Z of version 4  2026-01-13T14:00:00Z of version 4
version 5 begins at 2026-01-13T14:30:01Z, the boundary
the store answers: stale; nothing was written
"""
TOLD_LATER = """\
skip  2026-01-14T09:00:00Z  version 5  period_used: day:2026-01-14 is used by run report-7.4.20260114T140000Z
run   2026-01-14T14:00:00Z  version 4  2026-01-14T09:00 -05:00  day:2026-01-14  succeeded
run   2026-01-15T09:00:00Z  version 5  2026-01-15T09:00 +00:00  day:2026-01-15  succeeded
"""


LOOKS_MAX = 100


def started(*folder: str, temporary: Path) -> "subprocess.Popen[str]":
    """The story in a process group of its own, in which all that it starts is too."""
    return subprocess.Popen(
        [sys.executable, "-m", "rota", "demo", "edit", *folder],
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def assert_nobody_is_left(group: int) -> None:
    """A process that was just being started when the signal came finds its story gone, and ends by itself."""
    patience = threading.Event()
    for _ in range(LOOKS_MAX):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        patience.wait(0.1)
    raise AssertionError(f"Processes of group {group} are left.")


@pytest.mark.slow
def test_the_story_of_an_edit_ends_well_and_leaves_no_process(tmp_path: Path) -> None:
    story = started(str(tmp_path / "story"), temporary=tmp_path)
    out, err = story.communicate()
    assert story.returncode == 0, out + err
    assert "13 of 13 checks hold." in out
    assert TOLD in out
    assert TOLD_LATER in out
    assert "each day once: NO" not in out
    assert out.count("each day once: yes") == 54
    assert "The other story: `rota demo` " in out
    assert (tmp_path / "story" / "report-7.5.20260115T090000Z.html").exists()
    assert_nobody_is_left(story.pid)


@pytest.mark.slow
def test_a_story_that_is_ended_by_a_signal_takes_its_processes_and_its_files_along(tmp_path: Path) -> None:
    story = started(temporary=tmp_path)
    assert story.stdout is not None
    assert any("stands still before its commit" in line for line in story.stdout)
    assert list(tmp_path.glob("*/rota.db"))
    story.send_signal(signal.SIGTERM)
    story.communicate()
    assert story.returncode == 128 + signal.SIGTERM
    assert not list(tmp_path.iterdir())
    assert_nobody_is_left(story.pid)


def test_the_story_of_an_edit_takes_one_new_folder(tmp_path: Path) -> None:
    (tmp_path / "there").touch()
    for folders in (["--nonsense"], ["one", "two"], [str(tmp_path)]):
        with pytest.raises(InvalidRequest) as refused:
            main(["edit", *folders])
        assert [error.field for error in refused.value.errors] == ["folder"]
