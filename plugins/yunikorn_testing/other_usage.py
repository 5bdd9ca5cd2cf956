"""Samples as they are after others have used and requested more: equal except for what is not their own."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

import attrs

from yunikorn.api import PreemptionCause
from yunikorn.resources import Resource
from yunikorn_testing.samples import AllocationSample, ApplicationSample, NodeSample, QueueSample

MORE = {"vcore": 7_000, "memory": 3_000_000_000, "gpu": 1}
"""Amounts that others use in addition."""
USAGE = (
    "allocated",
    "available",
    "demand",
    "occupied",
    "pending",
    "priority",
    "recent",
    "unused_by_siblings",
    "waiting_since",
)
"""Attributes that change when more is used or requested."""


def read_usage(paths: Collection[str]) -> str:
    """Return those of the paths that lead to the usage of another object, as text; the own path is short."""
    return ", ".join(sorted(path for path in paths if "." in path and path.rpartition(".")[2] in USAGE))


def busier_queue(queue: QueueSample) -> QueueSample:
    """Return a queue in which, and above which, more is used and wanted."""
    return attrs.evolve(
        queue,
        allocated=_more(queue.allocated),
        pending=_more(queue.pending),
        recent=MappingProxyType({**queue.recent, "vcore": queue.recent.get("vcore", 0.0) + 1e9}),
        priority=queue.priority + 1_000,
        unused_by_siblings=_more(queue.unused_by_siblings),
        parent=None if queue.parent is None else busier_queue(queue.parent),
    )


def below_busier_queues(queue: QueueSample) -> QueueSample:
    """Return the same queue, with more used in the queues above."""
    return queue if queue.parent is None else attrs.evolve(queue, parent=busier_queue(queue.parent))


def beside_busier_applications(app: ApplicationSample) -> ApplicationSample:
    """Return the same application in a queue, and with tasks on nodes, that others use more."""
    tasks = {
        uuid: attrs.evolve(one, node=_busier_node(one.node), app=_in_busier_queue(one.app))
        for uuid, one in app.allocations.items()
    }
    return attrs.evolve(_in_busier_queue(app), allocations=MappingProxyType(tasks))


def below_busier_tasks(node: NodeSample) -> NodeSample:
    """Return the same node, with more used elsewhere by the applications of its tasks."""
    tasks = {uuid: attrs.evolve(one, app=_busier(one.app)) for uuid, one in node.allocations.items()}
    return attrs.evolve(node, allocations=MappingProxyType(tasks))


def beside_busier_allocations(allocation: AllocationSample) -> AllocationSample:
    """Return the same allocation, with more used on its node, by its application, and in its queue."""
    return attrs.evolve(allocation, node=_busier_node(allocation.node), app=_busier(allocation.app))


def with_busier_cause(cause: PreemptionCause) -> PreemptionCause:
    """Return the same cause, with more used in its queue and on its node."""
    queue, node = cause.queue, cause.node
    return attrs.evolve(
        cause,
        queue=busier_queue(queue) if isinstance(queue, QueueSample) else queue,
        node=_busier_node(node) if isinstance(node, NodeSample) else node,
    )


def _in_busier_queue(app: ApplicationSample) -> ApplicationSample:
    return app if app.queue is None else attrs.evolve(app, queue=busier_queue(app.queue))


def _busier(app: ApplicationSample) -> ApplicationSample:
    return attrs.evolve(
        _in_busier_queue(app),
        allocated=_more(app.allocated),
        pending=_more(app.pending),
        priority=app.priority + 1_000,
        waiting_since=app.waiting_since + 1,
    )


def _busier_node(node: NodeSample) -> NodeSample:
    return attrs.evolve(node, allocated=_more(node.allocated), occupied=_more(node.occupied))


def _more(amounts: Mapping[str, int]) -> Resource:
    return Resource({name: amounts.get(name, 0) + MORE.get(name, 0) for name in {**amounts, **MORE}})
