"""`rota.toml`: settings and jobs in a file."""

from pathlib import Path

import pytest

from rota.config import Settings
from rota.config_file import find_config_file, parse_toml, read_config_file
from rota.domain.errors import InvalidRequest
from rota.domain.job_form import job_to_wire
from rota.domain.sink import WebhookSink

WHOLE = """
database_url = "/var/lib/rota/rota.db"
port = 9000
poll_seconds = 2
log_format = "json"

[jobs.sales_report]
description = "Mails the sales."
overdue = { policy = "expire", deadline = "PT2H" }
retry = { max_attempts = 3, jitter = 0 }
priority = 7

[jobs."shop.paid"]
sink = { type = "webhook", url = "https://shop.example/hooks", secrets_from = ["SHOP_SECRET"] }
delivery.max_age = "PT6H"
max_running = 20
"""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ROTA_CONFIG", raising=False)
    return Path("rota.toml")


def refused(path: Path, text: str) -> list[tuple[str, str]]:
    path.write_text(text)
    with pytest.raises(InvalidRequest) as caught:
        read_config_file(path)
    return [(error.field, error.message) for error in caught.value.errors]


def test_settings_are_read_by_their_names_and_jobs_in_their_wire_form(path: Path) -> None:
    path.write_text(WHOLE)
    config = read_config_file(path)
    assert config.source == "rota.toml"
    assert config.settings == {
        "database_url": "/var/lib/rota/rota.db",
        "port": 9000,
        "poll_seconds": 2,
        "log_format": "json",
    }
    report, paid = config.jobs
    assert (report.name, report.priority, report.retry.max_attempts) == ("sales_report", 7, 3)
    assert paid.name == "shop.paid"
    assert paid.sink == WebhookSink(url="https://shop.example/hooks", secrets_from=("SHOP_SECRET",))
    assert job_to_wire(paid)["delivery"] | {"max_age": "PT6H"} == job_to_wire(paid)["delivery"]  # type: ignore[operator]  # an object


def test_every_setting_may_stand_in_the_file(path: Path) -> None:
    values = {
        name: value
        for name, value in Settings(retention_days=1, server_url="http://x").model_dump(mode="json").items()
        if value is not None
    }
    lines = [f"{name} = {value!r}" for name, value in values.items()]
    path.write_text("\n".join(lines))
    assert Settings(**read_config_file(path).settings) == Settings(**values)  # type: ignore[arg-type]  # pydantic judges


def test_the_environment_wins_over_the_file_whatever_its_case(path: Path) -> None:
    path.write_text('port = 9000\nhost = "::1"\nbatch = 7')
    config = read_config_file(path)
    assert config.settings_beside({"ROTA_PORT": "1", "rota_batch": "2"}) == {"host": "::1"}


@pytest.mark.parametrize(
    ("text", "key", "sentence"),
    [
        ("prot = 9000", "prot", "did you mean 'port'?"),
        ('colour = "red"', "colour", "known are database_url, "),
        ("PORT = 9000", "PORT", "not known"),
        ('[schedules.a]\njob = "a"', "schedules", "`rota apply`"),
        ('port = "9000"', "port", "Give a whole number; '9000' is none."),
        ("port = true", "port", "Give a whole number"),
        ("retention_days = 1.5", "retention_days", "Give a whole number"),
        ('poll_seconds = "1"', "poll_seconds", "Give a number"),
        ("database_url = 5", "database_url", "Give a text"),
        ("clock_file = 2026-01-10", "clock_file", "Give a text"),
        ('jobs = "all"', "jobs", "[jobs.NAME]"),
        ("[jobs]\na = 1", "jobs.a", "[jobs.a]"),
        ("[jobs.a]\ncolour = 1", "jobs.a.colour", "not known"),
        ('[jobs.a]\nlease = "PT1S"', "jobs.a.lease", "PT5S to PT1H"),
        ("[jobs.a]\nlease = 10:00:00", "jobs.a.lease", ""),
        ("[jobs.a]\npriority = 11", "jobs.a.priority", "0 to 9"),
        ("[jobs.a.retry]\nfactor = nan", "jobs.a.retry.factor", "1 to 100"),
        ('[jobs.a.sink]\ntype = "kafka"', "jobs.a.sink.type", 'type = "worker"'),
        ('[jobs.a]\nname = "b"', "jobs.a.name", "another job"),
        ('[jobs."Bad Name"]', "jobs.Bad Name.name", "begins with a letter"),
    ],
)
def test_what_is_wrong_is_told_with_the_file_and_the_key(
    path: Path, text: str, key: str, sentence: str
) -> None:
    [(field, message)] = refused(path, text)
    assert field == f"rota.toml: {key}"
    assert sentence in message


def test_all_that_is_wrong_is_told_at_once(path: Path) -> None:
    text = 'port = "x"\ncolour = 1\n[jobs.a]\nlease = "PT1S"\npriority = 10\n[jobs.b]\nmax_running = 0'
    assert [field for field, _ in refused(path, text)] == [
        "rota.toml: port",
        "rota.toml: colour",
        "rota.toml: jobs.a.lease",
        "rota.toml: jobs.a.priority",
        "rota.toml: jobs.b.max_running",
    ]


@pytest.mark.parametrize(
    ("text", "beginning"),
    [("port = \n", "line 1, column 8: "), ("[jobs.a", "line 1, at the end: ")],
)
def test_what_is_no_toml_is_told_with_its_line(path: Path, text: str, beginning: str) -> None:
    [(field, message)] = refused(path, text)
    assert field == "rota.toml"
    assert message.startswith(beginning)


def test_what_is_no_utf_8_is_told_with_its_line() -> None:
    with pytest.raises(InvalidRequest, match="line 2: It is not UTF-8"):
        parse_toml(b'a = 1\nb = "\xff"', "rota.toml")


def test_a_file_that_is_too_large_or_missing_is_refused(path: Path) -> None:
    assert "larger than" in refused(path, "#" * (1024 * 1024 + 1))[0][1]
    with pytest.raises(InvalidRequest, match=r"nowhere\.toml: It cannot be read: No such file"):
        read_config_file(Path("nowhere.toml"))


def test_the_file_is_the_one_named_else_that_of_the_environment_else_the_one_here(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_config_file(None) is None
    path.write_text("")
    assert find_config_file(None) == Path("rota.toml")
    monkeypatch.setenv("ROTA_CONFIG", "other.toml")
    assert find_config_file(None) == Path("other.toml")
    assert find_config_file("third.toml") == Path("third.toml")
    monkeypatch.setenv("ROTA_CONFIG", "")
    assert find_config_file(None) is None
