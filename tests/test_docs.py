"""The docs say what is true: generated pages are fresh, promises cite tests that exist, links lead somewhere."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
PROMISES = [f"I{number}" for number in range(1, 14)]


def test_the_lifecycle_page_is_what_the_table_says() -> None:
    made = runpy.run_path(str(ROOT / "docs/make_lifecycle.py"))
    assert made["render"]() == (ROOT / "docs/lifecycle.md").read_text(), "run `make docs`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_between_pages_leads_to_a_file(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    missing = [link for link in links if not (page.parent / link).exists()]
    assert missing == []


@pytest.mark.parametrize("promise", PROMISES)
def test_every_promise_cites_tests_that_exist(promise: str) -> None:
    text = (ROOT / "docs/invariants.md").read_text()
    section = re.search(rf"^## {promise} .*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert section is not None, f"docs/invariants.md has no section {promise}"
    cited = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", section.group())
    assert cited, f"{promise} cites no test"
    for file, name in cited:
        path = ROOT / file
        assert path.exists(), file
        assert not name or f"def {name}(" in path.read_text(), f"{file} has no {name}"
