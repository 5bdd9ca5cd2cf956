"""Plots of waits and slowdowns as cumulative distributions. Requires matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from yunikorn_lab.reporting.calibration import CalibrationCurves
from yunikorn_lab.reporting.mpl import INK, USED, different_curves, line, paper, short_duration, wide_ticks
from yunikorn_lab.reporting.palette import LIGHT, QueueColours, Style, line_style
from yunikorn_lab.reporting.run_figures import Curves

SHOWN = len(LIGHT)
"""Maximum number of lines."""


def plot_distributions(
    curves: Curves, colours: QueueColours | None = None, what: str = "queues", until: str = "last"
) -> Figure | None:
    """Plot the cumulative distributions of waits and bounded slowdowns; None if there is nothing to see.

    The waits are until the `last` or the `first` task started. Without applications that finished there are
    no slowdowns. Lines have the style of their queue in
    `colours`, or styles in their order.
    """
    names = [name for name, waits in curves.waits.items() if waits]
    if not names:
        return None
    shown = sorted(names, key=lambda name: -curves.waits[name][-1])[:SHOWN]
    shown = [name for name in names if name in shown]
    styles = {name: line_style(number) for number, name in enumerate(curves.waits)}
    pairs = [(curves.waits[name], curves.slowdowns.get(name)) for name in shown]
    drawn = [
        (shown[number], label, colours[shown[number]] if colours is not None else styles[shown[number]])
        for number, label in different_curves(shown, pairs)
    ]
    has_slowdowns = any(curves.slowdowns.get(name) for name in shown)
    if not has_slowdowns and all(curves.waits[name][-1] <= 1 for name in shown):
        return None
    figure, axes = paper(3.6, 1, 2 if has_slowdowns else 1)
    for name, label, style in drawn:
        _draw_waits(axes[0], curves.waits[name], label=label, **line(style))
    longest = max(curves.waits[name][-1] for name in shown)
    _label_waits(axes[0], f"Wait until the {until} task started", longest)
    if has_slowdowns:
        _plot_slowdowns(axes[1], curves, [(name, style) for name, _, style in drawn])
    for one in axes:
        _label_shares(one)
    more = len(names) - len(shown)
    title = f"{SHOWN} {what} with the\nlongest waits;\n{more} not shown" if more else None
    figure.legend(loc="outside right upper", title=title)
    return figure


def plot_calibration(curves: CalibrationCurves) -> Figure:
    """Plot simulated and recorded waits over each other."""
    figure, (axes,) = paper(3.6)
    _draw_waits(axes, curves.recorded, label="recorded", color=INK, lw=1.8)
    _draw_waits(axes, curves.simulated, label="simulated", color=USED, lw=1.8)
    _label_waits(axes, "Recorded and simulated waits", max(curves.recorded[-1], curves.simulated[-1]))
    _label_shares(axes)
    figure.legend(loc="outside right upper")
    return figure


def _draw_waits(axes: Axes, waits: Sequence[float], **options: Any) -> None:
    _draw(axes, [max(wait, 1.0) for wait in waits], **options)


def _draw(axes: Axes, values: Sequence[float], **options: Any) -> None:
    parts = [(index + 1) / len(values) for index in range(len(values))]
    axes.step([values[0], *values], [0.0, *parts], where="post", **options)


def _label_waits(axes: Axes, title: str, longest: float) -> None:
    """Scale and label the axes of waits, logarithmic from one second up."""
    ticks = wide_ticks(longest)
    axes.set_xscale("log")
    axes.set_xlim(0.9, max(longest, ticks[-1]) * 1.1)
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    first = FuncFormatter(lambda value, _: "≤ 1s" if value <= 1 else short_duration(value))
    axes.xaxis.set_major_formatter(first)
    axes.set_title(title)
    axes.set_xlabel("waited no longer than")
    axes.set_ylabel("share of the applications")


def _label_shares(axes: Axes) -> None:
    axes.set_ylim(0, 1.02)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))


def _plot_slowdowns(axes: Axes, curves: Curves, drawn: Sequence[tuple[str, Style]]) -> None:
    found = [(slowdowns, style) for name, style in drawn if (slowdowns := curves.slowdowns.get(name))]
    for slowdowns, style in found:
        _draw(axes, slowdowns, label="", **line(style))
    axes.set_xscale("log")
    axes.set_xlim(left=0.9)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    # A range below ten has only one major tick, so the minor ticks get labels.
    worst = max(slowdowns[-1] for slowdowns, _ in found)
    between = FuncFormatter(lambda value, _: f"{value:g}" if value >= 1 and worst < 10 else "")
    axes.xaxis.set_minor_formatter(between)
    axes.set_title("Bounded slowdown")
    axes.set_xlabel("slowed down no more than (times)")
