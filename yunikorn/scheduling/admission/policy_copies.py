"""Copies of objects for policies that may block, while the core continues."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import attrs

from yunikorn.api import Allocation, Application, Node, Queue

LEFT_OUT = ("allocations", "allocations_by_node")
"""Attributes that copies do not have: there may be very many allocations."""


class ObjectCopy:
    """Attributes of an object at one moment, by the names of its view in `yunikorn.api`."""

    @classmethod
    def of(cls, one: Any) -> Self:
        """Return a copy of an object."""
        names = (field.name for field in attrs.fields(cls))  # type: ignore[arg-type]
        return cls(**{name: _copied(name, getattr(one, name)) for name in names})

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


def _copy_of(view: type[Any]) -> type[ObjectCopy]:
    shown = [name for name in dir(view) if isinstance(getattr(view, name), property)]
    names = [name for name in shown if name not in LEFT_OUT]
    made: type[ObjectCopy] = attrs.make_class(
        f"{view.__name__}Copy", names, bases=(ObjectCopy,), frozen=True, slots=True, kw_only=True
    )
    return made


QueueCopy = _copy_of(Queue)
ApplicationCopy = _copy_of(Application)
NodeCopy = _copy_of(Node)
AllocationCopy = _copy_of(Allocation)

PARTS = {"queue": QueueCopy, "parent": QueueCopy, "app": ApplicationCopy, "node": NodeCopy}
"""Copies of the objects to which others refer, by attribute."""


def _copied(name: str, value: Any) -> Any:
    if value is not None and name in PARTS:
        return PARTS[name].of(value)
    if not isinstance(value, Mapping):
        return value
    return MappingProxyType(dict(value)) if name == "tags" else dict(value)
