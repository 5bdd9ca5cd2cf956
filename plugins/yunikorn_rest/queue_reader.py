"""Readers of queues: from objects of the core to shapes."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any

from yunikorn.resources import INT32_MAX
from yunikorn.states import ACCEPTED
from yunikorn_rest import shapes
from yunikorn_rest.application_reader import present
from yunikorn_rest.time_texts import go_duration
from yunikorn_service.fields import NONE

if TYPE_CHECKING:
    from yunikorn.accounting.queue_tree import QueueTree
    from yunikorn.model.queue import Queue

STEP = 10
"""Number of queues that are read without a pause."""
APPS_PER_STEP = 2000
"""Number of applications of a queue that are looked at without a pause."""


def read_tree(tree: QueueTree, top: Queue, partition: str) -> Generator[None, None, shapes.Queue]:
    """Read a queue and all queues below; queues that are removed meanwhile are left out.

    `partition` is the name that only the top queue shows.
    """
    inside = {top}
    members: list[Queue] = []
    # The tree lists parents before their children. It is copied without a pause: queues may come and go.
    for index, queue in enumerate(list(tree)):
        if queue is top or queue.parent in inside:
            inside.add(queue)
            members.append(queue)
        if index % APPS_PER_STEP == APPS_PER_STEP - 1:
            yield
    found: list[tuple[Queue, dict[str, Any]]] = []
    for queue in members:
        if queue is top or tree.queue(queue.path) is queue:
            found.append((queue, (yield from read_fields(queue))))
        if len(found) % STEP == 0:
            yield
    children: dict[Queue, list[shapes.Queue]] = {}
    for index, (queue, fields) in enumerate(reversed(found)):
        below = tuple(reversed(children.pop(queue, [])))
        if queue is top:
            return shapes.Queue(children=below, **{**fields, "partition": partition})
        assert queue.parent is not None
        children.setdefault(queue.parent, []).append(shapes.Queue(children=below, **fields))
        if index % STEP == 0:
            yield
    raise AssertionError("the top queue is always read")


def read_queue(queue: Queue) -> Generator[None, None, shapes.Queue]:
    """Read a queue without the queues below."""
    return shapes.Queue(**(yield from read_fields(queue)))


def read_fields(queue: Queue) -> Generator[None, None, dict[str, Any]]:
    """Read all fields of a queue except its children."""
    applications = list(queue.applications.values())
    parent, quota, settings = queue.parent, queue.max, queue.settings
    allocated = present(queue.allocated)
    found = {
        "queuename": queue.path,
        "status": queue.state,
        "pending_resource": present(queue.pending),
        "max_resource": quota or NONE,
        "guaranteed_resource": queue.guaranteed,
        "allocated_resource": allocated,
        "preempting_resource": present(queue.preempting),
        "headroom": queue.headroom or NONE,
        "abs_used_capacity": percentages(quota or NONE, allocated),
        "is_leaf": queue.is_leaf,
        "is_managed": queue.managed,
        "properties": queue.properties,
        "parent": "" if parent is None else parent.path,
        "template": _template(queue),
        "child_names": tuple(child.path for child in queue.children.values()),
        "max_running_apps": queue.max_applications,
        "running_apps": queue.running,
        "current_priority": queue.priority,
        "sorting_policy": settings.app_sort if queue.is_leaf else settings.queue_sort,
        "priority_sorting": settings.sort_priority,
        "preemption_enabled": settings.preemption_policy != "disabled",
        "is_preemption_fence": settings.preemption_policy == "fence",
        "preemption_delay": go_duration(settings.preemption_delay),
        "is_priority_fence": settings.priority_fence,
        "priority_offset": settings.priority_offset,
        "quota_preemption_delay": go_duration(settings.quota_preemption_delay),
        "unsched_ask_backoff": settings.backoff_count,
        "ask_backoff_delay": go_duration(settings.backoff_delay) if settings.backoff_count else "",
    }
    if (by_policy := queue.policy_quota) is not None:
        found["quota_policy"] = by_policy.policy
        found["quota_reason"] = by_policy.failure or by_policy.why
        found["configured_max_resource"] = queue.configured_max or NONE
    starting: list[str] = []
    for index, app in enumerate(applications):
        if app.counted and app.state == ACCEPTED:
            starting.append(app.id)
        if index % APPS_PER_STEP == APPS_PER_STEP - 1:
            yield
    found["allocating_accepted_apps"] = tuple(starting)
    return found


def _template(queue: Queue) -> shapes.Template | None:
    template = queue.template
    if template is None or queue.is_leaf:
        return None
    return shapes.Template(
        max_applications=template.max_applications,
        properties=template.properties,
        max_resource=template.max or NONE,
        guaranteed_resource=template.guaranteed or NONE,
    )


def percentages(capacity: Mapping[str, int], used: Mapping[str, int]) -> dict[str, int]:
    """Return the use in percent of the capacity, truncated, for the types that both have.

    Use of a type without capacity is 100 percent.
    """
    found = {}
    for name, most in capacity.items():
        amount = used.get(name)
        if amount is not None:
            percent = 0 if amount <= 0 else 100 if most <= 0 else amount * 100 // most
            found[name] = min(percent, INT32_MAX)
    return found
