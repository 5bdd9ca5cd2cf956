"""Growth: what a decision costs when nodes, tasks, queues, applications or sizes double."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from benchmarks.cases import OWN
from benchmarks.fresh import run_fresh

BASE: Mapping[str, int | str] = {
    "nodes": 4_000,
    "tasks": 20_000,
    "queues": 20,
    "applications": 100,
    "sizes": 20,
    "app_sort": "fair",
}
"""What stays while one of them grows; options on the command line replace them."""
STEPS: Mapping[str, tuple[int, ...]] = {
    "nodes": (1_000, 2_000, 4_000, 8_000, 16_000),
    "tasks": (10_000, 20_000, 40_000, 80_000),
    "queues": (1, 10, 100, 1_000),
    "applications": (10, 100, 1_000, 10_000),
    "sizes": (1, 10, 100, 1_000, 10_000),
}
"""What grows, and how."""


def grow(axis: str, options: Mapping[str, object], limit: float | None) -> Iterator[str]:
    """A line per step: microseconds per decision, and how many times those of the step before."""
    yield f"{axis:>12}  {'tasks/s':>9}  {'µs/task':>8}  {'ratio':>6}  {'peak MB':>8}"
    before = 0.0
    for value in STEPS[axis]:
        found = run_fresh(OWN, {**BASE, **options, axis: value}, limit)
        speed = found.figures["tasks_per_s"]
        cost = 1e6 / speed
        ratio = f"{cost / before:.2f}" if before else ""
        yield f"{value:>12,}  {speed:>9,.0f}  {cost:>8.1f}  {ratio:>6}  {found.peak_mb:>8.0f}"
        before = cost
