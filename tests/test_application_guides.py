"""The guides' Python is run as it stands: each block is the file that its first line names."""

import importlib
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from rota import Rota, RunContext
from rota.service.representation import Wire
from rota.testing import World, world

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
GUIDES = [ROOT / "docs/guides/handlers.md", ROOT / "docs/guides/testing.md"]
BLOCK = re.compile(r"^```python\n(# ([\w./]+)\n.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current directory, from which modules are imported; they are forgotten at the end."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if Path(getattr(module, "__file__", None) or "/").parent == tmp_path:
            del sys.modules[name]


def write_blocks(page: Path, folder: Path) -> list[Path]:
    text = page.read_text()
    blocks = BLOCK.findall(text)
    assert len(blocks) == text.count("```python"), "a block does not begin with the name of its file"
    paths = [folder / name for _, name in blocks]
    assert len(set(paths)) == len(paths), "two blocks have the same name"
    for path, (code, _) in zip(paths, blocks, strict=True):
        path.write_text(code)
    return paths


@pytest.mark.parametrize("page", [README, *GUIDES], ids=lambda page: str(page.name))
def test_the_modules_of_a_page_run(page: Path, folder: Path) -> None:
    paths = write_blocks(page, folder)
    assert paths
    for path in paths:
        importlib.import_module(path.stem)


def test_the_handlers_of_the_guide_do_what_it_says(folder: Path) -> None:
    write_blocks(ROOT / "docs/guides/handlers.md", folder)
    reports, reminders, exports = map(importlib.import_module, ("reports", "reminders", "exports"))

    def settled(app: Rota, job: str, **params: object) -> Wire:
        with World(registry=app.registry) as world:
            due = world.now + timedelta(seconds=1)
            world.app.create_schedule(id="b", job=job, timezone="UTC", recurrence={"at": due}, params=params)
            world.pass_time(timedelta(minutes=5))
            [run] = world.app.runs()
            return world.app.get_run(str(run["run_id"]))

    assert settled(reports.app, "sales_report")["result"] == {"day": "2026-01-01", "rows": 2}
    assert settled(reminders.app, "reminder", booking="b-1")["state"] == "succeeded"
    assert [mail["Message-ID"] for mail in reminders.outgoing] == ["<b.1.20260101T000001Z@shop.example>"]
    reminders.bookings["b-1"]["confirmed"] = True
    assert settled(reminders.app, "reminder", booking="b-1")["state"] == "moot"
    assert settled(reminders.app, "reminder", booking="b-2")["attempt"] == 1
    for _ in range(2):
        assert settled(reminders.app, "ledger_entry", amount=7)["state"] == "succeeded"
    with closing(sqlite3.connect("ledger.db")) as ledger:
        assert ledger.execute("SELECT * FROM entries").fetchall() == [("b.1.20260101T000001Z", 7)]
    assert settled(exports.app, "export")["result"] == {"pages": 100}
    assert settled(exports.app, "notify")["result"] == "sent"


def test_the_guide_tells_every_attribute_of_a_context() -> None:
    text = (ROOT / "docs/guides/handlers.md").read_text()
    names = [name for name in dir(RunContext) if not name.startswith("_")]
    assert [name for name in names if re.search(rf"^\|.*`{name}[`(]", text, re.MULTILINE) is None] == []


@pytest.mark.slow
def test_the_tests_of_the_testing_guide_pass(folder: Path) -> None:
    write_blocks(ROOT / "docs/guides/testing.md", folder)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "5 passed" in done.stdout


def test_the_example_of_a_world_works_with_the_handler_of_the_readme(folder: Path) -> None:
    write_blocks(README, folder)
    assert world.__doc__ is not None
    [example] = re.findall(r"::\n\n((?:    .*\n|\n)+)", world.__doc__)
    exec(re.sub(r"^    ", "", example, flags=re.MULTILINE), {})
