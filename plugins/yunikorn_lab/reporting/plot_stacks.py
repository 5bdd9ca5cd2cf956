"""Plots of stacks over time: idle capacity by cause, use and waiting tasks by user, waiting tasks by queue.

Requires matplotlib.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from yunikorn.text import number_of
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
