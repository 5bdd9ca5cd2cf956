"""Plot of simulated and recorded waits as cumulative distributions over each other. Requires matplotlib."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from yunikorn.reporting.calibration import CalibrationCurves
from yunikorn.reporting.mpl import INK, USED, duration_text, duration_ticks, paper


def plot_calibration(curves: CalibrationCurves) -> Figure:
    """Plot both distributions on a logarithmic axis."""
    figure, (axes,) = paper(3.6)
    for values, colour, label in (
        (curves.recorded, INK, "recorded"),
        (curves.simulated, USED, "simulated"),
    ):
        shown = [max(value, 1.0) for value in values]
        parts = [(index + 1) / len(shown) for index in range(len(shown))]
        axes.step([shown[0], *shown], [0.0, *parts], where="post", color=colour, lw=1.8, label=label)
    longest = max(curves.recorded[-1], curves.simulated[-1])
    ticks = duration_ticks(longest)
    axes.set_xscale("log")
    axes.set_xlim(0.9, max(longest, ticks[-1]) * 1.1)
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda value, _: "≤ 1 s" if value <= 1 else duration_text(value))
    )
    axes.set_ylim(0, 1.02)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))
    axes.set_title("Recorded and simulated waits")
    axes.set_xlabel("waited no longer than")
    axes.set_ylabel("share of the applications")
    figure.legend(loc="outside right upper")
    return figure
