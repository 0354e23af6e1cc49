"""`rota.toml` on the command line: settings and jobs from a file."""

from pathlib import Path

import pytest

from rota.application import Rota
from rota.cli import main
from rota.cli.options import load_settings
from rota.cli.user_application import load_application
from rota.domain.errors import WrongSetting
from tests.cli.conftest import Run

WRITTEN = """
batch = 7
database_url = "of_the_file.db"

[jobs.sales]
timeout = "PT5M"
priority = 8

[jobs.paid]
sink = { type = "webhook", url = "https://shop.example/hooks", secrets_from = ["SHOP_SECRET"] }
max_running = 4
"""
MODULE = """
from rota import Rota

app = Rota()


@app.job("{name}")
def work(context):
    pass
"""


TWICE = (
    "rota: The job 'sales' is declared in rota.toml ([jobs.sales]) and in code (shop_jobs:work); "
    "keep one of the two."
)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "rota.toml"
    path.write_text(WRITTEN)
    return path


@pytest.mark.usefixtures("config")
def test_a_setting_of_the_file_gives_way_to_the_environment_and_that_to_an_option(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert (load_settings().batch, load_settings().port) == (7, 8080)
    monkeypatch.setenv("ROTA_BATCH", "8")
    assert load_settings().batch == 8
    assert load_settings(batch=9).batch == 9
    assert load_settings(batch=9).database_url == "of_the_file.db"


@pytest.mark.usefixtures("config")
def test_a_command_uses_the_database_that_the_file_names(run: Run, tmp_path: Path) -> None:
    assert run("jobs", "put", "report").code == 0
    assert (tmp_path / "of_the_file.db").exists()
    assert run("jobs", "put", "report", "--database", "other.db").code == 0
    assert (tmp_path / "other.db").exists()


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("option", [["--config", "deploy/eu.toml"], ["--config=deploy/eu.toml"]])
@pytest.mark.usefixtures("config")
def test_the_file_is_named_anywhere_in_a_command(
    run: Run, tmp_path: Path, option: list[str], place: int
) -> None:
    (tmp_path / "deploy").mkdir()
    (tmp_path / "deploy" / "eu.toml").write_text('database_url = "eu.db"')
    words = ["jobs", "put", "report"]
    assert run(*words[:place], *option, *words[place:]).code == 0
    assert (tmp_path / "eu.db").exists()
    assert load_settings().database_url == "eu.db"
    assert run("jobs", "put", "report").code == 0
    assert load_settings().database_url == "of_the_file.db"


@pytest.mark.usefixtures("config")
def test_the_environment_may_name_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "eu.toml").write_text("port = 9000")
    monkeypatch.setenv("ROTA_CONFIG", "eu.toml")
    assert (load_settings().port, load_settings().batch) == (9000, 2000)
    monkeypatch.setenv("ROTA_CONFIG", "")
    assert load_settings().batch == 2000


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("prot = 9000", "rota: rota.toml: prot: This setting is not known; did you mean 'port'?"),
        ("port = 70000", "rota: rota.toml: port: Give a whole number, 0 to 65535; '70000' is none."),
        ('log_format = "xml"', "rota: rota.toml: log_format: Give one of console, json; 'xml' is none."),
        ('port = "8080"', "rota: rota.toml: port: Give a whole number; '8080' is none."),
        ('[jobs.a]\nlease = "PT1S"', "rota: rota.toml: jobs.a.lease: Give a duration from PT5S to PT1H."),
        ("port = \n", "rota: rota.toml: line 1, column 8: Invalid value."),
    ],
)
def test_what_is_wrong_in_the_file_is_one_line_with_its_name_and_the_key(
    run: Run, tmp_path: Path, text: str, line: str
) -> None:
    (tmp_path / "rota.toml").write_text(text)
    ended = run("jobs", "list")
    assert (ended.code, ended.problems) == (2, [line])


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["jobs", "list", "--config"], "rota: --config: Give the path of a file, such as rota.toml."),
        (
            ["--config", "a.toml", "jobs", "list", "--config=b.toml"],
            "rota: --config: It is given twice; give it once.",
        ),
        (
            ["jobs", "list", "--config", "nowhere.toml"],
            "rota: nowhere.toml: It cannot be read: No such file or directory.",
        ),
    ],
)
def test_a_file_that_is_not_named_rightly_is_told(run: Run, arguments: list[str], line: str) -> None:
    ended = run(*arguments)
    assert (ended.code, ended.problems) == (2, [line])


