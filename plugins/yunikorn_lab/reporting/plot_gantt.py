"""Picture of a Gantt chart. Requires matplotlib."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping

import attrs
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from yunikorn.clock import SECOND
from yunikorn_lab.reporting.gantt import NODES, PLACEHOLDER, REGULAR, WAITING, GanttBar, GanttChart, Row
from yunikorn_lab.reporting.mpl import INK, LIMIT, OTHERS, area, label_times, paper, shorten
from yunikorn_lab.reporting.palette import HATCHES, LIGHT, QueueColours, Style
from yunikorn_lab.reporting.tables import queue_label

HEIGHTS = {True: 0.3, False: 0.2}
"""Heights of a row in inches, of nodes and of applications."""
FILLED = 0.84
"""Part of a row that its bars fill."""
LABEL = 28
"""Maximum length of the name of a row."""
PALE = 0.35
"""Opacity of the room that placeholders hold."""


NARROW = 0.003
"""Part of the window below which a bar has an outline in its colour, without which it cannot be seen."""

Corners = list[tuple[float, float]]


@attrs.frozen
class _Place:
    """Place of a bar: its row, and the part of the row that it fills from the top."""

    bar: GanttBar
    upper: float
    lower: float


def plot_gantt(chart: GanttChart, colours: QueueColours) -> Figure | None:
    """Plot the bars of a chart in the styles of their queues; None if nothing happened in its time."""
    if not chart.rows or chart.stop <= chart.start:
        return None
    nodes = chart.request.of == NODES
    figure, (axes,) = paper(1.4 + HEIGHTS[nodes] * len(chart.rows))
    styles = _styles(chart, colours)
    places = list(_lanes(chart) if nodes else _heights(chart))
    _draw(axes, chart, places, styles)
    time = label_times(axes, chart.start / SECOND, chart.stop / SECOND, chart.origin)
    axes.set_ylim(len(chart.rows), 0)
    axes.set_yticks(
        [index + 0.5 for index in range(len(chart.rows))],
        [shorten(chart.label(row), LABEL) for row in chart.rows],
        fontsize=7,
    )
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("\n".join([time, *chart.notes]), fontsize=8)
    axes.set_title("Tasks by node" if nodes else "Applications")
    figure.legend(handles=_legend(chart.bars, styles), loc="outside upper right", ncols=4)
    return figure


Styles = Mapping[tuple[str, str], tuple[str, Style | None]]
"""Labels and styles by partition and queue; without a style, a queue is grey."""


def _styles(chart: GanttChart, colours: QueueColours) -> Styles:
    """Return the styles of the queues with the most bars; others are grey."""
    several = chart.has_several_partitions
    counted = Counter(map(_queue, chart.bars))
    named = sorted(counted, key=lambda queue: (-counted[queue], queue))[: len(LIGHT)]
    found: dict[tuple[str, str], tuple[str, Style | None]] = {}
    for queue in sorted(counted):
        label = queue_label(*queue, several=several)
        known = label in colours and queue in named
        found[queue] = (label if queue[1] else "(no queue)"), colours[label] if known else None
    return found


def _queue(bar: GanttBar) -> tuple[str, str]:
    return bar.row[0], bar.queue


def _lanes(chart: GanttChart) -> Iterator[_Place]:
    """Yield the places of tasks that share nodes: each in the first lane of its row that is free."""
    by_row: dict[Row, list[GanttBar]] = {row: [] for row in chart.rows}
    for bar in chart.bars:
        by_row[bar.row].append(bar)
    for index, bars in enumerate(by_row.values()):
        free: list[int] = []
        busy: list[tuple[int, int]] = []
        lanes = []
        for bar in bars:
            while busy and busy[0][0] <= bar.start:
                heapq.heappush(free, heapq.heappop(busy)[1])
            lane = heapq.heappop(free) if free else len(busy)
            heapq.heappush(busy, (chart.stop if bar.end is None else bar.end, lane))
            lanes.append(lane)
        height = FILLED / (max(lanes, default=0) + 1)
        for bar, lane in zip(bars, lanes, strict=True):
            upper = index + (1 - FILLED) / 2 + lane * height
            yield _Place(bar, upper, upper + height)


def _heights(chart: GanttChart) -> Iterator[_Place]:
    """Yield the places of the times of applications, one after the other in a row."""
    index = {row: number for number, row in enumerate(chart.rows)}
    for bar in chart.bars:
        middle = index[bar.row] + 0.5
        half = 0.0 if bar.kind == WAITING else FILLED / 2
        yield _Place(bar, middle - half, middle + half)


def _draw(axes: Axes, chart: GanttChart, places: list[_Place], styles: Styles) -> None:
    boxes: dict[tuple[Style | None, bool, bool], list[Corners]] = {}
    for place in places:
        bar, style = place.bar, styles[_queue(place.bar)][1]
        left = max(bar.start, chart.start)
        right = max(chart.stop if bar.end is None else min(bar.end, chart.stop), left)
        ends = left / SECOND, right / SECOND
        if bar.kind == WAITING:
            axes.plot(ends, [place.upper] * 2, color=_colour(style), lw=1, solid_capstyle="butt")
            continue
        corners = [(x, y) for x, y in zip((*ends, *ends[::-1]), _sides(place), strict=True)]
        is_narrow = right - left < NARROW * (chart.stop - chart.start)
        boxes.setdefault((style, bar.kind == PLACEHOLDER, is_narrow), []).append(corners)
    for (style, is_pale, is_narrow), corners_of in boxes.items():
        axes.add_collection(_boxes(corners_of, style, is_pale=is_pale, is_narrow=is_narrow))
    _mark_ends(axes, chart, places)


def _boxes(corners: list[Corners], style: Style | None, *, is_pale: bool, is_narrow: bool) -> PolyCollection:
    colour, alpha = _colour(style), PALE if is_pale else None
    if style is not None and style.pattern:
        return PolyCollection(
            corners,
            facecolors="none",
            edgecolors=colour,
            hatch=HATCHES[style.pattern],
            linewidths=0.6,
            alpha=alpha,
        )
    edge = colour if is_pale or is_narrow else "white"
    return PolyCollection(corners, facecolors=colour, edgecolors=edge, linewidths=0.3, alpha=alpha)


def _colour(style: Style | None) -> str:
    return OTHERS if style is None else style.colour


def _sides(place: _Place) -> tuple[float, float, float, float]:
    return place.upper, place.upper, place.lower, place.lower


def _mark_ends(axes: Axes, chart: GanttChart, places: list[_Place]) -> None:
    marked = [
        (place.bar.end / SECOND, (place.upper + place.lower) / 2)
        for place in places
        if place.bar.end is not None and place.bar.end <= chart.stop and _is_marked(place.bar)
    ]
    if marked:
        times, heights = zip(*marked, strict=True)
        axes.scatter(times, heights, marker="x", s=14, linewidths=1.0, color=LIMIT, zorder=3)


def _is_marked(bar: GanttBar) -> bool:
    return bar.ended not in REGULAR


def _legend(bars: list[GanttBar], styles: Styles) -> list[Artist]:
    named = [(label, style) for label, style in styles.values() if style is not None]
    handles: list[Artist] = [Patch(**area(style), label=shorten(label, 30)) for label, style in named]
    grey = [label for label, style in styles.values() if style is None]
    if grey:
        label = grey[0] if len(grey) == 1 else f"{len(grey)} more queues"
        handles.append(Patch(color=OTHERS, label=shorten(label, 30)))
    if any(bar.kind == PLACEHOLDER for bar in bars):
        handles.append(Patch(color=INK, alpha=PALE, label="placeholders (pale)"))
    if any(bar.kind == WAITING for bar in bars):
        handles.append(Line2D([], [], color=INK, lw=1, label="waits (thin)"))
    reasons = sorted({bar.ended for bar in bars if _is_marked(bar)})
    if reasons:
        label = shorten(f"ended early: {', '.join(reasons)}", 60)
        handles.append(Line2D([], [], color=LIMIT, marker="x", ls="", ms=4, label=label))
    return handles
