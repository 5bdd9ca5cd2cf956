"""Style and axes of all plots. Requires matplotlib.

The module does not use matplotlib's global state: figures are created and drawn as independent values.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch

from yunikorn.quantities import VCORE
from yunikorn_lab.reporting.palette import DASHES, HATCHES, Style

DPI = 110
WIDTH = 10.0
"""Width of all plots in inches; equal widths align the plots on a page."""

OTHERS = "#8a8a8a"
USED = "#2b7bba"
UNUSABLE = "#c25100"
GUARANTEED = "#007a58"
LIMIT = "#c0262d"
INK = "#333333"
GRID = "#dddddd"
NOTHING = "#e4e4e4"

_STYLE: dict[Any, Any] = {
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "hatch.linewidth": 1.2,
    # Amounts are written out, instead of as a factor such as 1e6 above the axis.
    "axes.formatter.limits": (-9, 12),
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "figure.constrained_layout.use": True,
    "text.parse_math": False,
}

_SIZES = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "bytes"))


def styled() -> AbstractContextManager[None]:
    """Return a context that applies the project's plot style."""
    return rc_context(_STYLE)


def paper(
    height: float, rows: int = 1, columns: int = 1, *, share: bool = False
) -> tuple[Figure, list[Axes]]:
    """Create a figure with axes in row order; `share` gives all axes the same time axis."""
    figure = Figure(figsize=(WIDTH, height), dpi=DPI)
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, sharex=share, squeeze=False)
    return figure, [one for row in axes for one in row]


@contextmanager
def laid_out(figure: Figure) -> Iterator[None]:
    """Place the axes of a figure once for all its forms: this takes longer than to draw one of them."""
    figure.draw_without_rendering()
    # Saving a figure sets the engine of its layout again, which is then looked up in the style.
    with rc_context({"figure.constrained_layout.use": False}):
        figure.set_layout_engine()
        yield


def png(figure: Figure) -> bytes:
    """Return the figure as PNG, without date and program name, so that equal figures give equal files."""
    with io.BytesIO() as file:
        figure.savefig(file, format="png", metadata={"Software": None})
        return file.getvalue()


def area(style: Style) -> dict[str, Any]:
    """Return the options of an area in the style of a queue; a pattern is drawn with gaps."""
    if not style.pattern:
        return {"fill": True, "facecolor": style.colour, "edgecolor": style.colour, "linewidth": 0.4}
    return {
        "fill": True,
        "facecolor": "none",
        "edgecolor": style.colour,
        "hatch": HATCHES[style.pattern],
        "linewidth": 0.8,
    }


def steps(
    axes: Axes,
    values: Sequence[float],
    edges: Sequence[float],
    *,
    baseline: Any = 0.0,
    fill: bool = False,
    color: str | None = None,
    **options: Any,
) -> None:
    """Draw values that change at the edges, as `Axes.stairs`, on axes whose limits the caller sets.

    `Axes.stairs` looks for limits along each step as along a curve, which takes longer than drawing.
    """
    if color is not None:
        options["facecolor" if fill else "edgecolor"] = color
    if fill:
        options.setdefault("linewidth", 0)
    axes.add_artist(StepPatch(values, edges, baseline=baseline, fill=fill, **options))
    axes.update_datalim([(edges[0], 0.0), (edges[-1], max(values, default=0.0))])


def stack(
    axes: Axes, edges: Sequence[float], below: Sequence[float], more: Sequence[float], **options: Any
) -> list[float]:
    """Draw values above others, without the edge of an area where they are 0; returns the sums."""
    above = [one + part for one, part in zip(below, more, strict=True)]
    drawn = [value if part else math.nan for value, part in zip(above, more, strict=True)]
    steps(axes, drawn, edges, baseline=below, **options)
    return above


def capacity_line(axes: Axes, edges: Sequence[float], capacity: Sequence[float], unit: str) -> None:
    """Draw a capacity over the amounts below it, and scale the axes to both."""
    steps(axes, capacity, edges, baseline=None, color=INK, lw=1.2, label="capacity")
    axes.set_ylim(0, top(capacity))
    axes.set_ylabel(unit)


def line(style: Style, width: float = 1.6) -> dict[str, Any]:
    """Return the options of a line in the style of a queue."""
    return {"color": style.colour, "linestyle": DASHES[style.pattern], "linewidth": width}


def amount_scale(name: str, largest: float) -> tuple[float, str]:
    """Return the divisor of a resource type's amounts for an axis, and the name of its unit."""
    if name == VCORE:
        return 1000, "cores"
    if name == "memory":
        return next((unit, text) for unit, text in _SIZES if largest >= unit or unit == 1)
    return 1, shorten(name, 24)


def shorten(name: str, most: int) -> str:
    """Shorten a name from the input to `most` characters, keeping its end, which is more specific."""
    clean = "".join(char if char.isprintable() else "?" for char in name)
    return clean if len(clean) <= most else "…" + clean[1 - most :]


MOST_NAMES = 4
"""Maximum number of names in the legend of a curve that several share."""


def different_curves(names: Sequence[str], curves: Sequence[object]) -> list[tuple[int, str]]:
    """Return the position and the label of each different curve.

    Equal curves would hide each other, so that the first one is drawn, with the names of all in its label.
    """
    groups: list[tuple[int, list[str]]] = []
    for number, (name, curve) in enumerate(zip(names, curves, strict=True)):
        found = next((same for first, same in groups if curves[first] == curve), None)
        if found is None:
            groups.append((number, [name]))
        else:
            found.append(name)
    return [(first, _joint_label(same)) for first, same in groups]


def _joint_label(names: Sequence[str]) -> str:
    shown = [shorten(name, 30) for name in names[:MOST_NAMES]]
    more = [f"{len(names) - MOST_NAMES} more"] if len(names) > MOST_NAMES else []
    return "\n= ".join([*shown, *more])


def top(values: Sequence[float], *more: float) -> float:
    """Return the upper end of an axis that starts at 0: slightly above the largest value."""
    largest = max((*values, *more), default=0.0)
    return largest * 1.08 if largest > 0 and math.isfinite(largest) else 1.0
