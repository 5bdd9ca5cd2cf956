"""Plot of the capacity that stood idle while work waited, as a stack of causes. Requires matplotlib."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from yunikorn.reporting.history import History, PartitionHistory
from yunikorn.reporting.idle_capacity import CAUSES
from yunikorn.reporting.mpl import INK, amount_scale, area, paper, shorten, stack, time_scale, top
from yunikorn.reporting.palette import line_style
from yunikorn.reporting.plots import CLUSTER_PLOTS

_STYLES = {cause: line_style(number) for number, cause in enumerate(CAUSES)}
"""A style for each cause, the same in all pictures."""


def plot_idle(history: History) -> Figure | None:
    """Plot the idle capacity of each partition and resource type, stacked by cause; None if there is none."""
    wanted = [
        (each, name)
        for each in history.partitions
        for name in each.capacity
        if any(any(series.get(name, ())) for series in each.idle.values())
    ]
    if not wanted:
        return None
    shown = wanted[:CLUSTER_PLOTS]
    figure, axes = paper(0.9 + 1.9 * len(shown), len(shown), share=True)
    several = len(history.partitions) > 1
    for one, (each, name) in zip(axes, shown, strict=True):
        _stack(one, history, each, name)
        one.set_title(shorten(f"{each.partition}: {name}" if several else name, 60))
    handles = {
        label: handle for one in axes for handle, label in zip(*one.get_legend_handles_labels(), strict=True)
    }
    ordered = [label for label in ("capacity", *CAUSES) if label in handles]
    figure.legend([handles[label] for label in ordered], ordered, loc="outside upper right", ncols=4)
    if len(wanted) > len(shown):
        figure.suptitle(f"{len(shown)} of {len(wanted)} resource types; all are in idle.csv", fontsize=9)
    axes[-1].set_xlabel(f"simulated time ({time_scale(history.edges)[1]})")
    return figure


def _stack(axes: Axes, history: History, each: PartitionHistory, name: str) -> None:
    capacity = each.capacity[name]
    unit, text = amount_scale(name, max(capacity))
    time, _ = time_scale(history.edges)
    edges = [edge / time for edge in history.edges]
    below = [0.0] * history.count
    for cause in CAUSES:
        part = each.idle.get(cause, {}).get(name)
        if part is not None and any(part):
            more = [value / unit for value in part]
            below = stack(axes, edges, below, more, label=cause, **area(_STYLES[cause]))
    whole = [value / unit for value in capacity]
    axes.stairs(whole, edges, baseline=None, color=INK, lw=1.2, label="capacity")
    axes.set_ylim(0, top(whole))
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylabel(text)
