"""Samples as they are after others have used more: equal except for usage that is not their own."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import attrs

from yunikorn.resources import Resource
from yunikorn.testing.samples import AllocationSample, ApplicationSample, NodeSample, QueueSample

MORE = {"vcore": 7_000, "memory": 3_000_000_000, "gpu": 1}
"""Amounts that others use in addition."""


def busier_queue(queue: QueueSample) -> QueueSample:
    """Return a queue in which, and above which, more is used and wanted."""
    return attrs.evolve(
        queue,
        allocated=_more(queue.allocated),
        pending=_more(queue.pending),
        recent=MappingProxyType({**queue.recent, "vcore": queue.recent.get("vcore", 0.0) + 1e9}),
        unused_by_siblings=_more(queue.unused_by_siblings),
        parent=None if queue.parent is None else busier_queue(queue.parent),
    )


def below_busier_queues(queue: QueueSample) -> QueueSample:
    """Return the same queue, with more used in the queues above."""
    return queue if queue.parent is None else attrs.evolve(queue, parent=busier_queue(queue.parent))


def beside_busier_applications(app: ApplicationSample) -> ApplicationSample:
    """Return the same application in a queue that others use more."""
    return app if app.queue is None else attrs.evolve(app, queue=busier_queue(app.queue))


def beside_busier_allocations(allocation: AllocationSample) -> AllocationSample:
    """Return the same allocation, with more used on its node, by its application, and in its queue."""
    app = beside_busier_applications(allocation.app)
    app = attrs.evolve(app, allocated=_more(app.allocated), pending=_more(app.pending))
    return attrs.evolve(allocation, node=_busier_node(allocation.node), app=app)


def _busier_node(node: NodeSample) -> NodeSample:
    return attrs.evolve(node, allocated=_more(node.allocated))


def _more(amounts: Mapping[str, int]) -> Resource:
    return Resource({name: amounts.get(name, 0) + MORE.get(name, 0) for name in {**amounts, **MORE}})
