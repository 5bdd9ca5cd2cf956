"""Explicitly listed applications of a scenario: the key `applications`."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from yunikorn.config.reading import Table
from yunikorn.model.gang import HARD, SOFT, STYLES
from yunikorn.simulation.machines import numbered
from yunikorn.simulation.scenario_values import (
    read_count,
    read_name,
    read_resources,
    read_runtime,
    read_time,
)
from yunikorn.simulation.workload import PREEMPTED, WorkloadApplication, WorkloadTaskGroup

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
"""Default user; the core refuses applications without a user."""

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
MAX_COUNT = 10_000_000


def read_applications(document: Table) -> list[WorkloadApplication]:
    """Read the applications in the order of the text; duplicate ids are reported as problems."""
    found: dict[str, WorkloadApplication] = {}
    for table in document.tables("applications"):
        for application in _read_alike(table):
            if application.id and application.id in found:
                table.findings.problem(table.spot("id"), f"duplicate application id '{application.id}'")
                break
            found[application.id] = application
    return list(found.values())


def _read_alike(table: Table) -> Iterator[WorkloadApplication]:
    table.only(APPLICATION_KEYS)
    count = read_count(table, MAX_COUNT)
    every = read_time(table, "every", 0)
    pattern = read_pattern(table, table.text("queue"), table.text("user"))
    application = attrs.evolve(pattern, tasks=_read_tasks(table))
    check_times(table, application)
    for index, name in enumerate(numbered(application.id, count)):
        yield attrs.evolve(application, id=name, submit=application.submit + index * every)


def read_pattern(table: Table, queue: str, user: str) -> WorkloadApplication:
    """Read the properties of an entry except tasks, `queue` and `user`."""
    return WorkloadApplication(
        id=read_name(table, "id"),
        submit=read_time(table, "submit", 0),
        tasks=(),
        queue=queue,
        user=user or NOBODY,
        groups=tuple(text for text, _ in table.texts("groups")),
        partition=table.text("partition"),
        tags=table.pairs("tags"),
        gang=_read_choice(table, "gang", STYLES),
        patience=read_time(table, "gangtimeout", 0),
        timeout=read_time(table, "timeout", 0),
        preempted=_read_choice(table, "preempted", PREEMPTED),
    )


def _read_choice(table: Table, key: str, known: tuple[str, ...]) -> str:
    text = table.text(key)
    if text and text not in known:
        table.findings.problem(table.spot(key), f"expected {' or '.join(known)}, got '{text}'")
    return text


def check_times(table: Table, application: WorkloadApplication) -> None:
    """Report conflicting timeouts: a gang with placeholders has `gangtimeout`, others have `timeout`."""
    if application.patience and not application.has_placeholders:
        what_to_do = f"set gang: {SOFT} or gang: {HARD}, or remove gangtimeout"
        table.findings.problem(
            table.spot("gangtimeout"), f"applies only to a gang with placeholders: {what_to_do}"
        )
    if application.timeout and application.has_placeholders:
        table.findings.problem(
            table.spot("timeout"),
            "does not apply to a gang with placeholders: set gangtimeout, or a timeout for each of its tasks",
        )


def _read_tasks(application: Table) -> tuple[WorkloadTaskGroup, ...]:
    wrong = len(application.findings.problems)
    groups: dict[str, WorkloadTaskGroup] = {}
    for number, table in enumerate(application.tables("tasks"), 1):
        table.only(TASK_KEYS)
        name = table.text("name") or f"task-{number}"
        if name in groups:
            table.findings.problem(table.spot("name"), f"duplicate task name '{name}' in this application")
        groups[name] = WorkloadTaskGroup(
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
