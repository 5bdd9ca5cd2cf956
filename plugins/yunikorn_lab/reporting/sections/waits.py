"""Sections of waits: those of all applications, wait targets, and waits beside recorded ones."""

from __future__ import annotations

from collections.abc import Iterator

from yunikorn_lab.reporting.calibration import CalibratedGroup, Calibration
from yunikorn_lab.reporting.figures import QUEUE_WAITS, STATISTICS, cells, columns, statistics
from yunikorn_lab.reporting.full_report import FullReport
from yunikorn_lab.reporting.section import Picture, Section
from yunikorn_lab.reporting.tables import (
    Format,
    Number,
    Table,
    count,
    duration,
    index,
    percent,
    ratio,
)
from yunikorn_lab.simulation.statistics import Summary

WAITS, LENGTHS, CALIBRATION = "waits.png", "queue-lengths.png", "calibration.png"
USERS = 10
"""Maximum number of users whose waits are listed beside recorded ones, those with the most applications."""
_SCALES = {"vcore": ("cores", 1000), "memory": ("memory, GiB", 1 << 30)}
"""Names and units of the use of resource types."""


def waits_section(result: FullReport) -> Section | None:
    """Return the waits; None if no application was submitted."""
    if not result.report.applications.submitted:
        return None
    caption = (
        "Share of the applications of each queue that waited"
        + (" (left) or were slowed down (right)" if result.figures.slowdown else "")
        + " no more than the value below: the further left a curve, the shorter the waits."
    )
    return Section(
        "waits",
        "Waits",
        "Which applications wait, and for how long? A wait ends when the task named in the table starts.",
        pictures=[
            Picture(WAITS, caption, lambda plots, colours: plots.plot_distributions(result.curves, colours)),
            Picture(
                LENGTHS,
                "Number of waiting tasks, as a stack of queues: the upper edge is the number of all queues.",
                lambda plots, colours: plots.plot_lengths(result.history, colours),
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
    rows = [
        [result.history.label(queue.partition, queue.name), *cells(QUEUE_WAITS, queue)]
        for queue in result.figures.queues
    ]
    return Table("Waits and slowdown by queue", ["queue", *columns(QUEUE_WAITS)], rows, has_queues=True)


def targets_section(result: FullReport) -> Section | None:
    """Return the wait targets of queues; None without any."""
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


def calibration_section(result: FullReport) -> Section | None:
    """Return simulated waits beside recorded ones of the same applications; None without recorded ones."""
    found, curves = result.figures.calibration, result.curves.calibration
    if found is None:
        return None
    caption = (
        "Share of the applications that waited no longer than the value below, as recorded and as simulated. "
        "Where the simulated curve is further left, the simulation waits less than the cluster did."
    )
    return Section(
        "calibration",
        "Recorded and simulated waits",
        "Does the simulation behave like the cluster that the trace was recorded on?",
        pictures=[
            Picture(
                CALIBRATION,
                caption,
                lambda plots, _: None if curves is None else plots.plot_calibration(curves),
            )
        ],
        tables=list(_calibration_tables(found)),
    )


def _calibration_tables(found: Calibration) -> Iterator[Table]:
    values = [
        ("mean", found.recorded.mean, found.simulated.mean),
        *((f"{each.percent} %", each.recorded, each.simulated) for each in found.quantiles),
        ("longest", found.recorded.max, found.simulated.max),
    ]
    rows = [
        [name, Number(duration, recorded), Number(duration, simulated)]
        for name, recorded, simulated in values
    ]
    applications = f"{found.recorded.count} applications"
    if found.without_start:
        applications += f"; {found.without_start} more have not started all tasks"
    note = f"{applications}; rank correlation {index(found.rank_correlation)}"
    if found.warning:
        note += f". Warning: {found.warning}"
    yield Table(
        "Recorded and simulated waits", ["wait", "recorded", "simulated"], rows, note, is_ordered=True
    )
    if len(found.queues) > 1:
        yield _calibrated_queues(found.queues)
    if found.load:
        yield _calibrated_load(found)
    ranked = sorted(found.users, key=lambda user: -user.recorded.count)
    more = len(ranked) - USERS
    rest = f"{more} more users are in report.json" if more > 0 else ""
    if len(ranked) > 1:
        yield _calibrated_groups("user", ranked[:USERS], rest)
    if len(found.sizes) > 1:
        yield _calibrated_groups("size", found.sizes)


def _calibrated_queues(queues: list[CalibratedGroup]) -> Table:
    rows = [
        [
            queue.name,
            Number(count, queue.recorded.count),
            *(Number(duration, wait) for wait in (queue.recorded.median, queue.simulated.median)),
            *(Number(duration, wait) for wait in (queue.recorded.p95, queue.simulated.p95)),
            Number(index, queue.rank_correlation),
        ]
        for queue in queues
    ]
    waits = ("recorded, 50 %", "simulated", "recorded, 95 %", "simulated")
    heads = ["queue", "apps", *waits, "rank correlation"]
    return Table("Recorded and simulated waits by queue", heads, rows, has_queues=True)


def _in_units(amount: float | None) -> str:
    return f"{amount or 0:,.1f}"


def _calibrated_load(found: Calibration) -> Table:
    """Return placements and mean use over time."""
    types = sorted({name for part in found.load for name in part.recorded_use})
    scales = [_SCALES.get(name, (name, 1)) for name in types]
    rows = [
        [
            duration(part.time),
            Number(count, part.recorded_placements),
            Number(count, part.simulated_placements),
            *(
                Number(_in_units, use.get(name, 0.0) / unit)
                for name, (_, unit) in zip(types, scales, strict=True)
                for use in (part.recorded_use, part.simulated_use)
            ),
        ]
        for part in found.load
    ]
    titles = ["placements", *(title for title, _ in scales)]
    heads = ["from", *(text for title in titles for text in (title, "simulated"))]
    note = f"{percent(found.misplaced)} of the recorded placements are in another hour of the simulation"
    return Table("Recorded and simulated load", heads, rows, note, is_ordered=True)


def _calibrated_groups(what: str, groups: list[CalibratedGroup], note: str = "") -> Table:
    rows = [
        [
            group.name,
            Number(count, group.recorded.count),
            Number(duration, group.recorded.mean),
            Number(duration, group.simulated.mean),
            Number(index, group.rank_correlation),
        ]
        for group in groups
    ]
    heads = [what, "apps", "recorded, mean", "simulated, mean", "rank correlation"]
    return Table(f"Recorded and simulated waits by {what}", heads, rows, note)
