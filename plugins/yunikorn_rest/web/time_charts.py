"""Charts of values over time: lines in steps, axes, texts for those who do not see them, and tables.

A chart is drawn in a box of 1000 by 100 that a page stretches; texts are outside of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import attrs

from yunikorn.clock import MILLISECOND
from yunikorn_rest.web import amount_bars
from yunikorn_rest.web.time_phrases import duration
from yunikorn_rest.web.time_windows import TimeWindow, in_utc

Values = Sequence[float | None]
"""Values of the steps of a window; None where nothing is known."""
WIDTH, HEIGHT = 1000, 100
GRIDLINES = 4
"""Largest number of lines of the grid above 0."""
_WAITS = tuple(
    1000 * seconds
    for seconds in (0.001, 0.01, 0.1, 1, 10, 60, 600, 3_600, 21_600, 86_400, 604_800, 2_592_000, 31_536_000)
)
"""Ticks of a logarithmic axis of waits (ms)."""


@attrs.frozen
class TimeLine:
    """A line of a chart before it is drawn."""

    name: str
    style: str
    """Class of the style."""
    values: Values
    is_filled: bool = True
    total: Callable[[int, int], float | None] | None = None
    """Returns the value of the steps from a first one to one before a last one; None for the mean of them."""

    def of(self, first: int, last: int) -> float | None:
        """Return the value of some steps; None if none is known."""
        if self.total is not None:
            return self.total(first, last)
        known = [value for value in self.values[first:last] if value is not None]
        return sum(known) / len(known) if known else None


@attrs.frozen(kw_only=True)
class ChartScale:
    """Axis of values."""

    text: Callable[[float], str]
    """Returns the text of a value."""
    ticks: Sequence[tuple[float, str]]
    """Values and their texts."""
    height: Callable[[float], float]
    """Returns the height of a value, from 0 to 1."""


@attrs.frozen(kw_only=True)
class DrawnLine:
    """A line of a chart."""

    name: str
    style: str
    path: str
    """Path of an SVG."""
    area: str
    """Path of the area below the line; empty for none."""
    latest: str
    """Latest value."""


@attrs.frozen(kw_only=True)
class ChartRow:
    """Values of a longer time: a row of the table, and a hint of the chart."""

    time: str
    values: Sequence[str]
    x: float
    width: float


@attrs.frozen(kw_only=True)
class TimeChart:
    """A chart."""

    title: str
    lines: Sequence[DrawnLine]
    summary: str
    """Content in words."""
    grid: str
    """Path of the lines of the grid."""
    ticks: Sequence[tuple[str, str]]
    """Positions and texts at the left."""
    rows: Sequence[ChartRow]


MakeScale = Callable[[Sequence[TimeLine]], ChartScale]


def charts_of(
    title: str, window: TimeWindow, lines: Sequence[TimeLine], make_scale: MakeScale
) -> list[TimeChart]:
    """Return the chart of some lines; none if no line has a value above 0."""
    if not any(value for line in lines for value in line.values):
        return []
    scale = make_scale(lines)
    heights = [(_y(scale.height(value)), text) for value, text in scale.ticks]
    drawn = TimeChart(
        title=title,
        lines=[_drawn(line, window, scale) for line in lines],
        summary=f"{title}: " + "; ".join(_summary(line, scale) for line in lines),
        grid="".join(f"M0 {y}H{WIDTH}" for y, _ in heights),
        ticks=[(f"{y}%", text) for y, text in heights],
        rows=[_row(begin, end, window, lines, scale) for begin, end in window.rows()],
    )
    return [drawn]


# -- scales ----------------------------------------------------------------------------------------------


def amount_scale(name: str, lines: Sequence[TimeLine]) -> ChartScale:
    """Return the axis of amounts of a resource type."""
    most = _most(lines)
    factor, unit = amount_bars.unit_of(name, int(most))
    return _linear(most, factor, lambda value: amount_bars.amount(name, round(value)), unit)


def count_scale(lines: Sequence[TimeLine]) -> ChartScale:
    """Return the axis of numbers."""
    return _linear(_most(lines), 1, amount_bars.number, "")


def _most(lines: Sequence[TimeLine]) -> float:
    return max((value for line in lines for value in line.values if value is not None), default=0)


def _linear(most: float, factor: int, text: Callable[[float], str], unit: str) -> ChartScale:
    step = _nice(max(most / factor, 1e-9) / GRIDLINES) * factor
    count = max(1, math.ceil(most / step))
    top = max(most, step) * 1.04
    ticks = [(number * step, amount_bars.number(number * step / factor)) for number in range(count + 1)]
    shown = [one for one in ticks if one[0] <= top]
    shown[-1] = (shown[-1][0], f"{shown[-1][1]}\u00a0{unit}" if unit else shown[-1][1])
    return ChartScale(text=text, ticks=shown, height=lambda value: value / top)


def _nice(value: float) -> float:
    """Return the next of 1, 2, 5, 10, 20 ... that is not smaller."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= value * 0.999)


