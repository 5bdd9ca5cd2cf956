"""Plots of the use of partitions, queues and nodes over time. Requires matplotlib.

Plots of stacks over time: idle capacity by cause, use and waiting tasks by user, waiting tasks by queue.

Requires matplotlib.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence

from matplotlib import colormaps
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from yunikorn.text import number_of
from yunikorn_lab.reporting.idle_capacity import CAUSES
from yunikorn_lab.reporting.mpl import (
    INK,
    LIMIT,
    NOTHING,
    OTHERS,
    UNUSABLE,
    USED,
    amount_scale,
    area,
    capacity_line,
    label_times,
    paper,
    shorten,
    stack,
    steps,
    top,
)
from yunikorn_lab.reporting.palette import LIGHT, QueueColours, Style, line_style
from yunikorn_lab.reporting.run_history import PartitionHistory, QueueHistory, RunHistory, UserHistory

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


QUEUES = len(LIGHT)
"""Maximum number of queues in a stack."""


def plot_idle(history: RunHistory) -> Figure | None:
    """Plot the idle capacity of each partition and resource type, stacked by cause; None if there is none."""
    wanted = [
        (each, name)
        for each in history.partitions
        for name in each.capacity
        if any(any(series.get(name, ())) for series in each.idle.values())
    ]
    if not wanted:
        return None
    # Causes of a history of a real scheduler have other names; each cause has one style in all pictures.
    found = {cause for each in history.partitions for cause in each.idle}
    causes = [*CAUSES, *sorted(found.difference(CAUSES))]

    def stack_causes(axes: Axes, edges: Sequence[float], each: PartitionHistory, name: str) -> None:
        _stack_causes(axes, edges, each, name, causes)

    figure, axes = plot_types(history, wanted, stack_causes, 0.9, "idle.csv")
    handles = {
        label: handle for one in axes for handle, label in zip(*one.get_legend_handles_labels(), strict=True)
    }
    ordered = [label for label in ("capacity", *causes) if label in handles]
    figure.legend([handles[label] for label in ordered], ordered, loc="outside upper right", ncols=4)
    return figure


def _stack_causes(
    axes: Axes, edges: Sequence[float], each: PartitionHistory, name: str, causes: Sequence[str]
) -> None:
    capacity = each.capacity[name]
    unit, text = amount_scale(name, max(capacity))
    below = [0.0] * len(capacity)
    for number, cause in enumerate(causes):
        part = each.idle.get(cause, {}).get(name)
        if part is not None and any(part):
            more = [value / unit for value in part]
            below = stack(axes, edges, below, more, label=cause, **area(line_style(number)))
    capacity_line(axes, edges, [value / unit for value in capacity], text)


def plot_users(history: RunHistory) -> Figure | None:
    """Plot use of the busiest type, and waiting tasks, as stacks of users; None without several users."""
    name = busiest_type(history)
    if not history.users or not history.count or not name:
        return None
    figure, (use, waiting) = paper(5.6, 2, share=True)
    _stack_use(use, history, name, "user")
    highest = _stack_users(waiting, history.edges, history.users, [user.waiting for user in history.users])
    _label_waiting_tasks(waiting, history, highest, "user")
    handles, labels = use.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper")
    return figure


def plot_groups(history: RunHistory, name: str, of: str, title: str, colours: QueueColours) -> Figure:
    """Plot the use of a resource type as a stack of groups, which are the users of the series."""
    figure, (axes,) = paper(3.6)
    _stack_use(axes, history, name, of, colours)
    axes.set_title(title)
    axes.set_xlabel(label_times(axes, history.start, history.end, history.origin))
    figure.legend(loc="outside right upper")
    return figure


def _stack_use(
    axes: Axes, history: RunHistory, name: str, of: str, colours: QueueColours | None = None
) -> None:
    """Draw the use of a resource type by users, below the capacity of all partitions if that is known."""
    nothing = [0.0] * history.count
    capacity = [
        sum(each.capacity.get(name, nothing)[index] for each in history.partitions)
        for index in range(history.count)
    ]
    users = [user.used.get(name, nothing) for user in history.users]
    unit, text = amount_scale(name, max(capacity) or max(map(sum, zip(*users, strict=True)), default=0.0))
    used = [[value / unit for value in values] for values in users]
    total = _stack_users(axes, history.edges, history.users, used, of, colours)
    if any(capacity):
        capacity_line(axes, history.edges, [value / unit for value in capacity], text)
    else:
        axes.set_ylim(0, top(total))
        axes.set_ylabel(text)
    axes.set_title(f"Use of {shorten(name, 40)}{f' by {shorten(of, 40)}' if of else ''}")


def _stack_users(
    axes: Axes,
    edges: Sequence[float],
    users: Iterable[UserHistory],
    values: Iterable[Sequence[float]],
    noun: str = "user",
    colours: QueueColours | None = None,
) -> list[float]:
    """Draw the values of the users above each other, queues in their colours; returns their sums."""
    below = [0.0] * (len(edges) - 1)
    for number, (user, more) in enumerate(zip(users, values, strict=True)):
        if user.user:
            is_queue = colours is not None and user.user in colours
            style = colours[user.user] if colours is not None and is_queue else line_style(number)
            below = stack(axes, edges, below, more, label=shorten(user.user, 24), **area(style))
        else:
            label = number_of(user.users, f"more {noun}")
            below = stack(axes, edges, below, more, fill=True, color=OTHERS, label=label)
    return below


def plot_lengths(history: RunHistory, colours: QueueColours) -> Figure | None:
    """Plot the number of waiting tasks as a stack of queues; None if nothing waited."""
    leaves = [queue for queue in history.queues if queue.is_leaf and any(queue.waiting)]
    total = [sum(each.waiting[index] for each in history.partitions) for index in range(history.count)]
    if not any(total):
        return None
    ranked = sorted(leaves, key=lambda queue: -sum(queue.waiting))
    edges = history.edges
    figure, (axes,) = paper(3.4)
    below = [0.0] * history.count
    for queue in ranked[:QUEUES]:
        label = history.label(queue.partition, queue.queue)
        below = stack(axes, edges, below, queue.waiting, label=shorten(label, 30), **area(colours[label]))
    if len(ranked) > QUEUES:
        label = f"{len(ranked) - QUEUES} more queues"
        steps(axes, total, edges, baseline=below, fill=True, color=OTHERS, label=label)
    _label_waiting_tasks(axes, history, total, "queue")
    figure.legend(loc="outside right upper")
    return figure


def _label_waiting_tasks(axes: Axes, history: RunHistory, heights: Sequence[float], of: str) -> None:
    axes.set_title(f"Waiting tasks by {of}")
    axes.set_ylabel("tasks")
    axes.set_xlabel(label_times(axes, history.start, history.end, history.origin))
    axes.set_ylim(0, top(heights))
    axes.yaxis.set_major_locator(MaxNLocator(integer=max(heights) > 1))
