"""The reference says what the commands and the settings are."""

import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest
from cyclopts import App

from rota.cli.application import build_application
from rota.cli.errors import ExitCode
from rota.config import Settings

GROUPS = {"schedules", "runs", "deliveries", "jobs", "tz"}
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["cli", "settings"])
def test_the_page_is_what_the_code_says(name: str) -> None:
    made = runpy.run_path(str(ROOT / f"docs/make_{name}.py"))
    page = (ROOT / f"docs/reference/{name}.md").read_text(encoding="utf-8")
    assert made["render"]() == page, "run `make docs`"


def test_every_setting_is_in_the_reference() -> None:
    page = (ROOT / "docs/reference/settings.md").read_text(encoding="utf-8")
    for name, field in Settings.model_fields.items():
        assert f"| `ROTA_{name.upper()}` |" in page
        assert field.description is not None
        assert field.description in page


def test_every_exit_code_is_in_the_reference() -> None:
    page = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")
    for code in ExitCode:
        assert f"\n| {code.value} | " in page


def words_of(application: App, *words: str) -> Iterator[str]:
    for name in (name for name in application if not name.startswith("-")):
        yield " ".join([*words, name])
        if name in GROUPS:
            yield from words_of(application[name], *words, name)


@pytest.mark.parametrize("command", sorted(words_of(build_application())))
def test_every_command_has_its_heading(command: str) -> None:
    page = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")
    assert f"# `rota {command}`\n" in page
