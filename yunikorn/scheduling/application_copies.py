"""Copies of applications and placements for policies that worker threads call, while the core continues."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from yunikorn.api import Allocation, Application, Node, PastService, Queue


@attrs.frozen(kw_only=True)
class QueueCopy:
    """A queue and its parents at one moment; see `yunikorn.api.Queue`."""

    path: str
    guaranteed: Mapping[str, int]
    max: Mapping[str, int] | None
    configured_max: Mapping[str, int] | None
    unused_by_siblings: Mapping[str, int]
    fair_max: Mapping[str, int]
    total: Mapping[str, int]
    allocated: Mapping[str, int]
    pending: Mapping[str, int]
    demand: Mapping[str, int]
    recent: Mapping[str, float]
    priority: int
    properties: Mapping[str, str]
    parent: QueueCopy | None
    is_leaf: bool

    @classmethod
    def of(cls, queue: Queue) -> QueueCopy:
        """Return a copy of a queue."""
        configured, in_force = queue.configured_max, queue.max
        return cls(
            path=queue.path,
            guaranteed=dict(queue.guaranteed),
            max=None if in_force is None else dict(in_force),
            configured_max=None if configured is None else dict(configured),
            unused_by_siblings=dict(queue.unused_by_siblings),
            fair_max=dict(queue.fair_max),
            total=dict(queue.total),
            allocated=dict(queue.allocated),
            pending=dict(queue.pending),
            demand=dict(queue.demand),
            recent=dict(queue.recent),
            priority=queue.priority,
            properties=dict(queue.properties),
            parent=None if queue.parent is None else cls.of(queue.parent),
            is_leaf=queue.is_leaf,
        )


@attrs.frozen(kw_only=True)
class ApplicationCopy:
    """An application at one moment, without its allocations; see `yunikorn.api.Application`."""

    id: str
    user: str
    groups: tuple[str, ...]
    queue_name: str
    queue: QueueCopy | None
    tags: Mapping[str, str]
    state: str
    arrival: int
    submitted: int
    priority: int
    allocated: Mapping[str, int]
    pending: Mapping[str, int]
    demand: Mapping[str, int]
    fair_total: Mapping[str, int]
    waiting_since: int
    past: PastService

    @classmethod
    def of(cls, app: Application) -> ApplicationCopy:
        """Return a copy of an application."""
        return cls(
            id=app.id,
            user=app.user,
            groups=tuple(app.groups),
            queue_name=app.queue_name,
            queue=None if app.queue is None else QueueCopy.of(app.queue),
            tags=MappingProxyType(dict(app.tags)),
            state=app.state,
            arrival=app.arrival,
            submitted=app.submitted,
            priority=app.priority,
            allocated=dict(app.allocated),
            pending=dict(app.pending),
            demand=dict(app.demand),
            fair_total=dict(app.fair_total),
            waiting_since=app.waiting_since,
            past=app.past,
        )


@attrs.frozen(kw_only=True)
class NodeCopy:
    """A node at one moment, without its allocations; see `yunikorn.api.Node`."""

    id: str
    attributes: Mapping[str, str]
    capacity: Mapping[str, int]
    allocated: Mapping[str, int]
    occupied: Mapping[str, int]
    available: Mapping[str, int]

    @classmethod
    def of(cls, node: Node) -> NodeCopy:
        """Return a copy of a node."""
        return cls(
            id=node.id,
            attributes=node.attributes,
            capacity=dict(node.capacity),
            allocated=dict(node.allocated),
            occupied=dict(node.occupied),
            available=dict(node.available),
        )


@attrs.frozen(kw_only=True)
class AllocationCopy:
    """A placement at one moment; see `yunikorn.api.Allocation`."""

    uuid: str
    key: str
    app: ApplicationCopy
    node: NodeCopy
    placed: int
    created: int
    foreign: bool
    resource: Mapping[str, int]
    priority: int
    tags: Mapping[str, str]
    task_group: str
    placeholder: bool
    originator: bool
    execution_timeout: int

    @classmethod
    def of(cls, one: Allocation) -> AllocationCopy:
        """Return a copy of a placement."""
        return cls(
            uuid=one.uuid,
            key=one.key,
            app=ApplicationCopy.of(one.app),
            node=NodeCopy.of(one.node),
            placed=one.placed,
            created=one.created,
            foreign=one.foreign,
            resource=dict(one.resource),
            priority=one.priority,
            tags=MappingProxyType(dict(one.tags)),
            task_group=one.task_group,
            placeholder=one.placeholder,
            originator=one.originator,
            execution_timeout=one.execution_timeout,
        )
