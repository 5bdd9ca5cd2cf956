"""Heat map of the usage of nodes over time."""

from __future__ import annotations

import math

from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from yunikorn.reporting.history import History
from yunikorn.reporting.mpl import empty, paper, shorten, time_scale

TYPES = 3
NOTHING = "#e4e4e4"


def plot_nodes(history: History) -> Figure:
    """Plot a heat map per resource type, with nodes (or groups of nodes) in order of registration."""
    nodes = history.nodes
    if not nodes.nodes or not history.count:
        return empty("there were no nodes, so there is no use to show")
    means = {name: _mean(rows) for name, rows in nodes.shares.items()}
    shown = sorted(sorted(means, key=lambda name: (-means[name], name))[:TYPES])
    time, text = time_scale(history.edges)
    edges = [edge / time for edge in history.edges]
    figure, axes = paper(0.7 + 2.3 * len(shown), len(shown), share=True)
    colours = colormaps["viridis"].with_extremes(bad=NOTHING)
    for one, name in zip(axes, shown, strict=True):
        rows = [[math.nan if share is None else share for share in row] for row in nodes.shares[name]]
        borders = [float(min(number * nodes.per_row, nodes.nodes)) for number in range(len(rows) + 1)]
        mesh = one.pcolormesh(edges, borders, rows, cmap=colours, vmin=0, vmax=1, rasterized=True)
        one.set_facecolor(NOTHING)
        one.grid(False)
        one.set_ylim(nodes.nodes, 0)
        one.yaxis.set_major_locator(MaxNLocator(6, integer=True))
        one.set_ylabel("node")
        one.set_title(shorten(name, 60))
        bar = figure.colorbar(mesh, ax=one, pad=0.01, format=FuncFormatter(lambda value, _: f"{value:.0%}"))
        bar.set_label("used")
    merged = f"; each row is {nodes.per_row} nodes" if nodes.per_row > 1 else ""
    more = f"; {len(means) - len(shown)} more resource types are not shown" if len(means) > len(shown) else ""
    axes[-1].set_xlabel(
        f"simulated time ({text}); nodes in order of registration, grey: not registered{merged}{more}"
    )
    return figure


def _mean(rows: list[list[float | None]]) -> float:
    found = [share for row in rows for share in row if share is not None]
    return math.fsum(found) / len(found) if found else 0.0
