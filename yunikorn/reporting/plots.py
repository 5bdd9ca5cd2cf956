"""Plots of a run: usage of partitions, queues and nodes over time, and waits. Requires matplotlib.

The module does not use matplotlib's global state: figures are created and drawn as independent values.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from matplotlib import colormaps, rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from yunikorn.quantities import VCORE
from yunikorn.reporting.full_report import Curves
from yunikorn.reporting.time_series import History, PartitionHistory, QueueHistory

DPI = 110
WIDTH = 10.0
"""Width of all plots in inches; equal widths align the plots on a page."""

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c6d31", "#5e4fa2")
"""Colours that colour-blind readers can distinguish (after M. Okabe and K. Ito)."""
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


def png(figure: Figure) -> bytes:
    """Return the figure as PNG, without date and program name, so that equal figures give equal files."""
    with io.BytesIO() as file:
        figure.savefig(file, format="png", metadata={"Software": None})
        return file.getvalue()


def empty(what: str) -> Figure:
    """Create a figure with a message instead of a plot."""
    figure, (axes,) = paper(1.6)
    axes.set_axis_off()
    axes.text(0.5, 0.5, what, ha="center", va="center", fontsize=11, color=INK, transform=axes.transAxes)
    return figure


def time_scale(edges: Sequence[float]) -> tuple[float, str]:
    """Return the divisor of seconds for an axis, and the name of its unit."""
    span = max(edges) - min(0.0, min(edges)) if edges else 0.0
    return next((unit, name) for least, unit, name in _TIMES if span >= least)


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


def duration_ticks(largest: float) -> list[float]:
    """Return the ticks of an axis of waiting times, in seconds from one second up."""
    marks = [1, 10, 60, 600, 3_600, 6 * 3_600, 86_400, 7 * 86_400, 30 * 86_400, 365 * 86_400]
    return [mark for mark in marks if mark <= max(largest, 1) * 1.5]


def duration_text(seconds: float) -> str:
    """Return a short duration such as `10 s`, `6 h` or `7 d`."""
    for unit, text in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= unit:
            return f"{seconds / unit:g} {text}"
    return f"{seconds:g} s"


def top(values: Sequence[float], *more: float) -> float:
    """Return the upper end of an axis that starts at 0: slightly above the largest value."""
    largest = max((*values, *more), default=0.0)
    return largest * 1.08 if largest > 0 and math.isfinite(largest) else 1.0


CLUSTER_PLOTS = 8
QUEUE_PLOTS = 12
COLUMNS = 3
ABOVE_EACH_OTHER = 4
"""Maximum number of queue plots that get the full width."""
FAR = 3.0
"""Limits above this multiple of all other values are not drawn, because they would flatten the plot."""


def plot_cluster(history: History) -> Figure:
    """Plot capacity, usage and unusable amount of each partition and resource type."""
    wanted = [(each, name) for each in history.partitions for name in each.capacity]
    if not wanted or not history.count:
        return empty("nothing was submitted, so there is no use to show")
    shown = wanted[:CLUSTER_PLOTS]
    figure, axes = paper(0.6 + 1.9 * len(shown), len(shown), share=True)
    several = len(history.partitions) > 1
    for one, (each, name) in zip(axes, shown, strict=True):
        _cluster(one, history, each, name, several)
    if len(wanted) > len(shown):
        figure.suptitle(
            f"{len(shown)} of {len(wanted)} resource types; all are in utilisation.csv", fontsize=9
        )
    axes[-1].set_xlabel(f"simulated time ({time_scale(history.edges)[1]})")
    return figure


def _cluster(axes: Axes, history: History, each: PartitionHistory, name: str, several: bool) -> None:
    nothing = [0.0] * history.count
    capacity, used = each.capacity[name], each.used.get(name, nothing)
    unusable = each.unusable.get(name, nothing)
    unit, text = amount_scale(name, max(capacity))
    time, _ = time_scale(history.edges)
    edges = [edge / time for edge in history.edges]
    lower = [value / unit for value in used]
    upper = [(value + more) / unit for value, more in zip(used, unusable, strict=True)]
    axes.stairs(lower, edges, fill=True, color=USED, label="used")
    if any(unusable):
        axes.stairs(
            upper,
            edges,
            baseline=lower,
            fill=True,
            color=UNUSABLE,
            alpha=0.75,
            label="free but unusable by waiting tasks",
        )
    axes.stairs(
        [value / unit for value in capacity], edges, baseline=None, color=INK, lw=1.2, label="capacity"
    )
    axes.set_ylim(0, top([value / unit for value in capacity]))
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylabel(text)
    title = name if not several else f"{each.partition}: {name}"
    axes.set_title(shorten(title, 60))
    axes.legend(loc="lower right", bbox_to_anchor=(1, 0.98), ncols=3, borderaxespad=0)


def busiest_type(history: History) -> str:
    """Return the resource type with the highest utilisation, or an empty string without usage."""
    shares: dict[str, tuple[float, float]] = {}
    for each in history.partitions:
        for name, capacity in each.capacity.items():
            used, had = shares.get(name, (0.0, 0.0))
            shares[name] = used + sum(each.used.get(name, ())), had + sum(capacity)
    parts = {name: used / had for name, (used, had) in shares.items() if had and used}
    return max(parts, key=lambda name: (parts[name], name), default="")


def plot_queues(history: History) -> Figure:
    """Plot the leaf queues' usage of the busiest resource type, with guarantees and limits."""
    name = busiest_type(history)
    leaves = [queue for queue in history.queues if queue.is_leaf]
    if not leaves or not history.count or not name:
        return empty("no queue used any resources, so there is no use to show")
    ranked = sorted(leaves, key=lambda queue: -sum(queue.used.get(name, ())))[:QUEUE_PLOTS]
    shown = [queue for queue in leaves if queue in ranked]
    columns = 1 if len(shown) <= ABOVE_EACH_OTHER else COLUMNS
    rows = -(-len(shown) // columns)
    figure, axes = paper(0.9 + 1.9 * rows, rows, columns, share=True)
    unit, text = amount_scale(name, max(max(queue.used.get(name, [0])) for queue in shown))
    several = len(history.partitions) > 1
    for one, queue in zip(axes, shown, strict=False):
        _queue(one, history, queue, name, unit)
        title = f"{queue.partition}: {queue.queue}" if several else queue.queue
        one.set_title(shorten(title, 34 if columns > 1 else 80))
    for spare in axes[len(shown) :]:
        spare.set_axis_off()
    _queue_legend(figure, axes, len(leaves) - len(shown), name)
    figure.supylabel(text, fontsize=9)
    figure.supxlabel(f"simulated time ({time_scale(history.edges)[1]})", fontsize=9)
    return figure


def _queue(axes: Axes, history: History, queue: QueueHistory, name: str, unit: float) -> None:
    time, _ = time_scale(history.edges)
    edges = [edge / time for edge in history.edges]
    used = [value / unit for value in queue.used.get(name, [0.0] * history.count)]
    axes.stairs(used, edges, fill=True, color=USED, label="used")
    guaranteed = [step.guaranteed.get(name, 0) / unit for step in queue.quotas]
    limits = [step.max[name] / unit if name in step.max else None for step in queue.quotas]
    highest = max(*used, *guaranteed)
    times = [max(step.time, history.start) / time for step in queue.quotas] + [edges[-1]]
    seen = [limit for limit in limits if limit is not None and limit <= FAR * highest]
    if any(guaranteed):
        axes.stairs(guaranteed, times, baseline=None, color=GUARANTEED, lw=1.6, ls="--", label="guaranteed")
    if seen:
        drawn = [limit if limit in seen else float("nan") for limit in limits]
        axes.stairs(
            [float("nan") if one is None else one for one in drawn],
            times,
            baseline=None,
            color=LIMIT,
            lw=1.4,
            label="limit",
        )
    elif any(limit is not None for limit in limits):
        axes.text(
            0.98,
            0.94,
            f"limit {max(one for one in limits if one is not None):g} (not drawn)",
            ha="right",
            va="top",
            fontsize=7.5,
            color=LIMIT,
            transform=axes.transAxes,
        )
    axes.set_ylim(0, top(used, *guaranteed, *seen))
    axes.set_xlim(edges[0], edges[-1])


def _queue_legend(figure: Figure, axes: list[Axes], more: int, name: str) -> None:
    handles: dict[str, Artist] = {}
    for one in axes:
        for handle, label in zip(*one.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    title = f"{shorten(name, 40)} by queue"
    if more:
        title += f": the {QUEUE_PLOTS} that used most; {more} more are in queues.csv"
    figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside upper right",
        ncols=3,
        title=title,
        alignment="right",
    )


TYPES = 3
NOTHING = "#e4e4e4"


def plot_nodes(history: History) -> Figure:
    """Plot a heat map per resource type, with nodes (or groups of nodes) in order of registration."""
    nodes = history.nodes
    if not nodes.nodes or not history.count:
        return empty("there were no nodes, so there is no use to show")
    means = {name: _mean(rows) for name, rows in nodes.shares.items()}
    shown = sorted(sorted(means, key=lambda name: (-means[name], name))[:TYPES])
    time, text = time_scale(history.edges)
    edges = [edge / time for edge in history.edges]
    figure, axes = paper(0.7 + 2.3 * len(shown), len(shown), share=True)
    colours = colormaps["viridis"].with_extremes(bad=NOTHING)
    for one, name in zip(axes, shown, strict=True):
        rows = [[math.nan if share is None else share for share in row] for row in nodes.shares[name]]
        borders = [float(min(number * nodes.per_row, nodes.nodes)) for number in range(len(rows) + 1)]
        mesh = one.pcolormesh(edges, borders, rows, cmap=colours, vmin=0, vmax=1, rasterized=True)
        one.set_facecolor(NOTHING)
        one.grid(False)
        one.set_ylim(nodes.nodes, 0)
        one.yaxis.set_major_locator(MaxNLocator(6, integer=True))
        one.set_ylabel("node")
        one.set_title(shorten(name, 60))
        bar = figure.colorbar(mesh, ax=one, pad=0.01, format=FuncFormatter(lambda value, _: f"{value:.0%}"))
        bar.set_label("used")
    merged = f"; each row is {nodes.per_row} nodes" if nodes.per_row > 1 else ""
    more = f"; {len(means) - len(shown)} more resource types are not shown" if len(means) > len(shown) else ""
    axes[-1].set_xlabel(
        f"simulated time ({text}); nodes in order of registration, grey: not registered{merged}{more}"
    )
    return figure


def _mean(rows: list[list[float | None]]) -> float:
    found = [share for row in rows for share in row if share is not None]
    return math.fsum(found) / len(found) if found else 0.0


SHOWN = len(COLOURS)


def plot_lengths(history: History) -> Figure:
    """Plot the number of waiting tasks as a stack of queues."""
    leaves = [queue for queue in history.queues if queue.is_leaf and any(queue.waiting)]
    total = [sum(each.waiting[index] for each in history.partitions) for index in range(history.count)]
    if not any(total):
        return empty("nothing waited" if history.count else "nothing was submitted, so nothing waited")
    ranked = sorted(leaves, key=lambda queue: -sum(queue.waiting))
    time, text = time_scale(history.edges)
    edges = [edge / time for edge in history.edges]
    figure, (axes,) = paper(3.4)
    below = [0.0] * history.count
    several = len(history.partitions) > 1
    for queue, colour in zip(ranked, COLOURS, strict=False):
        above = [one + more for one, more in zip(below, queue.waiting, strict=True)]
        axes.stairs(above, edges, baseline=below, fill=True, color=colour, label=_name(queue, several))
        below = above
    if len(ranked) > SHOWN:
        label = f"{len(ranked) - SHOWN} more queues"
        axes.stairs(total, edges, baseline=below, fill=True, color=OTHERS, label=label)
    axes.set_title("Waiting tasks by queue")
    axes.set_ylabel("tasks")
    axes.set_xlabel(f"simulated time ({text})")
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(0, top(total))
    axes.yaxis.set_major_locator(MaxNLocator(integer=max(total) > 1))
    figure.legend(loc="outside right upper")
    return figure


def _name(queue: QueueHistory, several: bool) -> str:
    return shorten(f"{queue.partition}: {queue.queue}" if several else queue.queue, 30)


def plot_distributions(curves: Curves, what: str = "queues") -> Figure:
    """Plot the cumulative distributions of waits and bounded slowdowns."""
    names = [name for name, waits in curves.waits.items() if waits]
    if not names:
        return empty("no application started all of its tasks, so there are no waits to show")
    shown = sorted(names, key=lambda name: -curves.waits[name][-1])[:SHOWN]
    shown = [name for name in names if name in shown]
    figure, (waits, slowdowns) = paper(3.6, 1, 2)
    for name, colour in zip(shown, COLOURS, strict=False):
        _curve(waits, [max(wait, 1.0) for wait in curves.waits[name]], colour, shorten(name, 30))
        _curve(slowdowns, curves.slowdowns.get(name, []), colour, "")
    longest = max(curves.waits[name][-1] for name in shown)
    ticks = duration_ticks(longest)
    waits.set_xscale("log")
    waits.set_xlim(0.9, max(longest, ticks[-1]) * 1.1)
    waits.xaxis.set_major_locator(FixedLocator(ticks))
    waits.xaxis.set_minor_locator(NullLocator())
    waits.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _first(value)))
    waits.set_title("Wait until the last task started")
    waits.set_xlabel("waited no longer than")
    waits.set_ylabel("share of the applications")
    slowdowns.set_xscale("log")
    slowdowns.set_xlim(left=0.9)
    slowdowns.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    # A range below ten has only one major tick, so the minor ticks get labels.
    worst = max((curves.slowdowns[name][-1] for name in shown if curves.slowdowns.get(name)), default=1.0)
    between = FuncFormatter(lambda value, _: f"{value:g}" if value >= 1 and worst < 10 else "")
    slowdowns.xaxis.set_minor_formatter(between)
    slowdowns.set_title("Bounded slowdown")
    slowdowns.set_xlabel("slowed down no more than (times)")
    for axes in (waits, slowdowns):
        axes.set_ylim(0, 1.02)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))
    more = len(names) - len(shown)
    title = f"{SHOWN} {what} with the\nlongest waits;\n{more} not shown" if more else None
    figure.legend(loc="outside right upper", title=title)
    return figure


def _first(seconds: float) -> str:
    return "≤ 1 s" if seconds <= 1 else duration_text(seconds)


def _curve(axes: Axes, values: list[float], colour: str, label: str) -> None:
    if not values:
        return
    parts = [(index + 1) / len(values) for index in range(len(values))]
    axes.step([values[0], *values], [0.0, *parts], where="post", color=colour, lw=1.6, label=label)
