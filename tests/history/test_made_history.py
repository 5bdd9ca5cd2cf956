"""Made histories: equal arguments make equal rows, and their sums agree with their allocations."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from tests.history.made_history import make_history
from yunikorn_history.database import open_reader
from yunikorn_history.history_tables import LEVELS, METADATA, PARTITION_SERIES, PLACEHOLDER


def dump(location: str) -> dict[str, list[dict[str, Any]]]:
    """Return all rows of a history by table."""
    reader = open_reader(location)
    with reader.reading() as connection:
        rows = {
            name: [dict(row) for row in connection.execute(sa.select(table)).mappings()]
            for name, table in METADATA.tables.items()
        }
    reader.close()
    return rows


def test_equal_arguments_make_equal_rows(tmp_path: Path) -> None:
    first, again, other = (
        dump(
            make_history(
                str(tmp_path / f"{name}.db"), applications=20, allocations=100, days=4, seed=seed
            ).location
        )
        for name, seed in (("first", 3), ("again", 3), ("other", 4))
    )
    for rows in (first, again):
        del rows["meta"]
    assert first == again
    assert first["allocations"] != other["allocations"]


def test_sums_agree_with_allocations(location: str) -> None:
    made = make_history(location, applications=80, allocations=600, days=7, hours=7)
    rows = dump(location)
    names = {row["id"]: row["text"] for row in rows["names"]}
    shapes = {row["id"]: json.loads(row["amounts"]) for row in rows["shapes"]}
    service: Counter[str] = Counter()
    by_app: dict[int, Counter[str]] = {}
    for row in rows["allocations"]:
        assert made.since <= row["requested"] <= row["placed"] < made.until
        length = (row["ended"] or made.until) - row["placed"]
        parts = {name: amount * length for name, amount in shapes[row["shape"]].items()}
        service.update(parts)
        if row["ended"] and not row["flags"]:
            by_app.setdefault(row["app"], Counter()).update(parts)
    for level in (2, 3):
        used: Counter[str] = Counter()
        for row in rows["usage"]:
            if row["level"] == level:
                used.update(json.loads(row["data"])["service"])
        assert used == service
        buckets = [row for row in rows["series"] if (row["kind"], row["level"]) == (PARTITION_SERIES, level)]
        mean = sum(json.loads(row["data"])["used"].get("vcore", 0) * LEVELS[level] for row in buckets)
        assert 0 <= service["vcore"] - mean <= LEVELS[level] * len(buckets)
    for row in rows["applications"]:
        assert json.loads(row["service"] or "{}") == by_app.get(row["id"], {})
    tasks = Counter(row["app"] for row in rows["allocations"] if not row["flags"] & PLACEHOLDER)
    assert {row["id"]: row["tasks"] for row in rows["applications"] if row["tasks"]} == tasks
    assert len(rows["applications"]) == 80
    assert len(rows["allocations"]) == 600
    assert {names[row["state"]] for row in rows["applications"]} >= {"Completed", "Running"}
