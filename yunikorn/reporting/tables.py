"""Tables of a report as rows of text, for the terminal and for the HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from yunikorn.quantities import in_words
from yunikorn.reporting.figures import (
    FRAGMENTATION,
    GROUP,
    GUARANTEE,
    IDLE,
    QUEUE,
    STATISTICS,
    cells,
    columns,
    duration,
    index,
    percent,
    ratio,
    statistics,
    whole_percent,
)
from yunikorn.reporting.full_report import Figures
from yunikorn.reporting.group_counts import GroupReport
from yunikorn.reporting.idle_capacity import CAUSES
from yunikorn.simulation.report import Report

MOST = 10
"""Maximum number of listed users, those with the highest usage; queues are all listed."""
REASONS = 10
"""Maximum number of listed reasons and limits; the number of further ones is printed."""


@attrs.frozen
class Table:
    """A table; the first column holds text, the others numbers."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    min_width: int = 14
    """Minimum width of the first column on a terminal."""
    has_examples: bool = False
    """True if the last column holds texts."""


def outcome(report: Report) -> str:
    """Return how far the simulation went, as text."""
    return {
        "complete": "to its end",
        "until": f"until {duration(report.times.stopped)}",
        "interrupted": f"interrupted at {duration(report.times.stopped)}",
    }[report.outcome]


