"""Sections of limits that blocked requests, and of reasons for rejections, failures, refusals and waits."""

from __future__ import annotations

from collections.abc import Iterator

from yunikorn.reporting.formats import Number, count, duration
from yunikorn.reporting.full_report import FullReport
from yunikorn.reporting.section import Section
from yunikorn.reporting.tables import Table
from yunikorn.simulation.report import Report

REASONS = 10
"""Maximum number of listed reasons and limits; the number of further ones is printed."""


def limits_section(result: FullReport) -> Section | None:
    """Return the limits and the time for which they blocked requests; None if there were none."""
    found = result.report.limit_waits.limits
    if not found:
        return None
    rows = [[each.limit, Number(duration, each.seconds)] for each in found[:REASONS]]
    more = len(found) - REASONS
    if more > 0:
        rest = sum(each.seconds for each in found[REASONS:])
        rows.append([f"and {more} more limits", Number(duration, rest)])
    table = Table(
        "Limits that blocked requests",
        ["limit", "blocked in total"],
        rows,
        min_width=0,
        rest=int(more > 0),
    )
    lead = "Which quota or limit kept requests waiting? The time is summed over the requests."
    return Section("limits", "Limits", lead, tables=[table])


def reasons_section(result: FullReport) -> Section | None:
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
