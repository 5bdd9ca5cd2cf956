"""Foreign allocations: pods that use a node but are not scheduled here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from yunikorn.api import PastService
from yunikorn.api.views import NO_USAGE
from yunikorn.model.creation_times import created_at
from yunikorn.resources import INT32_MIN, NOTHING

if TYPE_CHECKING:
    from yunikorn.model.node import Node
    from yunikorn.resources import Resource

NO_TAGS: Mapping[str, str] = MappingProxyType({})


class ForeignOwner:
    """Application of all foreign tasks; implements `yunikorn.api.Application` with neutral values.

    Its id is empty, which no application of a resource manager can have.
    """

    __slots__ = ()

    id: Final = ""
    user: Final = ""
    groups: Sequence[str] = ()
    queue_name: Final = ""
    queue: Final = None
    tags = NO_TAGS
    state: Final = ""
    arrival: Final = -1
    submitted: Final = 0
    priority: Final = INT32_MIN
    allocated: Mapping[str, int] = NOTHING
    pending: Mapping[str, int] = NOTHING
    demand: Mapping[str, int] = NOTHING
    fair_total: Mapping[str, int] = NOTHING
    waiting_since: Final = 0
    allocations: Mapping[str, ForeignAllocation] = MappingProxyType({})
    allocations_by_node: Mapping[str, Sequence[ForeignAllocation]] = MappingProxyType({})
    past: Final = PastService()
    usage: Final = NO_USAGE

    def __repr__(self) -> str:
        return "<owner of foreign tasks>"


FOREIGN_OWNER: Final = ForeignOwner()


class ForeignAllocation:
    """Resources of a node used by a pod that is not scheduled here; implements `yunikorn.api.Allocation`."""

    __slots__ = ("awaited", "fixed", "key", "node", "placed", "priority", "resource", "tags")

    app: Final = FOREIGN_OWNER
    foreign: Final = True
    task_group: Final = ""
    placeholder: Final = False
    originator: Final = False
    execution_timeout: Final = 0

    def __init__(
        self,
        key: str,
        node: Node,
        resource: Resource,
        fixed: bool,
        tags: Mapping[str, str] = NO_TAGS,
        priority: int = 0,
        placed: int = 0,
        *,
        awaited: bool = False,
    ) -> None:
        self.key = key
        self.node = node
        self.resource = resource
        self.fixed = fixed
        """True if the allocation belongs to the node, such as a static pod, and ends only with the node."""
        self.tags = tags
        self.priority = priority
        self.placed = placed
        """Time at which the allocation was first reported (ns)."""
        self.awaited = awaited
        """True for an allocation of an application that has not been reported yet: it only occupies room."""

    @property
    def uuid(self) -> str:
        """Identifier, the key."""
        return self.key

    @property
    def created(self) -> int:
        """Creation time of the task as the RM reported it, else the time of the first report (ns)."""
        return created_at(self.tags, self.placed)

    @property
    def label(self) -> str:
        """Name of the allocation in messages."""
        return f"foreign task {self.key}"

    def equals(self, other: ForeignAllocation) -> bool:
        """Return True if another report says the same about the task: node, amount, priority and tags."""
        return (
            self.node is other.node
            and self.resource == other.resource
            and self.priority == other.priority
            and self.tags == other.tags
        )

    def __repr__(self) -> str:
        return f"<ForeignAllocation {self.key} on {self.node.id}>"
