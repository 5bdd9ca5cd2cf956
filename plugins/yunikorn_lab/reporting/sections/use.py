"""Sections of use: of the cluster, its idle capacity, its nodes, queues, users, and sizes of applications."""

from __future__ import annotations

from yunikorn.quantities import in_words
from yunikorn_lab.reporting.figures import (
    FRAGMENTATION,
    GANG_PLACES,
    GROUP,
    GUARANTEE,
    QUEUE_TASKS,
    SLICES,
    cells,
    columns,
)
from yunikorn_lab.reporting.figures import IDLE as IDLE_FIGURES
from yunikorn_lab.reporting.full_report import FullReport
from yunikorn_lab.reporting.group_counts import GroupReport
from yunikorn_lab.reporting.idle_capacity import CAUSES
from yunikorn_lab.reporting.section import Picture, Section
from yunikorn_lab.reporting.tables import Number, Table, duration, percent, ratio, whole_percent
from yunikorn_lab.reporting.topology_rooms import TopologyReport

CLUSTER, IDLE, NODES = "cluster.png", "idle.png", "nodes.png"
QUEUES, USERS = "queue-use.png", "users.png"
MOST = 10
"""Maximum number of listed users, those with the highest usage."""

# -- the cluster ------------------------------------------------------------------------------------------


def cluster_section(result: FullReport) -> Section | None:
    """Return the use of the cluster and its fragmentation; both are empty if nothing was submitted."""
    caption = (
        "Used resources below the line of the capacity. Room between both is free; the part of it on nodes "
        "on which no waiting task fits is marked."
    )
    tables = [_cluster_use_at_end(result), _fragmentation(result)]
    return Section(
        "cluster",
        "Use of the cluster",
        "Is the cluster the bottleneck? If all of a resource is used while tasks wait, it is.",
        pictures=[Picture(CLUSTER, caption, lambda plots, _: plots.plot_cluster(result.history))],
        tables=[table for table in tables if table.rows],
    )


def _cluster_use_at_end(result: FullReport) -> Table:
    found = result.figures.use_at_end
    rows = [
        [result.history.label(partition, name), Number(percent, share)]
        for partition, types in found.items()
        for name, share in types.items()
        if any(types.values())
    ]
    return Table("Use at the end", ["resource", "used"], rows)


def _fragmentation(result: FullReport) -> Table:
    found = result.figures.fragmentation
    rows = [
        [result.history.label(partition, name), *cells(FRAGMENTATION, fragmentation)]
        for partition, types in found.items()
        for name, fragmentation in types.items()
        if fragmentation.of_free is not None
    ]
    return Table("Fragmentation", ["free but unusable", *columns(FRAGMENTATION)], rows)


def idle_section(result: FullReport) -> Section | None:
    """Return the capacity that stood idle while work waited, by cause; None if there was none."""
    table = _idle(result)
    if not table.rows:
        return None
    caption = "Capacity that stood idle while work waited, as a stack of what kept the work from it."
    lead = "Is there room that waiting work wants but does not get, and why?"
    picture = Picture(IDLE, caption, lambda plots, _: plots.plot_idle(result.history))
    return Section("idle", "Idle while work waits", lead, pictures=[picture], tables=[table])


def _idle(result: FullReport) -> Table:
    found = [
        (result.history.label(partition, name), idle)
        for partition, types in result.figures.idle.items()
        for name, idle in types.items()
        if idle.causes
    ]
    causes = [cause for cause in CAUSES if any(cause in idle.causes for _, idle in found)]
    rows = [
        [
            name,
            *cells(IDLE_FIGURES, idle),
            *(Number(percent, idle.causes.get(cause)) for cause in causes),
        ]
        for name, idle in found
    ]
    return Table("Idle while work waits", ["part of the capacity", *columns(IDLE_FIGURES), *causes], rows)


def topology_section(result: FullReport) -> Section | None:
    """Return the room of domains and the places of gangs; None without gangs that ask for domains."""
    found = result.figures.topology
    if not found:
        return None
    tables = [
        table
        for partition, report in found.items()
        for table in (
            _slices(result, partition, report),
            _stranded(result, partition, report),
            _gangs(result, partition, report),
        )
        if table.rows
    ]
    lead = "Is the free room in one piece, and do gangs stay together?"
    return Section("topology", "Topology", lead, tables=tables)


def _slices(result: FullReport, partition: str, report: TopologyReport) -> Table:
    rows = [
        [result.history.label(partition, each.level), str(each.size), *cells(SLICES, each)]
        for each in report.slices
    ]
    title = f"Room of domains for gangs, in members of {in_words(report.unit)}"
    return Table(title, ["level", "members", *columns(SLICES)], rows, is_ordered=True)


def _stranded(result: FullReport, partition: str, report: TopologyReport) -> Table:
    rows = [
        [result.history.label(partition, name), Number(percent, share)]
        for name, share in report.stranded.items()
        if share
    ]
    return Table("Free on nodes without room for such a member", ["resource", "of capacity"], rows)


