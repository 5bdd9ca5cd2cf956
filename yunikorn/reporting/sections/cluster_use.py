"""Section of the use of the cluster over time, with the free resources that waiting tasks cannot use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.reporting.figures import FRAGMENTATION, cells, columns
from yunikorn.reporting.formats import Number, percent
from yunikorn.reporting.full_report import FullReport
from yunikorn.reporting.section import Picture, Section
from yunikorn.reporting.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from yunikorn.reporting.palette import QueueColours

CLUSTER = "cluster.png"


def section(result: FullReport) -> Section | None:
    """Return the section; it is empty if nothing was submitted."""

    def draw(_: QueueColours) -> Figure | None:
        from yunikorn.reporting.plots import plot_cluster

        return plot_cluster(result.history)

    caption = (
        "Used resources below the line of the capacity. Room between both is free; the part of it on nodes "
        "on which no waiting task fits is marked."
    )
    tables = [_use_at_end(result), _fragmentation(result)]
    return Section(
        "cluster",
        "Use of the cluster",
        "Is the cluster the bottleneck? If all of a resource is used while tasks wait, it is.",
        pictures=[Picture(CLUSTER, caption, draw)],
        tables=[table for table in tables if table.rows],
    )


def _use_at_end(result: FullReport) -> Table:
    found = result.figures.use_at_end
    rows = [
        [f"{partition}: {name}" if len(found) > 1 else name, Number(percent, share)]
        for partition, types in found.items()
        for name, share in types.items()
        if any(types.values())
    ]
    return Table("Use at the end", ["resource", "used"], rows)


def _fragmentation(result: FullReport) -> Table:
    found = result.figures.fragmentation
    rows = [
        [f"{partition}: {name}" if len(found) > 1 else name, *cells(FRAGMENTATION, fragmentation)]
        for partition, types in found.items()
        for name, fragmentation in types.items()
        if fragmentation.of_free is not None
    ]
    return Table("Fragmentation", ["free but unusable", *columns(FRAGMENTATION)], rows)
