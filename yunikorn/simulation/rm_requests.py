"""What the simulated resource manager writes: applications and asks as messages of the interface."""

from __future__ import annotations

from yunikorn.clock import MILLISECOND
from yunikorn.interface.messages import (
    AddApplicationRequest,
    AllocationAsk,
    UpdateRequest,
    UserGroupInformation,
)
from yunikorn.simulation.rm_state import SentAsk, Submitted
from yunikorn.simulation.workload import WorkloadApplication, WorkloadTaskGroup

PLACEHOLDER = "~placeholder"
"""Ends the key of an ask that keeps room for the tasks of its group."""


def submission(plan: WorkloadApplication) -> AddApplicationRequest:
    """The application without its asks; of a gang also how it wants to be placed."""
    request = AddApplicationRequest(
        plan.id,
        plan.queue,
        plan.partition,
        UserGroupInformation(plan.user, list(plan.groups)),
        dict(plan.tags),
        _milliseconds(plan.patience if plan.has_placeholders else plan.timeout),
    )
    if plan.gang:
        request.gang_scheduling_style, request.placeholder_ask = plan.gang, plan.total
    return request


def ask_for(plan: WorkloadApplication, key: str, group: WorkloadTaskGroup, count: int) -> AllocationAsk:
    """An ask for `count` tasks of a group."""
    return AllocationAsk(
        key,
        plan.id,
        plan.partition,
        group.resources,
        count,
        group.priority,
        execution_timeout_ms=_milliseconds(group.timeout),
        tags=dict(group.tags),
        task_group_name=group.name if plan.gang else "",
    )


def ask_for_tasks(record: Submitted, moment: int) -> list[AllocationAsk]:
    """Asks for all tasks of an application, entered into its record."""
    plan = record.plan
    for group in plan.tasks:
        record.ask(group.name, group, group.count, moment)
    return [ask_for(plan, group.name, group, group.count) for group in plan.tasks]


def ask_for_places(record: Submitted, moment: int) -> list[AllocationAsk]:
    """Asks for placeholders of all tasks of a gang, entered into its record."""
    return [ask_for_place(record, group, group.count, moment) for group in record.plan.tasks]


def ask_for_place(record: Submitted, group: WorkloadTaskGroup, count: int, moment: int) -> AllocationAsk:
    """An ask for `count` placeholders of a group, entered into the application's record."""
    again = f"~{record.places_lost}" if record.places_lost else ""
    key = f"{group.name}{PLACEHOLDER}{again}"
    record.places[key] = SentAsk(key, group, count, moment)
    ask = ask_for(record.plan, key, group, count)
    # Only the task itself has a time to run; a placeholder is held as long as the gang has patience.
    ask.placeholder, ask.execution_timeout_ms = True, 0
    return ask


def add_application(request: UpdateRequest, record: Submitted, moment: int) -> None:
    """Submit an application, with its asks, or with those for its placeholders if it gathers them first."""
    request.new_applications.append(submission(record.plan))
    asks = ask_for_places if record.plan.has_placeholders else ask_for_tasks
    request.asks.extend(asks(record, moment))


def _milliseconds(time: int) -> int:
    # Rounded up: 0 would be no limit at all.
    return -(-time // MILLISECOND)
