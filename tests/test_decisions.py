"""Checks of docs/decisions: every decision has a page, and every reference to one can be followed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parent.parent
PAGE = (CHECKOUT / "docs" / "compatibility.md").read_text("utf-8")
DECISIONS = CHECKOUT / "docs" / "decisions"
ANSWERS = 64
"""Open questions are numbered from 1 to this; not all of them have a page in docs/decisions."""


def numbered() -> set[int]:
    """Return the numbers on the page: plain ones in first cells of tables, and links to decisions."""
    cells = re.findall(r"^\| ([^|]+) \|", PAGE, re.MULTILINE)
    plain = [int(each) for cell in cells for each in cell.split(", ") if each.isdecimal()]
    return {*plain, *linked()}


def linked() -> set[int]:
    """Return the numbers of the decisions that the page links to."""
    links = re.findall(r"\[(\d+)\]\(decisions/(\d{4})-", PAGE)
    assert all(int(shown) == int(number) for shown, number in links)
    return {int(number) for _, number in links}


def decisions() -> dict[int, Path]:
    """Return the pages of docs/decisions by number."""
    return {int(page.name[:4]): page for page in DECISIONS.glob("[0-9]*.md")}


def test_every_open_question_has_an_answer_on_the_page() -> None:
    assert numbered() >= set(range(1, ANSWERS + 1))


def test_every_decision_is_linked_and_in_the_index() -> None:
    index = (DECISIONS / "README.md").read_text("utf-8")
    assert linked() == set(decisions())
    assert re.findall(r"^\| (\d{4}) \| \[[^|]*\]\((.*)\) \|", index, re.MULTILINE) == [
        (page.name[:4], page.name) for _, page in sorted(decisions().items())
    ]


@pytest.mark.parametrize("page", decisions().values(), ids=lambda page: page.stem)
def test_every_decision_has_question_choice_and_reason(page: Path) -> None:
    text = page.read_text("utf-8")
    assert text.startswith(f"# {page.name[:4]}: ")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["Question", "Choice", "Why", "See also"]


def test_decisions_that_the_source_refers_to_exist() -> None:
    referred: set[int] = set()
    for folder in ("yunikorn", "plugins", "policies"):
        for file in (CHECKOUT / folder).rglob("*.py"):
            found = re.findall(r"docs/decisions/(\d{4})", file.read_text("utf-8"))
            referred |= {int(number) for number in found}
    assert referred <= set(decisions())


def test_files_that_decisions_name_exist() -> None:
    for page in decisions().values():
        for path in re.findall(r"`((?:yunikorn|plugins|policies|tests)/[\w./]+)`", page.read_text("utf-8")):
            assert (CHECKOUT / path).exists(), f"{page.name}: {path}"
