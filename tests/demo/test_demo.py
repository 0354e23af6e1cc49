"""The demonstration's story on real processes: every one of its checks holds, and a broken promise is told."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from rota.demo.checks import Check, conclude
from rota.demo.mailbox import Mailbox

FOLDER_KEPT = ["report-ny.1.20260109T140000Z.html", "report-ny.1.20260109T140000Z.csv", "rota.db"]


@pytest.mark.slow
def test_the_story_ends_well_and_keeps_its_folder(tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-m", "rota", "demo", str(tmp_path / "story")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stdout + told.stderr
    assert "11 of 11 checks hold." in told.stdout
    assert "The other story: `rota demo edit`" in told.stdout
    assert all((tmp_path / "story" / name).exists() for name in FOLDER_KEPT)


def test_a_check_that_does_not_hold_makes_the_exit_code_one(capsys: pytest.CaptureFixture[str]) -> None:
    good = Check(promise="one run for each occurrence", holds=True)
    assert conclude([good, replace(good, holds=False)]) == 1
    assert "FAIL one run for each occurrence" in capsys.readouterr().out
    assert conclude([good]) == 0


def test_a_mailbox_refuses_when_it_is_told_to_and_keeps_the_rest() -> None:
    import smtplib

    with Mailbox() as mailbox:
        mailbox.refuse_next()
        with smtplib.SMTP("127.0.0.1", mailbox.port) as server:
            message = b"Message-ID: <a@rota.local>\r\n\r\nhello"
            with pytest.raises(smtplib.SMTPDataError):
                server.sendmail("a@rota.local", ["b@rota.local"], message)
        with smtplib.SMTP("127.0.0.1", mailbox.port) as server:
            server.sendmail("a@rota.local", ["b@rota.local"], message)
        assert (mailbox.refusals, mailbox.ids()) == (1, ["<a@rota.local>"])
