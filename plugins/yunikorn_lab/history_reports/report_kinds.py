"""Kinds of reports by name, with their groups."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from yunikorn_lab.history_reports.fairness_report import report_fairness
from yunikorn_lab.history_reports.history_result import HistoryReport
from yunikorn_lab.history_reports.preemption_report import report_preemption
from yunikorn_lab.history_reports.report_source import ReportSource
from yunikorn_lab.history_reports.report_window import SUBJECTS, Grouping, ReportFilter
from yunikorn_lab.history_reports.usage_report import report_usage
from yunikorn_lab.history_reports.waits_report import report_waits, series_of_waits
from yunikorn_lab.history_reports.waste_report import report_waste


@attrs.frozen
class ReportKind:
    """A report, with the groups that it has."""

    make: Callable[[ReportSource, Grouping], HistoryReport]
    by: str
    """Groups of its rows by default."""
    subjects: tuple[str, ...] = ()
    needs_subject: bool = False
    """True if a period alone makes no groups."""
    has_filters: bool = True
    """False for a report that is of all queues and users at once."""
    has_prices: bool = True
    records: tuple[str, ...] = ("usage", "queues")
    """Kinds of records that it reads beside those of the partition; see `records_of`."""
    why_none: str = ""
    """Reason for which there are no `subjects`."""


REPORT_KINDS = {
    "usage": ReportKind(report_usage, "queue", SUBJECTS),
    "waits": ReportKind(report_waits, "queue", SUBJECTS, has_prices=False, records=("apps",)),
    "fairness": ReportKind(report_fairness, "queue", SUBJECTS, needs_subject=True, has_filters=False),
    "preemption": ReportKind(report_preemption, "queue", SUBJECTS, records=("apps", "tasks")),
    "waste": ReportKind(
        report_waste,
        "day",
        has_filters=False,
        why_none="idle capacity belongs to no group, and `yunikorn report usage` has by group what was lost"
        " and what placeholders held",
    ),
}


def parse_grouping(kind: ReportKind, by: str | None) -> Grouping:
    """Parse the groups that are wanted of a report; raises `UsageError`."""
    return Grouping.parse(
        by or kind.by, kind.subjects, needs_subject=kind.needs_subject, why_none=kind.why_none
    )


def records_of(kind: str, grouping: Grouping, wanted: ReportFilter, *, is_partial: bool) -> tuple[str, ...]:
    """Return the kinds of records that a report needs, beside those of the partition."""
    found = REPORT_KINDS[kind].records
    if kind == "waits":
        series = "" if is_partial else series_of_waits(grouping, wanted)
        return (*found, series or "tasks")
    return (*found, "apps", "tasks") if grouping.subject == "template" and "usage" in found else found
