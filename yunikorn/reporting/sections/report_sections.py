"""All sections of report.html, in their order. The terminal prints their tables in the same order."""

from __future__ import annotations

from collections.abc import Callable

from yunikorn.reporting.full_report import FullReport
from yunikorn.reporting.gantt import GanttChart
from yunikorn.reporting.section import Section
from yunikorn.reporting.sections import (
    calibration,
    cluster_use,
    gantt,
    idle_while_waiting,
    nodes,
    provenance,
    queue_use,
    run_totals,
    wait_targets,
    waits,
)
from yunikorn.reporting.sections.groups import sizes_section, users_section
from yunikorn.reporting.sections.reasons import limits_section, reasons_section

SECTIONS: tuple[Callable[[FullReport], Section | None], ...] = (
    reasons_section,
    waits.section,
    wait_targets.section,
    calibration.section,
    queue_use.section,
    limits_section,
    cluster_use.section,
    idle_while_waiting.section,
    users_section,
    sizes_section,
    nodes.section,
    run_totals.section,
    provenance.section,
)


def report_sections(result: FullReport, chart: GanttChart | None = None) -> list[Section]:
    """Return the sections that have something to show; a Gantt chart is the one before the totals."""
    found = [made for make in SECTIONS if (made := make(result)) is not None]
    if chart is not None:
        place = next(at for at, section in enumerate(found) if section.key == run_totals.KEY)
        found.insert(place, gantt.section(chart))
    return found
