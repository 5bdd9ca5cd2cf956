"""What all plots share: paper, colours, units, time axes. Needs matplotlib.

Nothing here keeps a state of matplotlib's own: figures are made and drawn as values, so that plots can be
made anywhere and in any number.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from yunikorn.config.quantities import VCORE

DPI = 110
WIDTH = 10.0
"""Inches; all plots are as wide, so that they line up under each other."""

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c6d31", "#5e4fa2")
"""Told apart by colour-blind people, too (after M. Okabe and K. Ito)."""
OTHERS = "#9a9a9a"
USED = "#56b4e9"
UNUSABLE = "#d55e00"
GUARANTEED = "#009e73"
LIMIT = "#c0262d"
INK = "#333333"

_STYLE: dict[Any, Any] = {
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "figure.constrained_layout.use": True,
    "text.parse_math": False,
}

_TIMES = (
    (3 * 86_400, 86_400, "days"),
    (3 * 3_600, 3_600, "hours"),
    (3 * 60, 60, "minutes"),
    (0, 1, "seconds"),
)
_SIZES = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "bytes"))


def styled() -> AbstractContextManager[None]:
    """While this context is open, what is made and drawn looks as it should here."""
    return rc_context(_STYLE)


def paper(
    height: float, rows: int = 1, columns: int = 1, *, share: bool = False
) -> tuple[Figure, list[Axes]]:
    """A figure with axes, row by row; `share` gives all of them the same time axis."""
    figure = Figure(figsize=(WIDTH, height), dpi=DPI)
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, sharex=share, squeeze=False)
    return figure, [one for row in axes for one in row]


def png(figure: Figure) -> bytes:
    """The drawn figure; without the date and the program, so that equal figures are equal files."""
    with io.BytesIO() as file:
        figure.savefig(file, format="png", metadata={"Software": None})
        return file.getvalue()


def empty(what: str) -> Figure:
    """A figure that says why there is nothing to see."""
    figure, (axes,) = paper(1.6)
    axes.set_axis_off()
    axes.text(0.5, 0.5, what, ha="center", va="center", fontsize=11, color=INK, transform=axes.transAxes)
    return figure


def time_scale(edges: Sequence[float]) -> tuple[float, str]:
    """By what seconds are divided for an axis, and what that is called."""
    span = max(edges) - min(0.0, min(edges)) if edges else 0.0
    return next((unit, name) for least, unit, name in _TIMES if span >= least)


def amount_scale(name: str, largest: float) -> tuple[float, str]:
    """By what amounts of a resource type are divided for an axis, and what its unit is called."""
    if name == VCORE:
        return 1000, "cores"
    if name == "memory":
        return next((unit, text) for unit, text in _SIZES if largest >= unit or unit == 1)
    return 1, shorten(name, 24)


def shorten(name: str, most: int) -> str:
    """A name that strangers chose, so that it fits; the end of it tells more than its beginning."""
    clean = "".join(char if char.isprintable() else "?" for char in name)
    return clean if len(clean) <= most else "…" + clean[1 - most :]


def duration_ticks(largest: float) -> list[float]:
    """Where an axis of waiting times has its marks, from a second up, in seconds."""
    marks = [1, 10, 60, 600, 3_600, 6 * 3_600, 86_400, 7 * 86_400, 30 * 86_400, 365 * 86_400]
    return [mark for mark in marks if mark <= max(largest, 1) * 1.5]


def duration_text(seconds: float) -> str:
    """`10 s`, `6 h`, `7 d`."""
    for unit, text in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= unit:
            return f"{seconds / unit:g} {text}"
    return f"{seconds:g} s"


def top(values: Sequence[float], *more: float) -> float:
    """Where an axis from 0 up ends: a little above the largest."""
    largest = max((*values, *more), default=0.0)
    return largest * 1.08 if largest > 0 and math.isfinite(largest) else 1.0
