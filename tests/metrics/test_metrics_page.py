"""docs/metrics.md describes every family, as the code does."""

from __future__ import annotations

from pathlib import Path

from yunikorn.metrics.families import FAMILIES, Family

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def row(family: Family) -> str:
    """Return the row of a family in the tables of the page."""
    labels = ", ".join(family.labels)
    if family.values:
        labels += f": {family.values}"
    return f"| `{family.name}` | {family.kind} | {labels} | {family.help} |"


def test_the_page_has_a_row_for_each_family() -> None:
    rows = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `yunikorn_")]
    rows += [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `promhttp_")]
    assert rows == [row(family) for family in sorted(FAMILIES, key=lambda one: one.name.startswith("prom"))]
