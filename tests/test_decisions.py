"""Checks of docs/decisions: every decision is in an index, and every reference leads to one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parent.parent
DECISIONS = CHECKOUT / "docs" / "decisions"
ARCHIVE = DECISIONS / "archive"
ANSWERS = 64
"""Questions that YuniKorn's documents leave open are numbered from 1 to this; a few have no page."""
REFERRING = ("yunikorn", "plugins", "policies", "tests", "docs", "examples", "benchmarks")
"""Folders whose files, besides those beside README.md, refer to decisions."""


def decisions() -> dict[int, Path]:
    """Return the pages of docs/decisions and of the archive by number."""
    pages = [*DECISIONS.glob("[0-9]*.md"), *ARCHIVE.glob("[0-9]*.md")]
    found = {int(page.name[:4]): page for page in pages}
    assert len(found) == len(pages), "a number is used twice"
    return found


def test_every_open_question_has_a_page_or_an_answer_in_the_archive() -> None:
    index = (ARCHIVE / "README.md").read_text("utf-8")
    cells = re.findall(r"^\| ([\d, ]+) \|", index.partition("## Questions without a page")[2], re.MULTILINE)
    without = {int(number) for cell in cells for number in cell.split(", ")}
    assert without
    assert without | decisions().keys() >= set(range(1, ANSWERS + 1))


@pytest.mark.parametrize("folder", [DECISIONS, ARCHIVE], ids=["binding", "archive"])
def test_every_decision_is_in_the_index_of_its_folder(folder: Path) -> None:
    index = (folder / "README.md").read_text("utf-8")
    listed = re.findall(r"^\| (\d{4}) \| \[[^|]*\]\((.*)\) \|", index, re.MULTILINE)
    assert sorted(listed) == sorted((page.name[:4], page.name) for page in folder.glob("[0-9]*.md"))


def test_every_decision_has_question_choice_and_reason() -> None:
    for page in decisions().values():
        text = page.read_text("utf-8")
        assert text.startswith(f"# {page.name[:4]}: "), page.name
        parts = re.findall(r"^## (.*)$", text, re.MULTILINE)
        assert parts == ["Question", "Choice", "Why", "See also"], page.name


def referring() -> Iterator[Path]:
    """Yield the files that may refer to a decision."""
    yield from CHECKOUT.glob("*.md")
    for folder in REFERRING:
        for kind in ("*.py", "*.md"):
            yield from (CHECKOUT / folder).rglob(kind)


def test_references_lead_to_a_decision() -> None:
    """Find references in code and pages that lead nowhere, such as one to a page that was archived since."""
    known = {page.relative_to(DECISIONS).as_posix()[:-3].partition("-")[0] for page in decisions().values()}
    wrong = [
        f"{file}: docs/decisions/{reference.decode()}"
        for file in referring()
        for reference in re.findall(rb"decisions/((?:archive/)?\d{4})\b", file.read_bytes())
        if reference.decode() not in known
    ]
    assert wrong == []


def test_files_that_decisions_name_exist() -> None:
    for page in decisions().values():
        for path in re.findall(r"`((?:yunikorn|plugins|policies|tests)/[\w./]+)`", page.read_text("utf-8")):
            assert (CHECKOUT / path).exists(), f"{page.name}: {path}"
