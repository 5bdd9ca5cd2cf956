"""Section of waits and slowdowns: overall, by queue, and the number of waiting tasks over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.reporting.figures import QUEUE_WAITS, STATISTICS, cells, statistics
from yunikorn.reporting.formats import Format, duration, index, ratio
from yunikorn.reporting.full_report import FullReport
from yunikorn.reporting.section import Picture, Section
from yunikorn.reporting.tables import Table, queue_label
from yunikorn.simulation.statistics import Summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from yunikorn.reporting.palette import QueueColours

WAITS, LENGTHS = "waits.png", "queue-lengths.png"


def section(result: FullReport) -> Section | None:
    """Return the section; None if no application was submitted."""
    if not result.report.applications.submitted:
        return None

    def draw_waits(colours: QueueColours) -> Figure | None:
        from yunikorn.reporting.plots import plot_distributions

        return plot_distributions(result.curves, colours)

    def draw_lengths(colours: QueueColours) -> Figure | None:
        from yunikorn.reporting.plots import plot_lengths

        return plot_lengths(result.history, colours)

    return Section(
        "waits",
        "Waits",
        "Which applications wait, and for how long? A wait ends when the task named in the table starts.",
        pictures=[
            Picture(
                WAITS,
                "Share of the applications of each queue that waited"
                + (" (left) or were slowed down (right)" if result.figures.slowdown else "")
                + " no more than the value below: the further left a curve, the shorter the waits.",
                draw_waits,
            ),
            Picture(
                LENGTHS,
                "Number of waiting tasks, as a stack of queues: the upper edge is the number of all queues.",
                draw_lengths,
            ),
        ],
        tables=[table for table in (_overall(result), _by_queue(result)) if table.rows],
    )


def _overall(result: FullReport) -> Table:
    report, figures = result.report, result.figures
    gangs, blocked = report.gangs, report.limit_waits
    found: list[tuple[str, Summary | None, Format]] = [
        ("applications (first task)", report.application_wait, duration),
        ("applications (last task)", figures.whole_wait, duration),
        ("tasks", report.task_wait, duration),
        ("gangs (until fully allocated)", gangs.wait if gangs else None, duration),
        ("applications blocked by limits", blocked.applications, duration),
        ("requests blocked by limits", blocked.tasks, duration),
        ("bounded slowdown (times)", figures.slowdown, ratio),
    ]
    rows = [[of, *statistics(summary, form)] for of, summary, form in found if summary is not None]
    return Table("Waits and slowdown of all", ["of", *STATISTICS], rows, _fairness(result), min_width=0)


def _fairness(result: FullReport) -> str:
    fairness = result.figures.fairness
    if result.figures.wait is None:
        return ""
    by_queue = f"queues {index(fairness.slowdown_of_queues)}, users {index(fairness.slowdown_of_users)}"
    by_use = f"queues {index(fairness.use_of_queues)}, users {index(fairness.use_of_users)}"
    return f"Jain's index of fairness (1: all equal): of slowdown {by_queue}; of use {by_use}"


def _by_queue(result: FullReport) -> Table:
    several = len(result.history.partitions) > 1
    rows = [
        [queue_label(queue.partition, queue.name, several=several), *cells(QUEUE_WAITS, queue)]
        for queue in result.figures.queues
    ]
    columns = ["queue", *(figure.column for figure in QUEUE_WAITS if figure.column)]
    return Table("Waits and slowdown by queue", columns, rows, has_queues=True)
