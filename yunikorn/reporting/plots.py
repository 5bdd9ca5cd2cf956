"""Plots of a run: usage of partitions, queues and nodes over time, and waits. Requires matplotlib."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from matplotlib import colormaps
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from yunikorn.reporting.history import History, PartitionHistory, QueueHistory
from yunikorn.reporting.mpl import (
    INK,
    LIMIT,
    NOTHING,
    OTHERS,
    UNUSABLE,
    USED,
    amount_scale,
    area,
    duration_text,
    duration_ticks,
    line,
    paper,
    shorten,
    stack,
    time_scale,
    top,
)
from yunikorn.reporting.palette import LIGHT, QueueColours, Style, line_style
from yunikorn.reporting.run_figures import Curves
from yunikorn.reporting.tables import queue_label

CLUSTER_PLOTS = 8
QUEUE_PLOTS = 12
COLUMNS = 3
ABOVE_EACH_OTHER = 4
"""Maximum number of queue plots that get the full width."""
FAR = 3.0
"""Limits above this multiple of all other values are not drawn, because they would flatten the plot."""


def plot_cluster(history: History) -> Figure | None:
    """Plot capacity, usage and unusable amount of each partition and resource type; None if all are empty."""
    wanted = [(each, name) for each in history.partitions for name in each.capacity]
    if not wanted or not history.count:
        return None
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


def plot_queues(history: History, colours: QueueColours) -> Figure | None:
    """Plot the leaf queues' usage of the busiest type, with guarantees and limits; None if unused."""
    name = busiest_type(history)
    leaves = [queue for queue in history.queues if queue.is_leaf]
    if not leaves or not history.count or not name:
        return None
    ranked = sorted(leaves, key=lambda queue: -sum(queue.used.get(name, ())))[:QUEUE_PLOTS]
    shown = [queue for queue in leaves if queue in ranked]
    columns = 1 if len(shown) <= ABOVE_EACH_OTHER else COLUMNS
    rows = -(-len(shown) // columns)
    figure, axes = paper(0.9 + 1.9 * rows, rows, columns, share=True)
    unit, text = amount_scale(name, max(max(queue.used.get(name, [0])) for queue in shown))
    several = len(history.partitions) > 1
    for one, queue in zip(axes, shown, strict=False):
        label = queue_label(queue.partition, queue.queue, several=several)
        _queue(one, history, queue, name, unit, colours[label])
        one.set_title(shorten(label, 34 if columns > 1 else 80))
    for spare in axes[len(shown) :]:
        spare.set_axis_off()
    _queue_legend(figure, axes, len(leaves) - len(shown), name)
    figure.supylabel(text, fontsize=9)
    figure.supxlabel(f"simulated time ({time_scale(history.edges)[1]})", fontsize=9)
    return figure


def _queue(axes: Axes, history: History, queue: QueueHistory, name: str, unit: float, style: Style) -> None:
    time, _ = time_scale(history.edges)
    edges = [edge / time for edge in history.edges]
    used = [value / unit for value in queue.used.get(name, [0.0] * history.count)]
    axes.stairs(used, edges, label="used", **area(style))
    guaranteed = [step.guaranteed.get(name, 0) / unit for step in queue.quotas]
    limits = [step.max[name] / unit if name in step.max else None for step in queue.quotas]
    highest = max(*used, *guaranteed)
    times = [max(step.time, history.start) / time for step in queue.quotas] + [edges[-1]]
    seen = [limit for limit in limits if limit is not None and limit <= FAR * highest]
    if any(guaranteed):
        axes.stairs(guaranteed, times, baseline=None, color=INK, lw=1.6, ls="--", label="guaranteed")
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
NAMED_ROWS = 16
"""Maximum number of rows of nodes with a name beside them."""


def plot_nodes(history: History) -> Figure | None:
    """Plot a heat map per resource type, with nodes in order of registration; None without nodes."""
    nodes = history.nodes
    if not nodes.nodes or not history.count:
        return None
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
        step = -(-len(rows) // NAMED_ROWS)
        middles = [(low + high) / 2 for low, high in itertools.pairwise(borders)]
        one.set_yticks(middles[::step], [shorten(name, 24) for name in nodes.names[::step]], fontsize=7)
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


SHOWN = len(LIGHT)
"""Maximum number of queues in a plot of several lines or areas."""


def plot_lengths(history: History, colours: QueueColours) -> Figure | None:
    """Plot the number of waiting tasks as a stack of queues; None if nothing waited."""
    leaves = [queue for queue in history.queues if queue.is_leaf and any(queue.waiting)]
    total = [sum(each.waiting[index] for each in history.partitions) for index in range(history.count)]
    if not any(total):
        return None
    ranked = sorted(leaves, key=lambda queue: -sum(queue.waiting))
    time, text = time_scale(history.edges)
    edges = [edge / time for edge in history.edges]
    figure, (axes,) = paper(3.4)
    below = [0.0] * history.count
    several = len(history.partitions) > 1
    for queue in ranked[:SHOWN]:
        label = queue_label(queue.partition, queue.queue, several=several)
        below = stack(axes, edges, below, queue.waiting, label=shorten(label, 30), **area(colours[label]))
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


def plot_distributions(
    curves: Curves, colours: QueueColours | None = None, what: str = "queues"
) -> Figure | None:
    """Plot the cumulative distributions of waits and bounded slowdowns; None if there is nothing to see.

    Without applications that finished there are no slowdowns. Lines have the style of their queue in
    `colours`, or styles in their order.
    """
    names = [name for name, waits in curves.waits.items() if waits]
    if not names:
        return None
    shown = sorted(names, key=lambda name: -curves.waits[name][-1])[:SHOWN]
    shown = [name for name in names if name in shown]
    styles = {name: line_style(number) for number, name in enumerate(curves.waits)}
    drawn = [(name, colours[name] if colours is not None else styles[name]) for name in shown]
    has_slowdowns = any(curves.slowdowns.get(name) for name in shown)
    if not has_slowdowns and all(curves.waits[name][-1] <= 1 for name in shown):
        return None
    figure, axes = paper(3.6, 1, 2 if has_slowdowns else 1)
    _wait_curves(axes[0], curves, drawn)
    if has_slowdowns:
        _slowdown_curves(axes[1], curves, drawn)
    for one in axes:
        one.set_ylim(0, 1.02)
        one.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))
    more = len(names) - len(shown)
    title = f"{SHOWN} {what} with the\nlongest waits;\n{more} not shown" if more else None
    figure.legend(loc="outside right upper", title=title)
    return figure


