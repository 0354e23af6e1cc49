"""`MODULE:app`: found in the current directory, with its own settings under those of the command."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rota.cli.errors import Usage
from rota.cli.user_application import load_application
from rota.domain.errors import InvalidRequest

MODULE = """
from rota.application import Rota
app = Rota("orders.db")
class Apps:
    second = Rota()
number = 7
"""


@pytest.fixture(autouse=True)
def imports() -> Iterator[None]:
    """What a test imports is forgotten again."""
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith("user_"):
            del sys.modules[name]


def test_without_a_reference_there_is_echo_alone() -> None:
    application, settings = load_application(None, port=0)
    assert [job.name for job in application.registry.jobs()] == ["echo"]
    assert settings.port == 0


def test_a_module_of_the_current_directory_is_found(tmp_path: Path) -> None:
    (tmp_path / "user_orders.py").write_text(MODULE)
    application, settings = load_application("user_orders:app")
    assert settings.database_url == "orders.db"
    assert application.settings == settings
    assert load_application("user_orders:Apps.second")[1].database_url == "rota.db"


def test_an_option_comes_before_the_module_and_the_module_before_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "user_orders.py").write_text(MODULE)
    monkeypatch.setenv("ROTA_DATABASE_URL", "environment.db")
    monkeypatch.setenv("ROTA_CONCURRENCY", "3")
    _, settings = load_application("user_orders:app", port=0)
    assert (settings.database_url, settings.concurrency, settings.port) == ("orders.db", 3, 0)
    _, settings = load_application("user_orders:app", database_url="option.db", concurrency=4)
    assert (settings.database_url, settings.concurrency) == ("option.db", 4)


@pytest.mark.parametrize(
    ("reference", "source", "says"),
    [
        ("user_a", "", "write MODULE:app"),
        ("user_a:", "", "write MODULE:app"),
        (":app", "", "write MODULE:app"),
        ("user-a:app", "", "write MODULE:app"),
        ("user_missing:app", "", "There is no module 'user_missing'"),
        ("user_a.inner:app", "", "There is no module 'user_a.inner'|cannot be imported"),
        ("user_a:app", "import user_nowhere", "cannot be imported: No module named 'user_nowhere'"),
        ("user_a:app", "from rota import nothing_such", "cannot be imported"),
        ("user_a:app", "def broken(:", "cannot be imported"),
        ("user_a:app", "number = 7", "has no 'app'"),
        ("user_a:number", "number = 7", "'number' is of type int; it has to be a Rota"),
        (
            "user_a:app",
            "from rota.application import Rota\napp = Rota()\napp.job('echo')(print)",
            "cannot be imported: The job 'echo'",
        ),
    ],
)
def test_what_is_no_application_is_one_sentence(
    tmp_path: Path, reference: str, source: str, says: str
) -> None:
    (tmp_path / "user_a.py").write_text(source)
    with pytest.raises(Usage, match=says):
        load_application(reference)


def test_bad_options_are_told_before_the_module_is_looked_for() -> None:
    with pytest.raises(InvalidRequest, match="--port"):
        load_application("user_missing:app", port=70_000)
