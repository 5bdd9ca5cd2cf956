"""The prose of docstrings, comments and pages, by the rules of docs/glossary.md."""

from __future__ import annotations

import pytest

from tests.prose import ROOT, find_slips, slips_of_page, slips_of_python

PLACES = ("yunikorn", "plugins", "policies", "examples", "benchmarks", "docs", "README.md", "tests")


@pytest.mark.parametrize("place", PLACES)
def test_prose_follows_the_glossary(place: str) -> None:
    slips = find_slips([ROOT / place])
    assert not slips, "\n".join(map(str, slips))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('"""What a queue holds."""\n', 'a docstring that begins with "What"'),
        ('class A:\n    x: int = 0\n    """Whether it runs."""\n', 'a docstring that begins with "Whether"'),
        ("x = 1  # kept for ever\n", '"for ever" in "# kept for ever"'),
        ('"""Counts asks (facts §5.3)."""\n', '"(facts" in "Counts asks (facts §5.3)."'),
        (
            'def f() -> None:\n    """Count them (decision 40)."""\n',
            '"decision 4" in "Count them (decision 40)."',
        ),
    ],
)
def test_violations_in_python_are_found(source: str, expected: str) -> None:
    assert expected in [slip.text for slip in slips_of_python("a.py", source)]


def test_pages_are_checked_without_their_code() -> None:
    page = "Nobody asks.\n```\nnobody\n```\nA seed: 7.\n"
    assert [slip.line for slip in slips_of_page("a.md", page)] == [1, 5]
