"""The reference says what the commands and the settings are."""

import runpy
from pathlib import Path

import pytest

from rota.cli.errors import ExitCode
from rota.config import Settings

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


@pytest.mark.parametrize("command", ["up", "schedules create", "preview", "doctor"])
def test_every_command_has_its_heading(command: str) -> None:
    page = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")
    assert f"# `rota {command}`\n" in page
