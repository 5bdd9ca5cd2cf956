"""Plot of figures over the values of a setting, with their range over the seeds. Requires matplotlib."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from yunikorn_lab.reporting.mpl import (
    INK,
    amount_scale,
    label_durations,
    paper,
    short_duration,
    shorten,
    top,
    wide_ticks,
)
from yunikorn_lab.reporting.palette import DASHES, Dashes, QueueColours, line_style
from yunikorn_lab.reporting.setting_curves import (
    AMOUNT,
    APPLICATIONS,
    DURATION,
    PERCENTAGE,
    TOTALS,
    USE,
    CurveFigure,
    SettingCurve,
)

FAR = 20
"""Ratio of the largest lines of a panel from which the axis of waits is logarithmic."""
TICKS = 5
"""Maximum number of steps between ticks of an axis of durations."""
HEIGHT = 2.7
"""Height of a row of panels (inches)."""
_PANELS = ("Wait until the first task started", "The same by queue, mean", "Mean use", "Counts")


def plot_curve(curve: SettingCurve, colours: QueueColours) -> Figure:
    """Plot waits, waits by queue, use and counts, each with a line per figure and the band of the seeds."""
    panels = _panels(curve.figures)
    unit, text = _scale(curve)
    numbers = [number / unit for number in curve.numbers]
    figure, axes = paper(0.4 + HEIGHT * ((len(panels) + 1) // 2), (len(panels) + 1) // 2, 2)
    for one, (title, figures) in zip(axes, panels, strict=False):
        one.set_title(title)
        _label_values(one, title, figures)
        for number, each in enumerate(figures):
            _plot(one, numbers, each, _style(each, number, colours))
        one.legend(loc="best")
        one.set_xlabel(text)
        if curve.numeric.kind == DURATION:
            label_durations(one.xaxis, *one.get_xlim(), TICKS)
    for one in axes[len(panels) :]:
        one.set_axis_off()
    return figure


def _panels(figures: Sequence[CurveFigure]) -> list[tuple[str, list[CurveFigure]]]:
    found: dict[str, list[CurveFigure]] = {title: [] for title in _PANELS}
    for figure in figures:
        if figure.section == APPLICATIONS:
            place = 0
        elif figure.section != TOTALS:
            place = 1
        else:
            place = 2 if figure.name.startswith(USE) else 3
        found[_PANELS[place]].append(figure)
    return [(title, group) for title, group in found.items() if group]


def _scale(curve: SettingCurve) -> tuple[float, str]:
    """Return the divisor of the numbers of a curve for the axis, and its label."""
    name = shorten(curve.setting, 50)
    numeric = curve.numeric
    if numeric.kind == AMOUNT:
        unit, text = amount_scale(numeric.resource_type, max(curve.numbers))
        return unit, f"{name} ({text})"
    return 1, f"{name} (%)" if numeric.kind == PERCENTAGE else name


def _label_values(axes: Axes, title: str, figures: Sequence[CurveFigure]) -> None:
    """Scale and label the vertical axis."""
    highest = [band.high for figure in figures for band in figure.bands if band is not None]
    if title == _PANELS[2]:
        axes.set_ylim(0, 1.05)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))
        return
    if title == _PANELS[3]:
        axes.set_ylim(0, top(highest))
        axes.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
        return
    if _are_far_apart(figures):
        axes.set_yscale("symlog", linthresh=1, linscale=0.3)
        axes.set_ylim(0, max(highest) * 1.5)
        axes.yaxis.set_major_locator(FixedLocator([0, *wide_ticks(max(highest))]))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short_duration(value)))
        return
    axes.set_ylim(0, top(highest))
    label_durations(axes.yaxis, *axes.get_ylim(), TICKS)


def _are_far_apart(figures: Sequence[CurveFigure]) -> bool:
    """Return True if one line would hide in the lower end of a linear axis."""
    tops = [max((band.high for band in figure.bands if band is not None), default=0) for figure in figures]
    positive = [one for one in tops if one > 0]
    return bool(positive) and max(positive) > FAR * min(positive) and max(positive) > FAR


def _style(figure: CurveFigure, number: int, colours: QueueColours) -> tuple[str, Dashes]:
    """Return the colour and dashes of a figure: those of its queue, or dashes by its number."""
    if figure.section in (APPLICATIONS, TOTALS):
        return INK, DASHES[number % len(DASHES)]
    style = colours[figure.section] if figure.section in colours else line_style(number)
    return style.colour, DASHES[style.pattern]


def _plot(axes: Axes, numbers: Sequence[float], figure: CurveFigure, style: tuple[str, Dashes]) -> None:
    """Draw the line of the means and the band from the lowest to the highest value."""
    known = [(at, band) for at, band in zip(numbers, figure.bands, strict=True) if band is not None]
    places = [at for at, _ in known]
    is_queue = figure.section not in (APPLICATIONS, TOTALS)
    colour, dashes = style
    axes.fill_between(
        places,
        [band.low for _, band in known],
        [band.high for _, band in known],
        color=colour,
        alpha=0.2,
        lw=0,
    )
    label = figure.section if is_queue else figure.name
    means = [band.mean for _, band in known]
    axes.plot(places, means, ls=dashes, marker="o", ms=3.5, lw=1.5, color=colour, label=shorten(label, 40))
