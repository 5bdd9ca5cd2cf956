"""Plots of stacks over time: idle capacity by cause, use and waiting tasks by user, waiting tasks by queue.

Requires matplotlib.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from yunikorn_lab.reporting.idle_capacity import CAUSES
from yunikorn_lab.reporting.mpl import (
    OTHERS,
    amount_scale,
    area,
    capacity_line,
    paper,
    shorten,
    stack,
    steps,
    top,
)
from yunikorn_lab.reporting.palette import LIGHT, QueueColours, line_style
from yunikorn_lab.reporting.plots import busiest_type, plot_types
from yunikorn_lab.reporting.run_history import PartitionHistory, RunHistory, UserHistory
from yunikorn_lab.reporting.time_axes import label_times

_STYLES = {cause: line_style(number) for number, cause in enumerate(CAUSES)}
"""A style for each cause, the same in all pictures."""
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
    figure, axes = plot_types(history, wanted, _stack_causes, 0.9, "idle.csv")
    handles = {
        label: handle for one in axes for handle, label in zip(*one.get_legend_handles_labels(), strict=True)
    }
    ordered = [label for label in ("capacity", *CAUSES) if label in handles]
    figure.legend([handles[label] for label in ordered], ordered, loc="outside upper right", ncols=4)
    return figure


def _stack_causes(axes: Axes, edges: Sequence[float], each: PartitionHistory, name: str) -> None:
    capacity = each.capacity[name]
    unit, text = amount_scale(name, max(capacity))
    below = [0.0] * len(capacity)
    for cause in CAUSES:
        part = each.idle.get(cause, {}).get(name)
        if part is not None and any(part):
            more = [value / unit for value in part]
            below = stack(axes, edges, below, more, label=cause, **area(_STYLES[cause]))
    capacity_line(axes, edges, [value / unit for value in capacity], text)


def plot_users(history: RunHistory) -> Figure | None:
    """Plot use of the busiest type, and waiting tasks, as stacks of users; None without several users."""
    name = busiest_type(history)
    if not history.users or not history.count or not name:
        return None
    nothing = [0.0] * history.count
    capacity = [
        sum(each.capacity.get(name, nothing)[index] for each in history.partitions)
        for index in range(history.count)
    ]
    unit, text = amount_scale(name, max(capacity))
    figure, (use, waiting) = paper(5.6, 2, share=True)
    edges = history.edges
    used = [[value / unit for value in user.used.get(name, nothing)] for user in history.users]
    _stack_users(use, edges, history.users, used)
    capacity_line(use, edges, [value / unit for value in capacity], text)
    use.set_title(f"Use of {shorten(name, 40)} by user")
    highest = _stack_users(waiting, edges, history.users, [user.waiting for user in history.users])
    _label_waiting_tasks(waiting, history, highest, "user")
    handles, labels = use.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper")
    return figure


def _stack_users(
    axes: Axes, edges: Sequence[float], users: Iterable[UserHistory], values: Iterable[Sequence[float]]
) -> list[float]:
    """Draw the values of the users above each other; returns their sums."""
    below = [0.0] * (len(edges) - 1)
    for number, (user, more) in enumerate(zip(users, values, strict=True)):
        if user.user:
            label = shorten(user.user, 24)
            below = stack(axes, edges, below, more, label=label, **area(line_style(number)))
        else:
            label = f"{user.users} more users" if user.users > 1 else "1 more user"
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
