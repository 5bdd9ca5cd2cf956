"""Plot of growth: microseconds per decision over the growing dimension, one panel each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.failure import BenchmarkFailure
from benchmarks.growth import BASE, MOST, NODE_SORTS, Step

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLES = {"fair": ("#1f6f8b", "o"), "binpacking": ("#c8553d", "s")}
GRID = "#dddddd"


def draw(steps: Sequence[Step], file: Path, machine: str) -> None:
    """Write the plot to `file`. Raises `BenchmarkFailure` if matplotlib is not installed."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError as error:
        raise BenchmarkFailure(f"--plot needs matplotlib ({error}): pip install 'yunikorn[plots]'") from error
    axes = list(dict.fromkeys(step.axis for step in steps))
    columns = min(2, len(axes))
    rows = -(-len(axes) // columns)
    figure, panels = pyplot.subplots(
        rows, columns, figsize=(4.6 * columns, 3.1 * rows), sharey=True, squeeze=False, layout="constrained"
    )
    highest = max(step.decision for step in steps) * 1e6
    for panel, axis in zip(panels.flat, axes, strict=False):
        _panel(panel, axis, [step for step in steps if step.axis == axis])
        panel.set_ylim(0, highest * 1.15)
    for panel in panels.flat[len(axes) :]:
        panel.set_visible(False)
    for row in panels:
        row[0].set_ylabel("µs per decision")
    panels[0][0].legend(frameon=False, loc="lower left")
    figure.suptitle(_title(machine), fontsize=10)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=130)
    pyplot.close(figure)


def _title(machine: str) -> str:
    rest = ", ".join(
        f"{BASE[name]:,} {name}" for name in ("nodes", "tasks", "queues", "applications", "sizes")
    )
    return f"Cost of a decision while one of them grows, the others staying at\n{rest} ({machine})"


def _panel(panel: Axes, axis: str, steps: Sequence[Step]) -> None:
    for node_sort in dict.fromkeys(step.node_sort for step in steps):
        line = [step for step in steps if step.node_sort == node_sort]
        colour, marker = STYLES.get(node_sort, ("#555555", "^"))
        values, costs = [step.value for step in line], [step.decision * 1e6 for step in line]
        panel.plot(values, costs, color=colour, marker=marker, markersize=4, label=f"nodes by {node_sort}")
    values = sorted({step.value for step in steps})
    panel.set_xscale("log", base=2)
    panel.set_xticks(values, [f"{value:,}" for value in values], fontsize=8)
    panel.minorticks_off()
    panel.set_title(axis, fontsize=10)
    panel.grid(axis="y", color=GRID)
    _promise(panel, steps)
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)


def _promise(panel: Any, steps: Sequence[Step]) -> None:
    """Draw the bound, on which every doubling costs `MOST` times as much."""
    first = [step for step in steps if step.node_sort in NODE_SORTS][:1] or list(steps[:1])
    start, values = first[0].decision * 1e6, sorted({step.value for step in steps})
    bound = [start * MOST**number for number in range(len(values))]
    panel.plot(values, bound, color="#999999", linestyle=":", linewidth=1, label=f"{MOST:g} times each")
