"""Plots of usage over time: of partitions, and of queues with their guarantees and limits."""

from __future__ import annotations

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from yunikorn.reporting.history import History, PartitionHistory, QueueHistory
from yunikorn.reporting.mpl import (
    GUARANTEED,
    INK,
    LIMIT,
    UNUSABLE,
    USED,
    amount_scale,
    empty,
    paper,
    shorten,
    time_scale,
    top,
)

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
