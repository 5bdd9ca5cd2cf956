"""Plots of the use of partitions, queues and nodes over time. Requires matplotlib."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

from matplotlib import colormaps
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from yunikorn_lab.reporting.mpl import (
    INK,
    LIMIT,
    NOTHING,
    UNUSABLE,
    USED,
    amount_scale,
    area,
    capacity_line,
    paper,
    shorten,
    steps,
    top,
)
from yunikorn_lab.reporting.palette import QueueColours, Style
from yunikorn_lab.reporting.run_history import PartitionHistory, QueueHistory, RunHistory
from yunikorn_lab.reporting.time_axes import label_times

CLUSTER_PLOTS = 8
QUEUE_PLOTS = 12
COLUMNS = 3
ABOVE_EACH_OTHER = 4
"""Maximum number of queue plots that get the full width."""
FAR = 3.0
"""Limits above this multiple of all other values are not drawn, because they would flatten the plot."""


def plot_cluster(history: RunHistory) -> Figure | None:
    """Plot capacity, usage and unusable amount of each partition and resource type; None if all are empty."""
    wanted = [(each, name) for each in history.partitions for name in each.capacity]
    if not wanted or not history.count:
        return None
    figure, axes = plot_types(history, wanted, _cluster, 0.6, "utilisation.csv")
    for one in axes:
        one.legend(loc="lower right", bbox_to_anchor=(1, 0.98), ncols=3, borderaxespad=0)
    return figure


def plot_types(
    history: RunHistory,
    wanted: Sequence[tuple[PartitionHistory, str]],
    draw: Callable[[Axes, Sequence[float], PartitionHistory, str], None],
    margin: float,
    file: str,
) -> tuple[Figure, list[Axes]]:
    """Plot resource types of partitions below each other; `file` has those that are too many.

    `draw` receives axes, times, partition and type. `margin` is the height around the plots (inches).
    """
    shown = wanted[:CLUSTER_PLOTS]
    figure, axes = paper(margin + 1.9 * len(shown), len(shown), share=True)
    for one, (each, name) in zip(axes, shown, strict=True):
        draw(one, history.edges, each, name)
        one.set_title(shorten(history.label(each.partition, name), 60))
    if len(wanted) > len(shown):
        figure.suptitle(f"{len(shown)} of {len(wanted)} resource types; all are in {file}", fontsize=9)
    axes[-1].set_xlabel(label_times(axes[-1], history.start, history.end, history.origin))
    return figure, axes


def _cluster(axes: Axes, edges: Sequence[float], each: PartitionHistory, name: str) -> None:
    capacity = each.capacity[name]
    nothing = [0.0] * len(capacity)
    used, unusable = each.used.get(name, nothing), each.unusable.get(name, nothing)
    unit, text = amount_scale(name, max(capacity))
    lower = [value / unit for value in used]
    steps(axes, lower, edges, fill=True, color=USED, label="used")
    if any(unusable):
        upper = [(value + more) / unit for value, more in zip(used, unusable, strict=True)]
        label = "free but unusable by waiting tasks"
        steps(axes, upper, edges, baseline=lower, fill=True, color=UNUSABLE, alpha=0.75, label=label)
    capacity_line(axes, edges, [value / unit for value in capacity], text)


def busiest_type(history: RunHistory) -> str:
    """Return the resource type with the highest utilisation, or an empty string without usage."""
    shares: dict[str, tuple[float, float]] = {}
    for each in history.partitions:
        for name, capacity in each.capacity.items():
            used, had = shares.get(name, (0.0, 0.0))
            shares[name] = used + sum(each.used.get(name, ())), had + sum(capacity)
    parts = {name: used / had for name, (used, had) in shares.items() if had and used}
    return max(parts, key=lambda name: (parts[name], name), default="")


def plot_queues(history: RunHistory, colours: QueueColours, name: str = "") -> Figure | None:
    """Plot the leaf queues' usage of a type, with guarantees and limits; None if unused.

    The type is the busiest one by default.
    """
    name = name or busiest_type(history)
    leaves = [queue for queue in history.queues if queue.is_leaf]
    if not leaves or not history.count or not name:
        return None
    ranked = sorted(leaves, key=lambda queue: -sum(queue.used.get(name, ())))[:QUEUE_PLOTS]
    shown = [queue for queue in leaves if queue in ranked]
    columns = 1 if len(shown) <= ABOVE_EACH_OTHER else COLUMNS
    rows = -(-len(shown) // columns)
    figure, axes = paper(0.9 + 1.9 * rows, rows, columns, share=True)
    unit, text = amount_scale(name, max(max(queue.used.get(name, [0])) for queue in shown))
    for one, queue in zip(axes, shown, strict=False):
        label = history.label(queue.partition, queue.queue)
        _queue(one, history, queue, name, unit, colours[label])
        one.set_title(shorten(label, 34 if columns > 1 else 80))
    time = label_times(axes[-1], history.start, history.end, history.origin, columns=columns)
    for spare in axes[len(shown) :]:
        spare.set_axis_off()
    _queue_legend(figure, axes, len(leaves) - len(shown), name)
    figure.supylabel(text, fontsize=9)
    figure.supxlabel(time, fontsize=9)
    return figure


def _queue(
    axes: Axes, history: RunHistory, queue: QueueHistory, name: str, unit: float, style: Style
) -> None:
    edges = history.edges
    used = [value / unit for value in queue.used.get(name, [0.0] * history.count)]
    steps(axes, used, edges, label="used", **area(style))
    guaranteed = [step.guaranteed.get(name, 0) / unit for step in queue.quotas]
    limits = [step.max[name] / unit if name in step.max else None for step in queue.quotas]
    highest = max(*used, *guaranteed)
    times = [max(step.time, history.start) for step in queue.quotas] + [edges[-1]]
    seen = [limit for limit in limits if limit is not None and limit <= FAR * highest]
    if any(guaranteed):
        steps(axes, guaranteed, times, baseline=None, color=INK, lw=1.6, ls="--", label="guaranteed")
    if seen:
        drawn = [math.nan if limit is None or limit not in seen else limit for limit in limits]
        steps(axes, drawn, times, baseline=None, color=LIMIT, lw=1.4, label="limit")
    elif any(limit is not None for limit in limits):
        text = f"limit {max(one for one in limits if one is not None):g} (not drawn)"
        right_top = {"ha": "right", "va": "top"}
        axes.text(0.98, 0.94, text, right_top, fontsize=7.5, color=LIMIT, transform=axes.transAxes)
    axes.set_ylim(0, top(used, *guaranteed, *seen))


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


def plot_nodes(history: RunHistory) -> Figure | None:
    """Plot a heat map per resource type, with nodes in order of registration; None without nodes."""
    nodes = history.nodes
    if not nodes.nodes or not history.count:
        return None
    means = {name: _mean(rows) for name, rows in nodes.shares.items()}
    shown = sorted(sorted(means, key=lambda name: (-means[name], name))[:TYPES])
    figure, axes = paper(0.7 + 2.3 * len(shown), len(shown), share=True)
    colours = colormaps["viridis"].with_extremes(bad=NOTHING)
    for one, name in zip(axes, shown, strict=True):
        rows = [[math.nan if share is None else share for share in row] for row in nodes.shares[name]]
        borders = [float(min(number * nodes.per_row, nodes.nodes)) for number in range(len(rows) + 1)]
        mesh = one.pcolormesh(history.edges, borders, rows, cmap=colours, vmin=0, vmax=1, rasterized=True)
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
    text = label_times(axes[-1], history.start, history.end, history.origin)
    axes[-1].set_xlabel(f"{text}; nodes in order of registration, grey: not registered{merged}{more}")
    return figure


def _mean(rows: list[list[float | None]]) -> float:
    found = [share for row in rows for share in row if share is not None]
    return math.fsum(found) / len(found) if found else 0.0