def totals(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the totals as pairs of a name and a text."""
    counts = report.applications
    later = f", {counts.not_submitted} not submitted" if counts.not_submitted else ""
    if report.dependencies is not None and report.dependencies.waiting:
        later += f" ({report.dependencies.waiting} wait for a predecessor)"
    failed = f", {counts.failed} failed" if counts.failed else ""
    yield (
        "applications",
        f"{counts.submitted} submitted: {counts.finished} finished{failed}, {counts.rejected} rejected, "
        f"{counts.running} running, {counts.waiting} waiting{later}",
    )
    yield "tasks", _tasks(report)
    yield from _lost_work(report)
    if report.startup:
        starts = report.startup
        yield (
            "start-up",
            f"{starts.count} starts: mean {duration(starts.mean)}, longest {duration(starts.max)}",
        )
    if report.tasks.too_large:
        yield "too large", f"{report.tasks.too_large} tasks fit on no node"
    if counts.too_large:
        yield "larger than the cluster", f"{counts.too_large} applications"
    if report.input:
        yield "input", ", ".join(f"{count} {what}" for what, count in report.input.items())
    yield "makespan", duration(report.times.makespan)
    for partition, text in report.offered_load.texts:
        yield f"offered load of {partition}", text
    for partition, shares in report.utilisation.items():
        used = ", ".join(f"{name} {whole_percent(share)}" for name, share in shares.items())
        yield f"use of {partition}", used or "-"
    yield (
        "decisions",
        f"{report.decisions} ({report.allocations} allocations), {report.releases} releases",
    )


def _tasks(report: Report) -> str:
    tasks = report.tasks
    lost = tasks.refused + tasks.dropped
    refused = f", {lost} refused or dropped" if lost else ""
    failed = f", {tasks.failed} failed" if tasks.failed else ""
    cut_off = f" ({tasks.timed_out} timed out)" if tasks.timed_out else ""
    restarted = f"; {tasks.restarted} restarts" if tasks.restarted else ""
    return (
        f"{tasks.asked} asked for: {tasks.ended} ended{cut_off}{failed}, {tasks.running} running, "
        f"{tasks.waiting} waiting{refused}{restarted}"
    )


def _lost_work(report: Report) -> Iterator[tuple[str, str]]:
    places = report.preempted_placeholders
    if report.preemptions or places:
        besides = f", {places} placeholders" if places else ""
        yield "preempted", f"{report.preemptions} tasks{besides}"
    if report.lost_work:
        parts = [
            f"{duration(loss.seconds)} of {loss.tasks} tasks ({loss.reason})" for loss in report.lost_work
        ]
        yield "lost work", ", ".join(parts)
    gangs = report.gangs
    if gangs is not None:
        given_up = f", {gangs.given_up} given up" if gangs.given_up else ""
        fates = f"{gangs.whole} fully allocated{given_up}, {gangs.waiting} waiting"
        yield "gangs", f"{gangs.submitted} submitted: {fates}"


# -- tables of the plain report ---------------------------------------------------------------------------


def main_tables(report: Report) -> Iterator[Table]:
    """Yield the tables that precede those of the full report."""
    held = report.limit_waits
    waits = [
        ("applications (first task)", report.application_wait, True),
        ("tasks", report.task_wait, True),
        (
            "gangs (until fully allocated)",
            report.gangs.wait if report.gangs else None,
            report.gangs is not None,
        ),
        ("applications blocked by limits", held.applications, held.applications is not None),
        ("requests blocked by limits", held.tasks, held.tasks is not None),
    ]
    rows = [[of, *statistics(found, duration)] for of, found, listed in waits if listed]
    yield Table("Waiting time", ["of", *STATISTICS], rows, min_width=0)
    if report.queues:
        yield _queues(report)


def _queues(report: Report) -> Table:
    types = sorted({name for queue in report.queues for name in queue.utilisation})
    several = len({queue.partition for queue in report.queues}) > 1
    rows = [
        [
            f"{queue.partition}: {queue.queue}" if several else queue.queue,
            *cells(QUEUE, queue),
            *(whole_percent(queue.utilisation.get(each)) for each in types),
        ]
        for queue in report.queues
    ]
    title = "Queues (waiting time of applications and tasks, use of the partition)"
    return Table(title, ["queue", *columns(QUEUE), *types], rows)


def limit_tables(report: Report) -> Iterator[Table]:
    """Yield the table of limits and the time for which they blocked requests, if there were any."""
    held = report.limit_waits.limits
    rows = [[each.limit, duration(each.seconds)] for each in held[:REASONS]]
    if len(held) > REASONS:
        rest = sum(each.seconds for each in held[REASONS:])
        rows.append([f"and {len(held) - REASONS} more limits", duration(rest)])
    if rows:
        yield Table("Limits that blocked requests", ["limit", "blocked in total"], rows, min_width=0)


def reason_tables(report: Report) -> Iterator[Table]:
    """Yield the tables of reasons for refusals and waits."""
    for title, found in (
        ("Rejected applications", report.rejections),
        ("Refused tasks", report.refusals),
        ("Waiting tasks", report.waiting),
    ):
        rows = [[reason.reason, str(reason.count), reason.example] for reason in found[:REASONS]]
        if len(found) > REASONS:
            rows.append([f"and {len(found) - REASONS} more reasons", "", ""])
        if rows:
            yield Table(title, ["reason", "count", "example"], rows, min_width=0, has_examples=True)


# -- tables of the full report ----------------------------------------------------------------------------


def figure_tables(figures: Figures) -> list[Table]:
    """Return the tables that the full report adds, as far as they have rows."""
    found = [
        _overall(figures),
        _groups("Queues", "queue", figures.queues),
        _guarantees(figures.queues),
        _groups("Sizes (part of the cluster that an application asks for)", "size", figures.sizes),
        _users(figures.users),
        _use_at_end(figures),
        _targets(figures),
        *_calibration(figures),
        _idle(figures),
        _fragmentation(figures),
    ]
    return [table for table in found if table.rows]


def _overall(figures: Figures) -> Table:
    fairness = figures.fairness
    rows = [
        ["applications (last task)", *statistics(figures.whole_wait, duration)],
        ["bounded slowdown", *statistics(figures.slowdown, ratio)],
    ]
    by_queue = f"queues {index(fairness.slowdown_of_queues)}, users {index(fairness.slowdown_of_users)}"
    by_use = f"queues {index(fairness.use_of_queues)}, users {index(fairness.use_of_users)}"
    note = f"Jain's index of fairness: of slowdown {by_queue}; of use {by_use}"
    titles = ["of", *STATISTICS[:-1], "largest"]
    return Table("Waiting and slowdown", titles, rows if figures.wait else [], note)


def _groups(title: str, column: str, groups: list[GroupReport], note: str = "") -> Table:
    several = len({group.partition for group in groups}) > 1
    rows = [
        [f"{group.partition}: {group.name}" if several else group.name, *cells(GROUP, group)]
        for group in groups
    ]
    return Table(title, [column, *columns(GROUP)], rows, note)


def _users(users: list[GroupReport]) -> Table:
    ranked = sorted(users, key=lambda user: (-user.use, user.name))
    more = len(users) - MOST
    note = f"{more} more users are in report.json" if more > 0 else ""
    return _groups("Users, highest use first", "user", ranked[:MOST], note)


def _guarantees(queues: list[GroupReport]) -> Table:
    rows = [
        [group.name, in_words({name: kept.guaranteed}), *cells(GUARANTEE, kept)]
        for group in queues
        for name, kept in group.guarantees.items()
    ]
    return Table("Guarantees", ["queue", "guaranteed", *columns(GUARANTEE)], rows)


def _use_at_end(figures: Figures) -> Table:
    several = len(figures.use_at_end) > 1
    rows = [
        [f"{partition}: {name}" if several else name, percent(share)]
        for partition, types in figures.use_at_end.items()
        for name, share in types.items()
        if any(types.values())
    ]
    return Table("Use at the end", ["resource", "used"], rows)


def _targets(figures: Figures) -> Table:
    rows = [
        [
            found.queue,
            duration(found.target),
            percent(found.share_met),
            str(found.met),
            str(found.missed),
            str(found.undecided),
        ]
        for found in figures.slo
    ]
    return Table("Wait targets", ["queue", "target", "met", "in time", "too late", "undecided"], rows)


def _calibration(figures: Figures) -> Iterator[Table]:
    found = figures.calibration
    if found is None:
        return
    values = [
        ("mean", found.recorded.mean, found.simulated.mean),
        *((f"{each.percent} %", each.recorded, each.simulated) for each in found.quantiles),
        ("longest", found.recorded.max, found.simulated.max),
    ]
    rows = [[name, duration(recorded), duration(simulated)] for name, recorded, simulated in values]
    applications = f"{found.recorded.count} applications"
    if found.without_start:
        applications += f"; {found.without_start} more have not started all tasks"
    note = f"{applications}; rank correlation {index(found.rank_correlation)}"
    if found.warning:
        note += f". Warning: {found.warning}"
    yield Table("Recorded and simulated waits", ["wait", "recorded", "simulated"], rows, note)
    for what, groups in (("user", found.users), ("size", found.sizes)):
        ranked = sorted(groups, key=lambda group: -group.recorded.count)[:MOST]
        yield Table(
            f"Recorded and simulated waits by {what}",
            [what, "apps", "recorded, mean", "simulated, mean", "rank correlation"],
            [
                [
                    group.name,
                    str(group.recorded.count),
                    duration(group.recorded.mean),
                    duration(group.simulated.mean),
                    index(group.rank_correlation),
                ]
                for group in (ranked if what == "user" else groups)
            ],
            f"{len(groups) - MOST} more users are in report.json" if len(ranked) < len(groups) else "",
        )


def _idle(figures: Figures) -> Table:
    several = len(figures.idle) > 1
    found = [
        (f"{partition}: {name}" if several else name, idle)
        for partition, types in figures.idle.items()
        for name, idle in types.items()
        if idle.causes
    ]
    causes = [cause for cause in CAUSES if any(cause in idle.causes for _, idle in found)]
    rows = [
        [name, *cells(IDLE, idle), *(percent(idle.causes.get(cause)) for cause in causes)]
        for name, idle in found
    ]
    return Table("Idle while work waits", ["part of the capacity", *columns(IDLE), *causes], rows)


def _fragmentation(figures: Figures) -> Table:
    several = len(figures.fragmentation) > 1
    rows = [
        [f"{partition}: {name}" if several else name, *cells(FRAGMENTATION, found)]
        for partition, types in figures.fragmentation.items()
        for name, found in types.items()
        if found.of_free is not None
    ]
    return Table("Fragmentation", ["free but unusable", *columns(FRAGMENTATION)], rows)
