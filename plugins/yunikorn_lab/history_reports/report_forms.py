"""Forms of a report: text for a terminal, CSV, JSON, and a page for a browser."""

from __future__ import annotations

import io
from typing import TextIO

from yunikorn.errors import UsageError
from yunikorn_lab.history_reports.history_result import HistoryReport
from yunikorn_lab.reporting.palette import QueueColours
from yunikorn_lab.reporting.result_files import missing_extra
from yunikorn_lab.reporting.terminal_output import print_tables, print_verdict, report_console

WIDTH = 200
"""Width of the text where there is no terminal."""
MOST_ROWS = 40
"""Maximum number of rows of a table on a terminal."""
MOST_ROWS_ON_PAGE = 500


def written(report: HistoryReport, form: str, table: str = "") -> str:
    """Return a report in one of the forms."""
    if form == "json":
        return report.to_json()
    if form == "html":
        return page_of(report)
    with io.StringIO(newline="") as file:
        if form == "csv":
            report.write_csv(file, table)
        else:
            print_text(report, file)
        return file.getvalue()


def print_text(report: HistoryReport, stream: TextIO) -> None:
    """Print a report, as wide as the terminal if it is one."""
    console = report_console(None if stream.isatty() else WIDTH, stream)
    console.print(report.title, soft_wrap=True)
    console.print()
    print_verdict(report.verdict, console)
    print_tables([table.shown(MOST_ROWS, report.currency) for table in report.tables if table.rows], console)


def page_of(report: HistoryReport) -> str:
    """Return the page of a report; raises `UsageError` without the extra `plots`."""
    missing = missing_extra("the page")
    if missing:
        raise UsageError(missing)
    # Imported here, because other forms need neither matplotlib nor jinja2, which import slowly.
    from yunikorn_lab.reporting.page import draw, render

    sections, colours = report.sections(MOST_ROWS_ON_PAGE), QueueColours(report.queues)
    drawn = {name: drawing.svg for name, drawing in draw(sections, colours).items()}
    return render(title=report.title, verdict=report.verdict, sections=sections, drawn=drawn, colours=colours)
