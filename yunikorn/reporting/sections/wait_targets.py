"""Section of the wait targets of queues."""

from __future__ import annotations

from yunikorn.reporting.formats import Number, count, duration, percent
from yunikorn.reporting.full_report import FullReport
from yunikorn.reporting.section import Section
from yunikorn.reporting.tables import Table


def section(result: FullReport) -> Section | None:
    """Return the section; None without wait targets."""
    rows = [
        [
            found.queue,
            Number(duration, found.target),
            Number(percent, found.share_met),
            Number(count, found.met),
            Number(count, found.missed),
            Number(count, found.undecided),
        ]
        for found in result.figures.slo
    ]
    if not rows:
        return None
    heads = ["queue", "target", "met", "in time", "too late", "undecided"]
    table = Table("Wait targets", heads, rows, has_queues=True)
    lead = "Which part of the applications started all tasks within the target of its queue?"
    return Section("targets", "Wait targets", lead, tables=[table])
