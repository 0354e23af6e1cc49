"""House rules that no linter has: a row each, with what to write instead and a sample that has to be found.

A sample spells a letter of what it breaks as an escape, so that this file keeps its own rules.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.tidy_finders import (
    Finder,
    Source,
    catch_alls,
    definitions_with_words,
    files_longer_than,
    functions_longer_than,
    missing_docstring,
    path_matching,
    text_matching,
    uses_of,
)

ROOT = Path(__file__).resolve().parent.parent
CODE = ("src/", "tests/", "bench/", "examples/")
EVERYWHERE = ("",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """`find` runs over the files under `where` but those in `except_in`, whose values are the reasons.

    It finds as many places in `bad` as `found` says, and none in `good`, which comes near.
    """

    name: str
    instead: str
    where: tuple[str, ...] = CODE
    suffix: str = ".py"
    find: Finder
    bad: Source = field(repr=False)
    found: int = 1
    good: Source | None = field(default=None, repr=False)
    except_in: Mapping[str, str] = field(default_factory=dict)

    def governs(self, path: str) -> bool:
        """Whether this rule looks at that file at all."""
        return path.startswith(self.where) and path.endswith(self.suffix) and path not in self.except_in

    def broken_by(self, source: Source) -> list[str]:
        """One line for each place that breaks the rule."""
        if not self.governs(source.path):
            return []
        return [f"{source.path}:{line}: {self.name}: {self.instead}" for line in self.find(source)]


def in_src(text: str) -> Source:
    """A sample module of the package."""
    return Source(path="src/rota/sample.py", text=text)


def in_tests(text: str) -> Source:
    """A sample test module."""
    return Source(path="tests/test_sample.py", text=text)


def at(path: str) -> Source:
    """A sample file whose path is what matters."""
    return Source(path=path, text="")


RULES = [
    Rule(
        name="reads the wall clock",
        instead="take `now` as an argument; the edge asks `clock.now()`",
        find=uses_of(
            "datetime.datetime.now",
            "datetime.datetime.utcnow",
            "datetime.datetime.today",
            "datetime.date.today",
            "time.time",
            "time.time_ns",
            "time.localtime",
            "time.gmtime",
        ),
        bad=in_src("from datetime import datetime as moment\nstamp = moment.now()"),
        good=in_src("from rota import clock\nstamp = clock.now()"),
        except_in={"src/rota/clock.py": "it is the clock"},
    ),
    Rule(
        name="reads the waiting clock",
        instead="ask `rota.clock`, whose monotonic time a test can set",
        where=("src/",),
        find=uses_of("time.monotonic", "time.monotonic_ns", "time.clock_gettime"),
        bad=in_src("import time\nbegan = time.monotonic()"),
        except_in={"src/rota/clock.py": "it is the clock"},
    ),
    Rule(
        name="is random",
        instead="take the id as an argument; the edge asks `rota.ids`. A seeded `random.Random` is fine",
        where=("src/",),
        find=uses_of(
            "os.urandom",
            "random.choice",
            "random.randint",
            "random.random",
            "random.randrange",
            "random.shuffle",
            "random.uniform",
            "secrets.token_bytes",
            "secrets.token_hex",
            "secrets.token_urlsafe",
            "uuid.uuid1",
            "uuid.uuid4",
            "uuid_utils.compat.uuid4",
            "uuid_utils.compat.uuid7",
            "uuid_utils.uuid7",
        ),
        bad=in_src("from uuid import uuid4\nkey = uuid4()"),
        good=in_src("from random import Random\njitter = Random(7).random()"),
        except_in={"src/rota/ids.py": "it makes the ids"},
    ),
    Rule(
        name="prints",
        instead="use `rota.telemetry` for events, and the command line's console for answers",
        where=("src/", "tests/"),
        find=uses_of("print"),
        bad=in_src("print('due')"),
        good=in_src("console.print('due')"),
    ),
    Rule(
        name="says Any",
        instead="name the type; JSON is `object` until `rota.domain.json_text` has read it",
        find=uses_of("typing.Any"),
        bad=in_src("from typing import Any\nparams: dict[str, Any] = {}"),
        except_in={"src/rota/domain/json_text.py": "JSON has no better type before it is read"},
    ),
    Rule(
        name="ignores a type error of any kind",
        instead="name the code: type: ignore[arg-type]",
        find=text_matching(r"#\s*type:\s*ignore(?!\[)"),
        bad=in_src("delay = wait()  # type\u003a ignore"),
        good=in_src("delay = wait()  # type: ignore[arg-type]"),
    ),
    Rule(
        name="silences a lint without a reason",
        instead="write it behind the code: noqa: S310 - the scheme is checked above",
        find=text_matching(r"#\s*noqa(?!: [A-Z]+[0-9]+(?:, ?[A-Z]+[0-9]+)* +(?:- )?\w)"),
        bad=in_src("import json  # n\u006fqa: F401"),
        good=in_src("import json  # noqa: F401 - imported for its effect"),
    ),
    Rule(
        name="catches everything",
        instead="name the errors; only a loop that outlives its steps may catch all, and says so here",
        find=catch_alls,
        bad=in_src(
            "import contextlib\n"
            "try:\n    step()\nexcept (OSError, Exception) as error:\n    report(error)\n"
            "try:\n    step()\nexcept:\n    pass\n"
            "with contextlib.suppress(Exception):\n    step()"
        ),
        found=3,
        good=in_src("try:\n    step()\nexcept BaseException:\n    rollback()\n    raise"),
        except_in={
            "src/rota/delivery/sends.py": "whatever a sink's client raises fails that try, not the relay",
            "src/rota/dispatch/beats.py": "what cannot be computed for many is left for the planner, one by one (I12)",
            "src/rota/dispatch/planning.py": "whatever one schedule raises stops that schedule alone (I12)",
            "src/rota/service/schedules.py": "what cannot be computed any more can still be ended (I12)",
            "src/rota/contrib/sqs.py": "whatever the network or SQS has to say, the consumer's loop outlives it",
            "src/rota/worker/execution.py": "whatever a handler raises fails its attempt, not its worker",
            "tests/crash/kill.py": "a forked child must never return into the test runner",
        },
    ),
    Rule(
        name="is named after nothing",
        instead="name the module after the noun it is about",
        find=path_matching(r"(^|/)(utils?|helpers?|common|manager|misc)(\.py$|/)"),
        bad=at("src/rota/store/helpers.py"),
        good=at("src/rota/store/common_table.py"),
    ),
    Rule(
        name="promises what nobody can keep",
        instead="say: at least once, with an idempotency key",
        where=EVERYWHERE,
        suffix="",
        find=text_matching(r"exactly[\s-]+once", flags=re.IGNORECASE),
        bad=Source(path="README.md", text="Every message is delivered exactly\u0020\nonce."),
        good=Source(path="README.md", text="One run record per occurrence, delivered at least once."),
    ),
    Rule(
        name="sleeps in a test",
        instead="pass the time, or wait on an event with a timeout",
        where=("tests/",),
        find=uses_of("time.sleep"),
        bad=in_tests("from time import sleep\nsleep(0.1)"),
    ),
    Rule(
        name="uses a word that we do not use",
        instead="say due, overdue (misfire), schedule (cron job), step (tick), partition (shard)",
        where=("src/",),
        find=definitions_with_words(
            "trigger", "misfire", "cron job", "tick", "shard", "manager", "helper", "utils?"
        ),
        bad=in_src("class CronJobs:\n    pass"),
        good=in_src("cron = job_shape = stick = ContextManager"),
    ),
    Rule(
        name="calls something a task",
        instead="say job, run or attempt; a task is asyncio's, in a module that imports asyncio",
        where=("src/",),
        find=lambda source: (
            definitions_with_words("task")(source) if "import asyncio" not in source.text else iter(())
        ),
        except_in=dict.fromkeys(
            (
                "src/rota/api/request_shapes/jobs.py",
                "src/rota/contrib/celery.py",
                "src/rota/domain/sink.py",
                "src/rota/domain/sink_form.py",
            ),
            "it names what Celery calls so",
        ),
        bad=in_src("def next_task() -> None: ..."),
        good=in_src("import asyncio\ntask = asyncio.create_task(step())"),
    ),
    Rule(
        name="names a place on one machine",
        instead="use a path from the project's root, or a temporary folder",
        where=EVERYWHERE,
        suffix="",
        find=text_matching(r"(?<![\w.~-])/(?:work|home|root)/"),
        bad=in_src("folder = '/w\u006frk/main'"),
        good=in_src("route = 'https://rota.example/home/'"),
    ),
    Rule(
        name="names a package index",
        instead="leave the index to the machine: hashes say what may be installed",
        where=EVERYWHERE,
        suffix="",
        find=text_matching(r"pypi\.org|pythonhosted\.org"),
        bad=Source(path="docs/install.md", text="from pypi\u002eorg"),
    ),
    Rule(
        name="names a host in the requirements",
        instead="compile them with `make pins`",
        where=("requirements/",),
        suffix="",
        find=text_matching(r"https?://|--(?:extra-)?index-url|--find-links|file:"),
        bad=Source(path="requirements/dev.txt", text="--index-url=https://index.example/simple"),
        found=2,
    ),
    Rule(
        name="is longer than 400 lines",
        instead="split it by the nouns it is about",
        find=files_longer_than(400),
        bad=in_tests("\n" * 401),
        good=in_tests("\n" * 400),
    ),
    Rule(
        name="is a function of more than 50 lines",
        instead="give its parts names",
        where=("src/",),
        find=functions_longer_than(50),
        bad=in_src("def life() -> None:\n" + "    step()\n" * 50),
        good=in_src("def life() -> None:\n" + "    step()\n" * 49),
    ),
    Rule(
        name="does not say what it is",
        instead="open the file with one sentence",
        where=("src/",),
        find=missing_docstring,
        bad=in_src("ONE = 1\n"),
        good=in_src(""),
    ),
    Rule(
        name="leaves work to nobody",
        instead="do it, or open an issue and name it: TO\u0044O(#12)",
        where=EVERYWHERE,
        suffix="",
        find=text_matching(r"\b(?:TO[D]O|FIX[M]E)\b(?!\(#\d+\))"),
        bad=in_src("# TO\u0044O: later"),
        good=in_src("# TO\u0044O(#12): later"),
    ),
    Rule(
        name="is a lock file with addresses in it",
        instead="requirements/*.txt are the pins; compile them with `make pins`",
        where=EVERYWHERE,
        suffix="",
        find=path_matching(r"(^|/)(uv\.lock|poetry\.lock|pdm\.lock|Pipfile\.lock|pylock[^/]*\.toml)$"),
        bad=at("uv.lock"),
    ),
]
BY_NAME = [pytest.param(rule, id=rule.name.replace(" ", "-")) for rule in RULES]
WITH_NEAR_MISS = [pytest.param(rule, id=rule.name.replace(" ", "-")) for rule in RULES if rule.good]


@pytest.fixture(scope="module")
def sources() -> list[Source]:
    """Every text file that is, or could be, committed."""
    return [
        Source(path=path, text=text) for path in project_paths() if (text := text_of(ROOT / path)) is not None
    ]


@pytest.mark.parametrize("rule", BY_NAME)
def test_every_file_keeps_the_rule(rule: Rule, sources: list[Source]) -> None:
    offences = [line for source in sources for line in rule.broken_by(source)]
    if offences:
        pytest.fail("\n".join(offences), pytrace=False)


@pytest.mark.parametrize("rule", BY_NAME)
def test_the_rule_finds_its_sample(rule: Rule) -> None:
    assert len(rule.broken_by(rule.bad)) == rule.found


@pytest.mark.parametrize("rule", WITH_NEAR_MISS)
def test_the_rule_leaves_a_near_miss_alone(rule: Rule) -> None:
    assert rule.good is not None
    assert rule.governs(rule.good.path)
    assert rule.broken_by(rule.good) == []


@pytest.mark.parametrize("rule", BY_NAME)
def test_an_exception_to_the_rule_is_still_needed(rule: Rule, sources: list[Source]) -> None:
    breaking = {
        source.path for source in sources if source.path in rule.except_in and list(rule.find(source))
    }
    assert breaking == set(rule.except_in)


def test_the_rules_see_the_whole_project(sources: list[Source]) -> None:
    paths = {source.path for source in sources}
    assert {"Makefile", ".ci/run", "pyproject.toml", "src/rota/__init__.py", "tests/test_tidy.py"} <= paths
    assert not [path for path in paths if path.startswith((".venv/", ".git/"))]


def project_paths() -> list[str]:
    """Paths from the root: what git tracks or would add, or without git whatever is not hidden."""
    if (ROOT / ".git").exists() and (git := shutil.which("git")):
        listed = subprocess.run(
            [git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        return sorted(path for path in set(listed.stdout.split("\0")) if (ROOT / path).is_file())
    paths: list[str] = []
    for folder, subfolders, files in os.walk(ROOT):
        subfolders[:] = [
            name for name in subfolders if name == ".ci" or not name.startswith((".", "__pycache__"))
        ]
        paths += [(Path(folder) / name).relative_to(ROOT).as_posix() for name in files]
    return sorted(paths)


def text_of(path: Path) -> str | None:
    """A file's text, or nothing where it is not text."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None
