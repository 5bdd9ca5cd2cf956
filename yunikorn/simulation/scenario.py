"""A workload from a scenario: a YAML file of our own (docs/simulation.md describes every key)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import attrs

from yunikorn.config.document import Mapping, compose, show
from yunikorn.config.reading import Findings, Table
from yunikorn.errors import ConfigError, Problem
from yunikorn.objects.gang import HARD, SOFT, STYLES
from yunikorn.simulation.input_error import InputError
from yunikorn.simulation.machines import numbered
from yunikorn.simulation.reloads import ConfigEvent
from yunikorn.simulation.scenario_nodes import read_events, read_nodes, read_reloads
from yunikorn.simulation.scenario_values import (
    read_count,
    read_name,
    read_resources,
    read_runtime,
    read_time,
)
from yunikorn.simulation.workload import PREEMPTED, Application, Node, NodeEvent, TaskGroup, Workload

KEYS = ("name", "nodes", "events", "applications")
CLUSTER_KEYS = ("name", "nodes", "events")
APPLICATION_KEYS = (
    "id",
    "count",
    "every",
    "user",
    "groups",
    "queue",
    "tags",
    "partition",
    "submit",
    "tasks",
    "gang",
    "gangtimeout",
    "timeout",
    "preempted",
)
TASK_KEYS = ("name", "count", "resources", "runtime", "priority", "tags", "timeout")
NOBODY = "nobody"
"""The owner of an application that names none: the core takes no application without."""

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
MAX_COUNT = 10_000_000


@attrs.frozen
class Cluster:
    """Nodes, what happens to them, and configurations that are brought in."""

    nodes: list[Node]
    events: list[NodeEvent] = attrs.Factory(list)
    reloads: list[ConfigEvent] = attrs.Factory(list)


def read_scenario(text: str, file: str, name: str, cluster: Cluster | None = None) -> Workload:
    """The workload of a scenario; raises `InputError` with every problem found.

    A `cluster` from elsewhere takes the place of the scenario's own nodes and of what happens to them.
    """
    document = _open(text, file)
    document.only(KEYS)
    if cluster is None:
        cluster = _read_cluster(document, file)
    else:
        reloads = [*read_reloads(document, Path(file).parent), *cluster.reloads]
        cluster = attrs.evolve(cluster, reloads=sorted(reloads, key=lambda event: event.at))
    applications = _read_applications(document)
    if not applications and not document.findings.problems:
        document.findings.problem(document.spot("applications"), "names no applications")
    _raise_problems(document, file)
    applications.sort(key=lambda application: application.submit)
    return Workload(
        document.text("name") or name,
        "scenario",
        cluster.nodes,
        applications,
        cluster.events,
        reloads=cluster.reloads,
    )


def read_cluster(text: str, file: str) -> Cluster:
    """Nodes and events of a YAML file that has nothing else; raises `InputError`."""
    document = _open(text, file)
    document.only(CLUSTER_KEYS)
    cluster = _read_cluster(document, file)
    _raise_problems(document, file)
    return cluster


def _open(text: str, file: str) -> Table:
    findings = Findings()
    try:
        root, problems = compose(text)
    except ConfigError as error:
        raise InputError(file, error.problems) from error
    findings.problems.extend(problems)
    if root is None:
        raise InputError(file, [Problem("", "holds nothing but comments")])
    if not isinstance(root, Mapping):
        what = f"expected a mapping with the keys {', '.join(KEYS)}, got {show(root)}"
        raise InputError(file, [Problem("", what, root.line, root.column)])
    return Table("", root, findings)


def _raise_problems(document: Table, file: str) -> None:
    if document.findings.problems:
        ordered = sorted(document.findings.problems, key=lambda problem: (problem.line, problem.column))
        raise InputError(file, ordered)


def _read_cluster(document: Table, file: str) -> Cluster:
    wrong = len(document.findings.problems)
    nodes = read_nodes(document)
    events = read_events(document, nodes)
    if not nodes and not events and len(document.findings.problems) == wrong:
        document.findings.problem(document.spot("nodes"), "names no nodes")
    return Cluster(nodes, events, read_reloads(document, Path(file).parent))


def _read_applications(document: Table) -> list[Application]:
    found: dict[str, Application] = {}
    for table in document.tables("applications"):
        for application in _read_alike(table):
            if application.id and application.id in found:
                table.findings.problem(
                    table.spot("id"), f"an application is already called '{application.id}'"
                )
                break
            found[application.id] = application
    return list(found.values())


def _read_alike(table: Table) -> Iterator[Application]:
    table.only(APPLICATION_KEYS)
    count = read_count(table, MAX_COUNT)
    first = read_time(table, "submit", 0)
    every = read_time(table, "every", 0)
    application = Application(
        id=read_name(table, "id"),
        submit=first,
        tasks=_read_tasks(table),
        queue=table.text("queue"),
        user=table.text("user") or NOBODY,
        groups=tuple(text for text, _ in table.texts("groups")),
        partition=table.text("partition"),
        tags=table.pairs("tags"),
        gang=_read_choice(table, "gang", STYLES),
        patience=read_time(table, "gangtimeout", 0),
        timeout=read_time(table, "timeout", 0),
        preempted=_read_choice(table, "preempted", PREEMPTED),
    )
    _check_times(table, application)
    for index, name in enumerate(numbered(application.id, count)):
        yield attrs.evolve(application, id=name, submit=first + index * every)


def _read_choice(table: Table, key: str, known: tuple[str, ...]) -> str:
    text = table.text(key)
    if text and text not in known:
        table.findings.problem(table.spot(key), f"expected {' or '.join(known)}, got '{text}'")
    return text


def _check_times(table: Table, application: Application) -> None:
    """An application has one time: for its placeholders if it has any, else for itself."""
    if application.patience and not application.has_placeholders:
        what_to_do = f"say gang: {SOFT} or gang: {HARD}, or leave it out"
        table.findings.problem(
            table.spot("gangtimeout"), f"only a gang with placeholders has one: {what_to_do}"
        )
    if application.timeout and application.has_placeholders:
        table.findings.problem(
            table.spot("timeout"),
            "a gang with placeholders has only gangtimeout: limit its tasks, each with a timeout, instead",
        )


def _read_tasks(application: Table) -> tuple[TaskGroup, ...]:
    wrong = len(application.findings.problems)
    groups: dict[str, TaskGroup] = {}
    for number, table in enumerate(application.tables("tasks"), 1):
        table.only(TASK_KEYS)
        name = table.text("name") or f"task-{number}"
        if name in groups:
            table.findings.problem(
                table.spot("name"), f"tasks of this application are already called '{name}'"
            )
        groups[name] = TaskGroup(
            name=name,
            count=read_count(table, MAX_COUNT),
            resources=read_resources(table, "a task"),
            runtime=read_runtime(table),
            priority=_read_priority(table),
            tags=table.pairs("tags"),
            timeout=read_time(table, "timeout", 0),
        )
    if not groups and len(application.findings.problems) == wrong:
        application.findings.problem(application.spot("tasks"), "an application needs tasks")
    return tuple(groups.values())


def _read_priority(table: Table) -> int | None:
    return table.integer("priority", INT32_MIN, INT32_MAX) if "priority" in table else None
