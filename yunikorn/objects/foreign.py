"""Foreign allocations: what runs on nodes without having been scheduled here (facts §10.6).

They count as occupied on their node and nowhere else: no application, no queue, no user has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from yunikorn.objects.allocation_accounting import AllocationAccounting
    from yunikorn.objects.event_recorder import EventRecorder
    from yunikorn.objects.node import Node
    from yunikorn.resources import Resource


@attrs.frozen(eq=False)
class ForeignAllocation:
    """An amount of a node that somebody else uses."""

    key: str
    node: Node
    resource: Resource
    fixed: bool
    """Whether it belongs to the node itself and goes only with it."""


class ForeignAllocations:
    """All foreign allocations of a partition by key."""

    def __init__(self, accounting: AllocationAccounting, event_recorder: EventRecorder) -> None:
        self._accounting = accounting
        self._event_recorder = event_recorder
        self._known: dict[str, ForeignAllocation] = {}

    def __iter__(self) -> Iterator[ForeignAllocation]:
        return iter(self._known.values())

    def __len__(self) -> int:
        return len(self._known)

    def put(self, one: ForeignAllocation) -> None:
        """Note a foreign allocation, or that a known one changed its size or its node."""
        known = self._known.get(one.key)
        if known is not None:
            del known.node.foreign[one.key]
            if known.node is not one.node:
                self._changed(known.node)
        self._known[one.key] = one.node.foreign[one.key] = one
        self._changed(one.node)

    def release(self, key: str) -> bool:
        """A foreign allocation ended; returns whether there was one."""
        known = self._known.pop(key, None)
        if known is None:
            return False
        del known.node.foreign[key]
        self._changed(known.node)
        return True

    def forget(self, node: Node) -> None:
        """A node goes, and all that runs on it."""
        for key in node.foreign:
            del self._known[key]
        node.foreign.clear()

    def _changed(self, node: Node) -> None:
        node.resize()
        self._accounting.node_reservations.capacity_changed(node)
        self._accounting.node_changed(node, gained=True)
        self._event_recorder.record(
            "NODE", node.id, change="SET", detail="NODE_OCCUPIED", resource=node.occupied
        )