def wait_scale(lines: Sequence[TimeLine]) -> ChartScale:
    """Return the logarithmic axis of waits (ms)."""
    known = [value for line in lines for value in line.values if value]
    least, most = min(known, default=1000), max(known, default=1000)
    low = max((tick for tick in _WAITS if tick <= least), default=_WAITS[0])
    high = max(min((tick for tick in _WAITS if tick >= most), default=_WAITS[-1]), low * 10)
    shown = [tick for tick in _WAITS if low <= tick <= high]
    return ChartScale(
        text=wait_text,
        ticks=[(tick, wait_text(tick)) for tick in shown[:: -(-len(shown) // (GRIDLINES + 1))]],
        height=lambda value: min(1, max(0, math.log(max(value, low) / low) / math.log(high / low))),
    )


def wait_text(milliseconds: float) -> str:
    """Return a wait in words."""
    if milliseconds < 100:
        return f"{amount_bars.number(milliseconds)}\u00a0ms"
    return duration(round(milliseconds) * MILLISECOND)


# -- drawing ---------------------------------------------------------------------------------------------


def _y(height: float) -> str:
    return f"{HEIGHT * (1 - min(1.0, max(0.0, height))):.1f}".removesuffix(".0")


def _x(step: int, window: TimeWindow) -> str:
    return f"{WIDTH * step / window.steps:.1f}".removesuffix(".0")


def _drawn(line: TimeLine, window: TimeWindow, scale: ChartScale) -> DrawnLine:
    """Draw a line: horizontal over a step, with nothing where no value is known."""
    path, area, before, begin = [], [], "", 0
    values = [*line.values[: window.steps], None]
    for index, value in enumerate(values):
        y = "" if value is None else _y(scale.height(value))
        if y == before:
            continue
        x = _x(index, window)
        if before:
            path.append(f"H{x}")
        if y and before:
            path.append(f"V{y}")
        elif y:
            path.append(f"M{x} {y}")
            begin = len(path) - 1
        elif before:
            run = "".join(path[begin:])
            area.append(f"{run}V{HEIGHT}H{run[1:].partition(' ')[0]}Z")
        before = y
    latest = next((value for value in reversed(line.values) if value is not None), None)
    return DrawnLine(
        name=line.name,
        style=line.style,
        path="".join(path),
        area="".join(area) if line.is_filled else "",
        latest=_text(latest, scale),
    )


def _text(value: float | None, scale: ChartScale) -> str:
    return "–" if value is None else scale.text(value)


def _summary(line: TimeLine, scale: ChartScale) -> str:
    known = [value for value in line.values if value is not None]
    if not known:
        return f"{line.name} unknown"
    if min(known) == max(known):
        return f"{line.name} {scale.text(known[0])}"
    between = f"from {scale.text(min(known))} to {scale.text(max(known))}"
    return f"{line.name} {between}, at the end {scale.text(known[-1])}"


def _row(begin: int, end: int, window: TimeWindow, lines: Sequence[TimeLine], scale: ChartScale) -> ChartRow:
    first, last = window.index(begin), max(window.index(begin) + 1, window.index(end))
    x, until = WIDTH * window.share(begin), WIDTH * window.share(end)
    texts = [_text(line.of(first, last), scale) for line in lines]
    return ChartRow(
        time=in_utc(begin, window.span.row_text), values=texts, x=round(x, 1), width=round(until - x, 1)
    )