def _gangs(result: FullReport, partition: str, report: TopologyReport) -> Table:
    levels = list(dict.fromkeys(level for each in report.gangs for level in each.spread))
    rows = [
        [
            result.history.label(partition, each.members),
            *cells(GANG_PLACES, each),
            *(
                Number(form, values.get(level))
                for level in levels
                for values, form in ((each.in_one, percent), (each.spread, ratio))
            ),
        ]
        for each in report.gangs
    ]
    heads = [head for level in levels for head in (f"in one {level}", f"{level}s needed")]
    columns_of = ["members", *columns(GANG_PLACES), *heads]
    note = "needed: number of domains that the gangs use, divided by the smallest possible number"
    return Table("Gangs by size", columns_of, rows, note, is_ordered=True)


def nodes_section(result: FullReport) -> Section | None:
    """Return the use of nodes over time; it is empty without nodes."""
    merged = result.history.nodes.per_row
    rows = "Each row is a node" if merged == 1 else f"Each row is {merged} nodes, named after its first"
    caption = (
        f"{rows}, in the order in which nodes registered. The brighter, the more of it was used; "
        "grey: not registered."
    )
    picture = Picture(NODES, caption, lambda plots, _: plots.plot_nodes(result.history))
    return Section("nodes", "Nodes", "Is the load spread evenly?", pictures=[picture])


# -- queues and applications ------------------------------------------------------------------------------


def queues_section(result: FullReport) -> Section | None:
    """Return the use of the queues, their tasks and guarantees; all are empty if no queue was used."""
    tables = [_queue_use(result), _queue_use_at_end(result), _guarantees(result)]
    return Section(
        "queues",
        "Use of the queues",
        "Which queue uses how much, and does each have its guarantee?",
        pictures=[
            Picture(
                QUEUES,
                "Usage of each queue, with its guarantee (dashed) and its limit (red), if it has any. Usage "
                "above the guarantee is borrowed.",
                lambda plots, colours: plots.plot_queues(result.history, colours),
            )
        ],
        tables=[table for table in tables if table.rows],
    )


def _queue_use(result: FullReport) -> Table:
    queues = result.report.queues
    types = sorted({name for queue in queues for name in queue.utilisation})
    rows = [
        [
            result.history.label(queue.partition, queue.queue),
            *cells(QUEUE_TASKS, queue),
            *(Number(whole_percent, queue.utilisation.get(each)) for each in types),
        ]
        for queue in queues
    ]
    heads = ["queue", *columns(QUEUE_TASKS), *(f"use of {name}" for name in types)]
    return Table("Tasks and use by queue", heads, rows, has_queues=True)


def _queue_use_at_end(result: FullReport) -> Table:
    queues = [queue for queue in result.figures.queues if any(queue.use_at_end.values())]
    types = sorted({name for queue in queues for name in queue.use_at_end})
    rows = [
        [
            result.history.label(queue.partition, queue.name),
            *(Number(percent, queue.use_at_end.get(each)) for each in types),
        ]
        for queue in queues
    ]
    return Table("Use at the end by queue", ["queue", *types], rows, has_queues=True)


def _guarantees(result: FullReport) -> Table:
    rows = [
        [
            result.history.label(group.partition, group.name),
            in_words({name: kept.guaranteed}),
            *cells(GUARANTEE, kept),
        ]
        for group in result.figures.queues
        for name, kept in group.guarantees.items()
    ]
    return Table("Guarantees", ["queue", "guaranteed", *columns(GUARANTEE)], rows, has_queues=True)


def users_section(result: FullReport) -> Section | None:
    """Return the users with the highest usage; None if there was at most one user."""
    users = result.figures.users
    if len(users) < 2:
        return None
    ranked = sorted(users, key=lambda user: (-user.use, user.name))
    more = len(users) - MOST
    note = f"{more} more users are in report.json" if more > 0 else ""
    table = _groups("Users, highest use first", "user", ranked[:MOST], note)
    caption = "Use and waiting tasks over time of the users with the highest use, and of all others together."
    return Section(
        "users",
        "Users",
        "Who uses the cluster, and who waits?",
        paragraphs=_late(result),
        pictures=[Picture(USERS, caption, lambda plots, _: plots.plot_users(result.history))],
        tables=[table],
    )


def _late(result: FullReport) -> list[str]:
    """Return a note about users whose series began during the run."""
    late = [user for user in result.history.users if user.since is not None]
    if not late:
        return []
    named = ", ".join(f"{user.user} ({duration(user.since)})" for user in late)
    return [f"Before these times the plot counts users among the others: {named}."]


def sizes_section(result: FullReport) -> Section | None:
    """Return the size classes; None without applications of different sizes."""
    sizes = result.figures.sizes
    if len(sizes) < 2:
        return None
    table = _groups("Sizes (part of the cluster that an application asks for)", "size", sizes)
    return Section("sizes", "Sizes of applications", "Do large applications wait longer?", tables=[table])


def _groups(title: str, column: str, groups: list[GroupReport], note: str = "") -> Table:
    rows = [[group.name, *cells(GROUP, group)] for group in groups]
    return Table(title, [column, *columns(GROUP)], rows, note)
