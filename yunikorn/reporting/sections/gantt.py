"""Section of a Gantt chart, for runs with `--gantt`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from yunikorn.reporting.gantt import NODES, GanttChart
from yunikorn.reporting.gantt_files import PICTURE, TABLE
from yunikorn.reporting.section import Picture, Section

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from yunikorn.reporting.palette import QueueColours


def section(chart: GanttChart) -> Section:
    """Return the section, which names what the chart does not show."""
    if chart.request.of == NODES:
        lead, caption = (
            "What runs where, and when?",
            "Each bar is a task on its node, in the colour of its queue.",
        )
    else:
        lead = "When does each application wait and run?"
        caption = "Thin lines are waits, bars the times of tasks, in the colour of the queue."
    return Section(
        "gantt",
        "Gantt chart",
        f"{lead} All bars are in {TABLE}.",
        paragraphs=chart.notes,
        pictures=[Picture(PICTURE, caption, partial(_draw, chart))],
    )


def _draw(chart: GanttChart, colours: QueueColours) -> Figure | None:
    from yunikorn.reporting.plot_gantt import plot_gantt

    return plot_gantt(chart, colours)
