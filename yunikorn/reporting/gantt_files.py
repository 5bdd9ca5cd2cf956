"""Files of a Gantt chart: gantt.csv, and gantt.png, which requires matplotlib."""

from __future__ import annotations

from functools import partial
from typing import IO

from yunikorn.reporting.csv_files import Cell, Columns, CsvFile
from yunikorn.reporting.gantt import NODES, Bar, GanttChart
from yunikorn.simulation.statistics import seconds

TABLE = "gantt.csv"
PICTURE = "gantt.png"

_PARTITION: Columns[Bar] = {"partition": lambda bar: bar.row[0]}
_NODE: Columns[Bar] = {"node": lambda bar: bar.row[1]}
_COLUMNS: Columns[Bar] = {
    "start": lambda bar: seconds(bar.start),
    "end": lambda bar: None if bar.end is None else seconds(bar.end),
    "kind": lambda bar: bar.kind,
    "application": lambda bar: bar.application,
    "task": lambda bar: bar.task,
    "queue": lambda bar: bar.queue,
    "user": lambda bar: bar.user,
    "tasks": lambda bar: bar.tasks,
    "ended": lambda bar: bar.ended,
}


def _amount(name: str, bar: Bar) -> Cell:
    return bar.amounts.get(name)


def write_table(file: IO[str], chart: GanttChart) -> None:
    """Write gantt.csv: a row for each bar, with whole bars also if only a part is in the window."""
    types = sorted({name for bar in chart.bars for name in bar.amounts})
    place = {**_PARTITION, **_NODE} if chart.request.of == NODES else _PARTITION
    amounts = {f"amount_{name}": partial(_amount, name) for name in types}
    table = CsvFile[Bar](file, {**place, **_COLUMNS, **amounts})
    for bar in chart.bars:
        table.write(bar)
