"""Section of totals and notes of a run."""

from __future__ import annotations

from yunikorn.reporting.full_report import FullReport
from yunikorn.reporting.section import Section
from yunikorn.reporting.tables import totals
from yunikorn.simulation.workload import describe_reload

KEY = "totals"


def section(result: FullReport) -> Section:
    """Return the totals, followed by notes on the input and failures of plugins."""
    report = result.report
    notes = [*report.remarks, *report.node_troubles, *map(describe_reload, report.reloads)]
    facts = [
        *totals(report),
        *(("note", text) for text in notes),
        *(("plugin failure", text) for text in report.plugin_faults),
    ]
    return Section(KEY, "Totals and notes", facts=facts)
