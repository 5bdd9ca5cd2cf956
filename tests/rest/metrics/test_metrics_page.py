"""docs/metrics.md describes every family, as the code does, and docs/running.md names families that exist."""

from __future__ import annotations

import re
from pathlib import Path

from yunikorn_rest.metrics.families import FAMILIES, Family

DOCS = Path(__file__).parents[3] / "docs"
PAGE = DOCS / "metrics.md"
RUNNING = (DOCS / "running.md").read_text("utf-8")


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


def test_alerts_of_the_page_for_platform_engineers_name_families_that_exist() -> None:
    named = set(
        re.findall(r"\byunikorn_\w+_(?:total|entries|sessions|stuck)\b|\byunikorn_sessions\b", RUNNING)
    )
    assert len(named) > 5
    assert named <= {family.name for family in FAMILIES}
