"""Section of the use of the queues, their tasks, and their guarantees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.quantities import in_words
from yunikorn.reporting.figures import GUARANTEE, QUEUE_TASKS, cells, columns
from yunikorn.reporting.formats import Number, percent, whole_percent
from yunikorn.reporting.full_report import FullReport
from yunikorn.reporting.section import Picture, Section
from yunikorn.reporting.tables import Table, queue_label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from yunikorn.reporting.palette import QueueColours

QUEUES = "queue-use.png"


def section(result: FullReport) -> Section | None:
    """Return the section; it is empty if no queue was used."""

    def draw(colours: QueueColours) -> Figure | None:
        from yunikorn.reporting.plots import plot_queues

        return plot_queues(result.history, colours)

    tables = [_use(result), _use_at_end(result), _guarantees(result)]
    return Section(
        "queues",
        "Use of the queues",
        "Which queue uses how much, and does each have its guarantee?",
        pictures=[
            Picture(
                QUEUES,
                "Usage of each queue, with its guarantee (dashed) and its limit (red), if it has any. Usage "
                "above the guarantee is borrowed.",
                draw,
            )
        ],
        tables=[table for table in tables if table.rows],
    )


def _use(result: FullReport) -> Table:
    queues = result.report.queues
    types = sorted({name for queue in queues for name in queue.utilisation})
    several = len(result.history.partitions) > 1
    rows = [
        [
            queue_label(queue.partition, queue.queue, several=several),
            *cells(QUEUE_TASKS, queue),
            *(Number(whole_percent, queue.utilisation.get(each)) for each in types),
        ]
        for queue in queues
    ]
    heads = ["queue", *columns(QUEUE_TASKS), *(f"use of {name}" for name in types)]
    return Table("Tasks and use by queue", heads, rows, has_queues=True)


def _use_at_end(result: FullReport) -> Table:
    queues = [queue for queue in result.figures.queues if any(queue.use_at_end.values())]
    types = sorted({name for queue in queues for name in queue.use_at_end})
    several = len(result.history.partitions) > 1
    rows = [
        [
            queue_label(queue.partition, queue.name, several=several),
            *(Number(percent, queue.use_at_end.get(each)) for each in types),
        ]
        for queue in queues
    ]
    return Table("Use at the end by queue", ["queue", *types], rows, has_queues=True)


def _guarantees(result: FullReport) -> Table:
    several = len(result.history.partitions) > 1
    rows = [
        [
            queue_label(group.partition, group.name, several=several),
            in_words({name: kept.guaranteed}),
            *cells(GUARANTEE, kept),
        ]
        for group in result.figures.queues
        for name, kept in group.guarantees.items()
    ]
    return Table("Guarantees", ["queue", "guaranteed", *columns(GUARANTEE)], rows, has_queues=True)