def _wait_curves(axes: Axes, curves: Curves, drawn: Sequence[tuple[str, Style]]) -> None:
    for name, style in drawn:
        _curve(axes, [max(wait, 1.0) for wait in curves.waits[name]], style, shorten(name, 30))
    longest = max(curves.waits[name][-1] for name, _ in drawn)
    ticks = duration_ticks(longest)
    axes.set_xscale("log")
    axes.set_xlim(0.9, max(longest, ticks[-1]) * 1.1)
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _first(value)))
    axes.set_title("Wait until the last task started")
    axes.set_xlabel("waited no longer than")
    axes.set_ylabel("share of the applications")


def _slowdown_curves(axes: Axes, curves: Curves, drawn: Sequence[tuple[str, Style]]) -> None:
    for name, style in drawn:
        _curve(axes, curves.slowdowns.get(name, []), style, "")
    axes.set_xscale("log")
    axes.set_xlim(left=0.9)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    # A range below ten has only one major tick, so the minor ticks get labels.
    worst = max((curves.slowdowns[name][-1] for name, _ in drawn if curves.slowdowns.get(name)), default=1.0)
    between = FuncFormatter(lambda value, _: f"{value:g}" if value >= 1 and worst < 10 else "")
    axes.xaxis.set_minor_formatter(between)
    axes.set_title("Bounded slowdown")
    axes.set_xlabel("slowed down no more than (times)")


def _first(seconds: float) -> str:
    return "≤ 1 s" if seconds <= 1 else duration_text(seconds)


def _curve(axes: Axes, values: list[float], style: Style, label: str) -> None:
    if not values:
        return
    parts = [(index + 1) / len(values) for index in range(len(values))]
    axes.step([values[0], *values], [0.0, *parts], where="post", label=label, **line(style))
