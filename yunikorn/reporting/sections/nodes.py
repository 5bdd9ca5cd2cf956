"""Section of the use of nodes over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.reporting.full_report import FullReport
from yunikorn.reporting.section import Picture, Section

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from yunikorn.reporting.palette import QueueColours

NODES = "nodes.png"


def section(result: FullReport) -> Section | None:
    """Return the section; it is empty without nodes."""

    def draw(_: QueueColours) -> Figure | None:
        from yunikorn.reporting.plots import plot_nodes

        return plot_nodes(result.history)

    merged = result.history.nodes.per_row
    rows = "Each row is a node" if merged == 1 else f"Each row is {merged} nodes, named after its first"
    caption = (
        f"{rows}, in the order in which nodes registered. The brighter, the more of it was used; "
        "grey: not registered."
    )
    return Section("nodes", "Nodes", "Is the load spread evenly?", pictures=[Picture(NODES, caption, draw)])
