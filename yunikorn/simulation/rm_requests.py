"""Messages of the simulated resource manager: applications and asks."""

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
"""Marker in the key of a placeholder ask, after the name of its task group."""


def submission(plan: WorkloadApplication) -> AddApplicationRequest:
    """Create the request for an application without its asks; gangs include their scheduling style."""
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
    """Create an ask for `count` tasks of a group."""
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
    """Create the asks for all tasks of an application, and enter them into its record."""
    plan = record.plan
    for group in plan.tasks:
        record.ask(group.name, group, group.count, moment)
    return [ask_for(plan, group.name, group, group.count) for group in plan.tasks]


def ask_for_places(record: Submitted, moment: int) -> list[AllocationAsk]:
    """Create the asks for placeholders of all tasks of a gang, and enter them into its record."""
    return [ask_for_place(record, group, group.count, moment) for group in record.plan.tasks]


def ask_for_place(record: Submitted, group: WorkloadTaskGroup, count: int, moment: int) -> AllocationAsk:
    """Create an ask for `count` placeholders of a group, and enter it into the application's record."""
    again = f"~{record.places_lost}" if record.places_lost else ""
    key = f"{group.name}{PLACEHOLDER}{again}"
    record.places[key] = SentAsk(key, group, count, moment)
    ask = ask_for(record.plan, key, group, count)
    # Only the task has a run time; the placeholder timeout of the application limits its placeholders.
    ask.placeholder, ask.execution_timeout_ms = True, 0
    return ask


def add_application(request: UpdateRequest, record: Submitted, moment: int) -> None:
    """Add an application to `request`, with the asks for its placeholders if any, else for its tasks."""
    request.new_applications.append(submission(record.plan))
    asks = ask_for_places if record.plan.has_placeholders else ask_for_tasks
    request.asks.extend(asks(record, moment))


def _milliseconds(time: int) -> int:
    # Rounded up, because 0 means no limit.
    return -(-time // MILLISECOND)
