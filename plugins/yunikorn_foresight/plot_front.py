"""Picture of a sweep with two objectives: all points, and the Pareto front. Requires matplotlib."""

from __future__ import annotations

import math
from collections.abc import Callable

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import to_rgb
from matplotlib.ticker import FuncFormatter

from yunikorn_foresight.sweep_result import Objective, SweepResult, SweptPoint
from yunikorn_lab.reporting.assertion_figures import FigureUnit
from yunikorn_lab.reporting.mpl import INK, OTHERS, USED, label_durations, paper, png, shorten, styled

HEIGHT = 5.5
"""Height of the picture (inches)."""
NAMED = 12
"""Number of points of the front whose settings are listed."""
TICKS = 6
"""Maximum number of steps between ticks of durations."""


def front_picture(result: SweepResult) -> bytes | None:
    """Return the picture as PNG; None without two points that have both figures."""
    both = first, second = result.objectives[0], result.objectives[1]
    shown = [one for one in result.ranked if None not in [_place(one, each) for each in both]]
    if len(shown) < 2:
        return None
    with styled():
        figure, (axes,) = paper(HEIGHT)
        front = [one for one in result.front if one in shown]
        _points(axes, [one for one in shown if one not in front], first, second, OTHERS, "other points")
        _points(axes, front, first, second, USED, "Pareto front")
        _mark_unchanged(axes, result, shown, first, second)
        _name(axes, front[:NAMED], first, second)
        for low, limit in ((axes.get_xlim()[0], axes.set_xlim), (axes.get_ylim()[0], axes.set_ylim)):
            if low < 0 <= min(_place(one, each) or 0.0 for one in shown for each in both):
                limit(0)
        axes.set_xlabel(_label(first))
        axes.set_ylabel(_label(second))
        _scale(axes.xaxis, axes.get_xlim, first)
        _scale(axes.yaxis, axes.get_ylim, second)
        axes.set_title(f"{len(shown)} points; bars: 95 % confidence intervals over the runs")
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0)
        return png(figure)


def _place(one: SweptPoint, objective: Objective) -> float | None:
    found = one.mean(objective.name)
    return None if found is None or math.isinf(found.mean) else found.mean


def _points(
    axes: Axes, points: list[SweptPoint], first: Objective, second: Objective, colour: str, label: str
) -> None:
    if not points:
        return
    found = [(one.mean(first.name), one.mean(second.name)) for one in points]
    axes.errorbar(
        [a.mean for a, _ in found if a],
        [b.mean for _, b in found if b],
        xerr=[a.half or 0.0 for a, _ in found if a],
        yerr=[b.half or 0.0 for _, b in found if b],
        fmt="o",
        ms=5,
        lw=0,
        elinewidth=0.6,
        ecolor=(*to_rgb(colour), 0.4),
        color=colour,
        label=label,
    )


def _name(axes: Axes, front: list[SweptPoint], first: Objective, second: Objective) -> None:
    """Number the points of the front, and list their settings beside the picture."""
    for number, one in enumerate(front, 1):
        place = (_place(one, first) or 0.0, _place(one, second) or 0.0)
        axes.annotate(
            str(number), place, xytext=(4, 4), textcoords="offset points", fontsize=8, weight="bold"
        )
    names = [f"{number}  {shorten(one.point.name, 34)}" for number, one in enumerate(front, 1)]
    axes.text(1.02, 0.78, "\n".join(names), transform=axes.transAxes, va="top", fontsize=8, linespacing=1.6)


def _mark_unchanged(
    axes: Axes, result: SweepResult, shown: list[SweptPoint], first: Objective, second: Objective
) -> None:
    one = result.points[0]
    if one in shown:
        place = [_place(one, first) or 0.0], [_place(one, second) or 0.0]
        axes.plot(*place, ls="", marker="s", ms=10, mfc="none", mec=INK, label="unchanged configuration")


def _label(objective: Objective) -> str:
    return f"{shorten(objective.name, 60)} ({'larger' if objective.is_maximised else 'smaller'} is better)"


def _scale(axis: Axis, limits: Callable[[], tuple[float, float]], objective: Objective) -> None:
    unit = objective.figure.definition.unit
    if unit is FigureUnit.TIME:
        label_durations(axis, *limits(), TICKS)
    elif unit is FigureUnit.SHARE:
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))
