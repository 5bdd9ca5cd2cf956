"""Plots of waiting tasks over time, and of the distributions of applications' waits."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from yunikorn.reporting.figures import Curves
from yunikorn.reporting.history import History, QueueHistory
from yunikorn.reporting.mpl import (
    COLOURS,
    OTHERS,
    duration_text,
    duration_ticks,
    empty,
    paper,
    shorten,
    time_scale,
    top,
)

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
