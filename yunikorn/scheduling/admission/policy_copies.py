"""Copies of objects for policies that may block, while the core continues."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import attrs

if TYPE_CHECKING:
    from yunikorn.api import PastService


class ObjectCopy:
    """Attributes of an object at one moment."""

    @classmethod
    def of(cls, one: Any) -> Self:
        """Return a copy of an object."""
        names = (field.name for field in attrs.fields(cls))  # type: ignore[arg-type]
        return cls(**{name: _copied(name, getattr(one, name)) for name in names})


@attrs.frozen(kw_only=True)
class QueueCopy(ObjectCopy):
    """A queue and its parents; see `yunikorn.api.Queue`."""

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


@attrs.frozen(kw_only=True)
class ApplicationCopy(ObjectCopy):
    """An application without its allocations; see `yunikorn.api.Application`."""

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


@attrs.frozen(kw_only=True)
class NodeCopy(ObjectCopy):
    """A node without its allocations; see `yunikorn.api.Node`."""

    id: str
    attributes: Mapping[str, str]
    capacity: Mapping[str, int]
    allocated: Mapping[str, int]
    occupied: Mapping[str, int]
    available: Mapping[str, int]


@attrs.frozen(kw_only=True)
class AllocationCopy(ObjectCopy):
    """A placement; see `yunikorn.api.Allocation`."""

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


PARTS: dict[str, type[ObjectCopy]] = {
    "queue": QueueCopy,
    "parent": QueueCopy,
    "app": ApplicationCopy,
    "node": NodeCopy,
}
"""Copies of the objects to which others refer, by attribute."""


def _copied(name: str, value: Any) -> Any:
    if value is not None and name in PARTS:
        return PARTS[name].of(value)
    if not isinstance(value, Mapping):
        return value
    return MappingProxyType(dict(value)) if name == "tags" else dict(value)
