"""All sections of report.html, in their order. The terminal prints their tables in the same order."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from yunikorn_lab.reporting.full_report import FullReport
from yunikorn_lab.reporting.gantt import NODES, PICTURE, TABLE, GanttChart
from yunikorn_lab.reporting.section import Picture, Section
from yunikorn_lab.reporting.sections.use import (
    cluster_section,
    idle_section,
    nodes_section,
    queues_section,
    sizes_section,
    topology_section,
    users_section,
)
from yunikorn_lab.reporting.sections.waits import calibration_section, targets_section, waits_section
from yunikorn_lab.reporting.tables import Number, Table, count, duration, totals
from yunikorn_lab.simulation.report import Report
from yunikorn_lab.simulation.workload import describe_reload

TOTALS = "totals"
REASONS = 10
"""Maximum number of listed reasons and limits; the number of further ones is printed."""


def report_sections(result: FullReport, chart: GanttChart | None = None) -> list[Section]:
    """Return the sections that have something to show; a Gantt chart is the one before the totals."""
    found = [made for make in SECTIONS if (made := make(result)) is not None]
    if chart is not None:
        place = next(at for at, section in enumerate(found) if section.key == TOTALS)
        found.insert(place, _gantt(chart))
    return found


def _reasons(result: FullReport) -> Section | None:
    """Return the reasons for refusals and failures, and for waits at the end; None if there were none."""
    tables = list(_reason_tables(result.report))
    if not tables:
        return None
    lead = "Why did work not run? Each reason has the first application as an example."
    return Section("reasons", "Not run", lead, tables=tables)


def _reason_tables(report: Report) -> Iterator[Table]:
    for title, found in (
        ("Rejected applications", report.rejections),
        ("Failed applications", report.failures),
        ("Refused tasks", report.refusals),
        ("Waiting tasks", report.waiting),
    ):
        rows = [[reason.reason, Number(count, reason.count), reason.example] for reason in found[:REASONS]]
        more = len(found) - REASONS
        if more > 0:
            rows.append([f"and {more} more reasons", "", ""])
        if rows:
            columns = ["reason", "count", "example"]
            yield Table(title, columns, rows, min_width=0, has_examples=True, rest=int(more > 0))


def _limits(result: FullReport) -> Section | None:
    """Return the limits and the time for which they blocked requests; None if there were none."""
    found = result.report.limit_waits.limits
    if not found:
        return None
    rows = [[each.limit, Number(duration, each.seconds)] for each in found[:REASONS]]
    more = len(found) - REASONS
    if more > 0:
        rest = sum(each.seconds for each in found[REASONS:])
        rows.append([f"and {more} more limits", Number(duration, rest)])
    heads = ["limit", "blocked in total"]
    table = Table("Limits that blocked requests", heads, rows, min_width=0, rest=int(more > 0))
    lead = "Which quota or limit kept requests waiting? The time is summed over the requests."
    return Section("limits", "Limits", lead, tables=[table])


def _gantt(chart: GanttChart) -> Section:
    """Return a Gantt chart, and what it does not show."""
    if chart.request.of == NODES:
        lead, caption = (
            "What runs where, and when?",
            "Each bar is a task on its node, in the colour of its queue.",
        )
    else:
        lead = "When does each application wait and run?"
        caption = "Thin lines are waits, bars the times of tasks, in the colour of the queue."
    picture = Picture(PICTURE, caption, lambda plots, colours: plots.plot_gantt(chart, colours))
    lead = f"{lead} All bars are in {TABLE}."
    return Section("gantt", "Gantt chart", lead, paragraphs=chart.notes, pictures=[picture])


def _totals(result: FullReport) -> Section:
    """Return the totals, followed by notes on the input and failures of plugins."""
    report = result.report
    notes = [*report.remarks, *report.node_troubles, *map(describe_reload, report.reloads)]
    facts = [
        *totals(report),
        *(("note", text) for text in notes),
        *(("plugin failure", text) for text in report.plugin_faults),
    ]
    return Section(TOTALS, "Totals and notes", facts=facts)


def _provenance(result: FullReport) -> Section | None:
    """Return the inputs, options and versions that the run is a result of; None if they are unknown."""
    found = result.provenance
    if found is None:
        return None
    details = [("configuration", found.config_text)]
    return Section("provenance", "Provenance", facts=found.rows(), details=details)


SECTIONS: tuple[Callable[[FullReport], Section | None], ...] = (
    _reasons,
    waits_section,
    targets_section,
    calibration_section,
    queues_section,
    _limits,
    cluster_section,
    idle_section,
    topology_section,
    users_section,
    sizes_section,
    nodes_section,
    _totals,
    _provenance,
)
