"""Section of the capacity that stood idle while work waited, by what kept the work from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.reporting.figures import IDLE as IDLE_FIGURES
from yunikorn.reporting.figures import cells, columns
from yunikorn.reporting.formats import Number, percent
from yunikorn.reporting.full_report import FullReport
from yunikorn.reporting.idle_capacity import CAUSES
from yunikorn.reporting.section import Picture, Section
from yunikorn.reporting.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from yunikorn.reporting.palette import QueueColours

IDLE = "idle.png"


def section(result: FullReport) -> Section | None:
    """Return the section; None if no capacity stood idle while work waited."""

    def draw(_: QueueColours) -> Figure | None:
        from yunikorn.reporting.plot_idle import plot_idle

        return plot_idle(result.history)

    table = _idle(result)
    if not table.rows:
        return None
    caption = "Capacity that stood idle while work waited, as a stack of what kept the work from it."
    lead = "Is there room that waiting work wants but does not get, and why?"
    return Section(
        "idle", "Idle while work waits", lead, pictures=[Picture(IDLE, caption, draw)], tables=[table]
    )


def _idle(result: FullReport) -> Table:
    several = len(result.figures.idle) > 1
    found = [
        (f"{partition}: {name}" if several else name, idle)
        for partition, types in result.figures.idle.items()
        for name, idle in types.items()
        if idle.causes
    ]
    causes = [cause for cause in CAUSES if any(cause in idle.causes for _, idle in found)]
    rows = [
        [
            name,
            *cells(IDLE_FIGURES, idle),
            *(Number(percent, idle.causes.get(cause)) for cause in causes),
        ]
        for name, idle in found
    ]
    heads = ["part of the capacity", *columns(IDLE_FIGURES), *causes]
    return Table("Idle while work waits", heads, rows)
