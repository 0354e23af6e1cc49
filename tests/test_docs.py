"""The docs say what is true: generated pages are fresh, promises cite tests that exist, links lead somewhere."""

import re
import runpy
from pathlib import Path

import pytest

from rota.demo.walks import MOMENTS, walks

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
CITED_TEST = r"`(tests/[\w/]+\.py)(?:::(\w+))?`"
PROMISES = [f"I{number}" for number in range(1, 14)]


def test_the_lifecycle_page_is_what_the_table_says() -> None:
    made = runpy.run_path(str(ROOT / "docs/make_lifecycle.py"))
    assert made["render"]() == (ROOT / "docs/lifecycle.md").read_text(), "run `make docs`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_between_pages_leads_to_a_file(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    missing = [link for link in links if not (page.parent / link).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_place_in_a_page_leads_to_a_heading(page: Path) -> None:
    places = re.findall(r"\]\(([^)#:]*)#([^)]*)\)", page.read_text())
    missing = [
        f"{link}#{place}"
        for link, place in places
        if place not in anchors_of((page.parent / link).read_text() if link else page.read_text())
    ]
    assert missing == []


def anchors_of(text: str) -> set[str]:
    """By which a page's headings are linked to, as a forge makes them."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_cited_test_exists(page: Path) -> None:
    missing = [
        f"{file}::{name}"
        for file, name in re.findall(CITED_TEST, page.read_text())
        if not (ROOT / file).exists() or (name and f"def {name}(" not in (ROOT / file).read_text())
    ]
    assert missing == []


@pytest.mark.parametrize("promise", PROMISES)
def test_every_promise_cites_tests(promise: str) -> None:
    text = (ROOT / "docs/invariants.md").read_text()
    section = re.search(rf"^## {promise} .*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert section is not None, f"docs/invariants.md has no section {promise}"
    assert re.findall(CITED_TEST, section.group()), f"{promise} cites no test"


def test_the_readme_counts_the_lives_of_the_demonstration() -> None:
    lives = f"{len(list(walks())) * len(MOMENTS)} lives"
    text = (ROOT / "README.md").read_text()
    assert set(re.findall(r"\d+ lives", text)) == {lives}
