"""Plots and HTML page of a run; both require the extra `plots`."""

from __future__ import annotations

from importlib.util import find_spec

from yunikorn.reporting.full_report import FullReport
from yunikorn.simulation.out_folder import OutFolder

PAGE = "report.html"
CLUSTER, QUEUES, LENGTHS = "cluster.png", "queue-use.png", "queue-lengths.png"
WAITS, NODES = "waits.png", "nodes.png"
CAPTIONS = {
    CLUSTER: "Capacity, usage, and free resources that waiting tasks could not use.",
    QUEUES: "Usage of each queue, with its guarantee and its limit.",
    LENGTHS: "Number of waiting tasks.",
    WAITS: "Cumulative distributions of the waits and slowdowns of applications.",
    NODES: "Utilisation of each node.",
}
PICTURES = tuple(CAPTIONS)
NEEDED = ("matplotlib", "jinja2")


def missing_extra(page: str = PAGE) -> str:
    """Return a hint on missing dependencies, or an empty string if all are installed."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if not missing:
        return ""
    return (
        f"{page} and the plots are not written: {' and '.join(missing)} "
        f"{'is' if len(missing) == 1 else 'are'} not installed; install with pip install 'yunikorn[plots]'"
    )


def draw_pictures(result: FullReport) -> dict[str, bytes]:
    """Draw all plots; returns PNG contents by file name."""
    # Imported here, because runs without pictures need no matplotlib, which is slow to import.
    from yunikorn.reporting.plots import (
        plot_cluster,
        plot_distributions,
        plot_lengths,
        plot_nodes,
        plot_queues,
        png,
        styled,
    )

    history = result.account.history
    with styled():
        return {
            CLUSTER: png(plot_cluster(history)),
            QUEUES: png(plot_queues(history)),
            LENGTHS: png(plot_lengths(history)),
            WAITS: png(plot_distributions(result.account.curves)),
            NODES: png(plot_nodes(history)),
        }


def write_pictures(folder: OutFolder, result: FullReport) -> str:
    """Write plots and page; returns a hint if dependencies are missing, else an empty string."""
    missing = missing_extra()
    if missing:
        return missing
    from yunikorn.reporting.page import render_page

    pictures = draw_pictures(result)
    for name, content in pictures.items():
        folder.part(name).write_bytes(content)
    folder.open(PAGE).write(render_page(result, pictures, CAPTIONS))
    return ""
