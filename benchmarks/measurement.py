"""Result of a case, as a line of the table and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

COLUMNS = (
    "case", "build", "nodes", "tasks", "queues", "apps", "sizes", "sorting", "result", "peak MB", "yardstick",
)  # fmt: skip
PER_SECOND = "_per_s"
_WIDTHS = (23, 11, 5, 6, 6, 5, 5, 22, 86, 7, 9)


@attrs.frozen
class Measurement:
    """Figures of one run of a case."""

    case: str
    variant: str
    shape: Mapping[str, int | str]
    """Build, numbers of nodes, tasks, queues, applications and sizes, and policies."""
    figures: Mapping[str, float]
    """Results: `tasks_per_s`, or latencies in seconds, `..._s`."""
    peak_mb: float
    yardstick: float

    @property
    def title(self) -> str:
        """Case with its variant, the argument of `--case`."""
        return f"{self.case}/{self.variant}" if self.variant else self.case

    def goodness(self, counts: str) -> float:
        """Return a number that is larger for better runs: throughput, or a negated latency."""
        figure = self.figures[counts]
        return figure if counts == "tasks_per_s" else -figure

    def to_json(self) -> str:
        """Return the measurement as one line of JSON."""
        figures = {name: float(f"{value:.6g}") for name, value in self.figures.items()}
        entry = {
            "case": self.case,
            "variant": self.variant,
            **self.shape,
            **figures,
            "peak_mb": round(self.peak_mb, 1),
            "yardstick": round(self.yardstick, 3),
        }
        return json.dumps(entry)

    @classmethod
    def from_json(cls, line: str) -> Measurement:
        """Return the measurement from the output of `to_json`."""
        entry: dict[str, Any] = json.loads(line)
        case, variant = entry.pop("case"), entry.pop("variant")
        peak, yardstick = entry.pop("peak_mb"), entry.pop("yardstick")
        figures = {name: value for name, value in entry.items() if name.endswith("_s")}
        shape = {name: value for name, value in entry.items() if name not in figures}
        return cls(case, variant, shape, figures, peak, yardstick)

    def cells(self) -> list[str]:
        """Return the cells of the table row, in the order of `COLUMNS`."""
        counts = [
            f"{self.shape.get(name, '')}"
            for name in ("build", "nodes", "tasks", "queues", "applications", "sizes")
        ]
        sorting = f"{self.shape.get('app_sort', '')} / {self.shape.get('node_sort', '')}"
        result = ", ".join(readable(name, value) for name, value in self.figures.items())
        return [self.title, *counts, sorting, result, f"{self.peak_mb:.0f}", f"{self.yardstick:.2f}"]


def readable(name: str, value: float) -> str:
    """Return a figure as text: `48,000 tasks/s`, `idle 1.3 µs`."""
    if name.endswith(PER_SECOND):
        return f"{value:,.0f} {name.removesuffix(PER_SECOND).replace('_', ' ')}/s"
    label = name.removesuffix("_s").replace("_", " ")
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if value * factor >= 1 or unit == "µs":
            return f"{label} {value * factor:.3g} {unit}"
    raise AssertionError(value)


def table_head() -> list[str]:
    """Return the first two lines of the table (Markdown)."""
    return [table_line(COLUMNS), "|" + "|".join("-" * (width + 2) for width in _WIDTHS) + "|"]


def table_line(cells: Iterable[str]) -> str:
    """Return one line of the table."""
    return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, _WIDTHS, strict=True)) + " |"