def test_what_follows_two_dashes_is_left_alone(run: Run) -> None:
    assert run("jobs", "put", "--", "--config").problems[0].startswith("rota: name: ")


@pytest.mark.usefixtures("config")
def test_the_jobs_of_the_file_are_made_as_it_has_them(run: Run) -> None:
    run("jobs", "put", "other")
    run("jobs", "put", "sales")
    foretold = run("jobs", "apply", "--dry-run").out.splitlines()
    assert foretold[:2] == ["sales: replaced", "paid: created"]
    assert [item["name"] for item in run("jobs", "list", "--json").items] == ["other", "sales"]
    assert run("jobs", "apply", "--json").wire == {
        "dry_run": False,
        "jobs": [{"name": "sales", "outcome": "replaced"}, {"name": "paid", "outcome": "created"}],
    }
    assert run("jobs", "apply").out.splitlines() == ["sales: unchanged", "paid: unchanged"]
    shown = run("jobs", "show", "paid").out
    assert "https://shop.example/hooks" in shown
    listed = {line.split()[0]: line for line in run("jobs", "list").out.splitlines()[2:]}
    assert "webhook" in listed["paid"]
    assert set(listed) == {"other", "paid", "sales"}


def test_without_jobs_in_the_file_there_is_nothing_to_apply(run: Run) -> None:
    ended = run("jobs", "apply")
    assert ended.code == 2
    assert ended.problems[0].startswith("rota: rota.toml has no jobs; ")


@pytest.mark.usefixtures("config")
def test_an_application_is_told_of_the_jobs_of_the_file(database: Path) -> None:
    application, settings = load_application(None)
    assert (settings.batch, settings.database_url) == (7, str(database))
    with application:
        application.register_declared_jobs()
        assert [job["name"] for job in application.jobs()] == ["paid", "sales"]
        application.register_jobs()
        assert [job["name"] for job in application.jobs()] == ["echo", "paid", "sales"]


@pytest.mark.usefixtures("config")
def test_a_job_in_code_and_in_the_file_is_refused_with_both_places(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop_jobs.py").write_text(MODULE.format(name="sales"))
    monkeypatch.syspath_prepend(str(tmp_path))
    for command in (["up", "--app", "shop_jobs:app"], ["work", "shop_jobs:app"]):
        ended = run(*command)
        assert (ended.code, ended.problems) == (
            2,
            [TWICE],
        )


def test_a_job_that_the_code_gets_later_is_refused_when_jobs_are_registered(
    config: Path, database: Path
) -> None:
    application, _ = load_application(None)
    application.job("paid")(lambda context: None)
    with application, pytest.raises(WrongSetting, match=r"rota\.toml.*in code"):
        application.register_jobs()


def test_what_a_module_says_itself_comes_before_the_file(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_database.py").write_text('from rota import Rota\n\napp = Rota("own.db")\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    _, settings = load_application("own_database:app")
    assert (settings.database_url, settings.batch) == ("own.db", 7)


@pytest.mark.parametrize("command", [["serve", "--port", "0"], ["dispatch"], ["work"], ["up", "--port", "0"]])
@pytest.mark.usefixtures("config")
def test_a_process_makes_the_jobs_of_the_file_known_when_it_starts(
    database: Path, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def look(*_: object) -> None:
        with Rota(database) as looking:
            seen.extend(str(job["name"]) for job in looking.jobs())

    monkeypatch.setattr("rota.cli.processes.run_side_by_side", look)
    assert main(command) == 0
    assert {"paid", "sales"} <= set(seen)
