"""Style and axes of all plots. Requires matplotlib.

The module does not use matplotlib's global state: figures are created and drawn as independent values.

Axes of times: durations as in tables, and dates (UTC) where the input has them.
"""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch

from yunikorn.quantities import VCORE
from yunikorn_lab.reporting.palette import DASHES, HATCHES, Style
from yunikorn_lab.reporting.run_history import RunHistory
from yunikorn_lab.reporting.tables import duration

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


MINUTE, HOUR, DAY = 60, 3_600, 86_400
MOST = 8
"""Maximum number of steps between ticks on an axis of the full width."""
MOST_DATES = 7
"""The same for dates, which are wider."""
_STEPS = (
    *(1, 2, 5, 10, 15, 30),
    *(MINUTE * number for number in (1, 2, 5, 10, 15, 30)),
    *(HOUR * number for number in (1, 2, 3, 6, 12)),
    *(DAY * number for number in (1, 2, 7, 14)),
)
"""Distances of ticks (s)."""
_MONTHS = (1, 2, 3, 6, 12)
MONDAY = 4 * DAY
"""Unix time of the first Monday; weeks begin on Mondays."""
FIRST, LAST = 0, 32_503_680_000
"""Unix times between which dates can be shown: the years 1970 to 2999."""


def short_duration(seconds: float) -> str:
    """Return a duration as in tables, without parts that are 0 at its end: `6h`, `1d 12h` or `2m 30s`."""
    text = duration(seconds) if seconds >= 1 else f"{seconds:g}s"
    for part in (" 0s", " 0m", " 0h"):
        text = text.removesuffix(part)
    return text


def duration_ticks(low: float, high: float, most: int = MOST) -> list[float]:
    """Return the ticks of a linear axis of durations (s), at most `most` steps apart."""
    step = next(step for step in _all_steps() if (high - low) / step <= most)
    return [number * step for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _all_steps() -> Iterator[float]:
    """Yield the possible distances of ticks (s), in ascending order."""
    yield from (part * 10.0**power for power in range(-6, 0) for part in (1, 2, 5))
    yield from _STEPS
    yield from (part * 10.0**power * DAY for power in itertools.count(1) for part in (2, 5, 10))


def wide_ticks(largest: float) -> list[float]:
    """Return the ticks of a logarithmic axis of durations (s), from one second up."""
    marks = [1, 10, 60, 600, 3_600, 6 * 3_600, 86_400, 7 * 86_400, 30 * 86_400, 365 * 86_400]
    return [mark for mark in marks if mark <= max(largest, 1) * 1.5]


def label_durations(axis: Axis, low: float, high: float, most: int = MOST) -> None:
    """Set the ticks of a linear axis of durations (s)."""
    ticks = duration_ticks(low, high, most)
    axis.set_ticks(ticks, [short_duration(tick) for tick in ticks])


def date_ticks(low: float, high: float, origin: float, most: int = MOST_DATES) -> list[tuple[float, str]]:
    """Return the ticks of an axis from `low` to `high` seconds after the Unix time `origin`, with texts.

    A time of the day has its date below at the first tick, and where the date changes.
    """
    found = []
    before = ""
    step = _step(high - low, most)
    for moment in _moments(low + origin, high + origin, step, most):
        at = datetime.fromtimestamp(moment, UTC)
        date = f"{at:%Y-%m-%d}"
        text = date
        if step is not None and step < DAY:
            text = f"{at:%H:%M}" if step >= MINUTE else f"{at:%H:%M:%S}"
            text, before = text if date == before else f"{text}\n{date}", date
        found.append((moment - origin, text))
    return found


def _step(span: float, most: int) -> int | None:
    return next((step for step in _STEPS if span / step <= most), None)


def _moments(low: float, high: float, step: int | None, most: int) -> list[int]:
    """Return the multiples of a step between two Unix times, or beginnings of months without a step."""
    if step is not None:
        offset = MONDAY if step % (7 * DAY) == 0 else 0
        first = math.ceil((low - offset) / step)
        return [number * step + offset for number in range(first, math.floor((high - offset) / step) + 1)]
    begin, end = (datetime.fromtimestamp(moment, UTC) for moment in (low, high))
    months = (end.year - begin.year) * 12 + end.month - begin.month
    apart = next((number for number in _MONTHS if months <= number * most), 12 * -(-months // (12 * most)))
    found = []
    for number in range(0, months + 1):
        year, month = divmod(begin.year * 12 + begin.month - 1 + number, 12)
        if (year * 12 + month) % apart == 0:
            found.append(int(datetime(year, month + 1, 1, tzinfo=UTC).timestamp()))
    return [moment for moment in found if low <= moment <= high]


def shared_origin(histories: Sequence[RunHistory]) -> float | None:
    """Return the origin of runs that all have the same one, else None."""
    origins = {history.origin for history in histories}
    return origins.pop() if len(origins) == 1 else None


def label_times(axes: Axes, start: float, end: float, origin: float | None, *, columns: int = 1) -> str:
    """Scale and tick an axis of simulated time (s), and return its label.

    It shows dates if the Unix time `origin` of 0 is known.
    """
    axes.set_xlim(start, end)
    if origin is None or not FIRST <= origin + start <= origin + end <= LAST:
        label_durations(axes.xaxis, start, end, MOST // columns)
        return "simulated time"
    ticks = date_ticks(start, end, origin, MOST_DATES // columns)
    axes.set_xticks([at for at, _ in ticks], [text for _, text in ticks])
    return "date (UTC)"
