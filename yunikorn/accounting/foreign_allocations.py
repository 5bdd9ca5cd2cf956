"""Foreign allocations: usage of nodes by pods that are not scheduled here.

They count as occupied resources of their node. Applications, queues and users do not include them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from yunikorn.accounting.allocation_accounting import AllocationAccounting
    from yunikorn.model.foreign_allocation import ForeignAllocation
    from yunikorn.model.node import Node


class ForeignAllocations:
    """Foreign allocations of a partition by key."""

    def __init__(self, accounting: AllocationAccounting) -> None:
        self._accounting = accounting
        self._known: dict[str, ForeignAllocation] = {}

    def __iter__(self) -> Iterator[ForeignAllocation]:
        return iter(self._known.values())

    def __len__(self) -> int:
        return len(self._known)

    def put(self, one: ForeignAllocation) -> None:
        """Add a foreign allocation, or update the size, tags or node of a known one."""
        known, books = self._known.get(one.key), self._accounting.books
        is_same = False
        if known is not None:
            one.placed = known.placed
            is_same = one.equals(known)
            if books is not None and not is_same:
                books.foreign_released(known)
            del known.node.foreign[one.key]
            if known.node is not one.node:
                self._changed(known.node)
        self._known[one.key] = one.node.foreign[one.key] = one
        if books is not None and not is_same:
            books.foreign_placed(one)
        self._changed(one.node)

    def release(self, key: str) -> bool:
        """Remove a foreign allocation; return False if the key is unknown."""
        known = self._known.pop(key, None)
        if known is None:
            return False
        if self._accounting.books is not None:
            self._accounting.books.foreign_released(known)
        del known.node.foreign[key]
        self._changed(known.node)
        return True

    def forget(self, node: Node) -> None:
        """Remove all foreign allocations of a node that is removed."""
        books = self._accounting.books
        for key, one in node.foreign.items():
            del self._known[key]
            if books is not None:
                books.foreign_released(one)
        node.foreign.clear()

    def _changed(self, node: Node) -> None:
        node.resize()
        self._accounting.node_reservations.capacity_changed(node)
        self._accounting.node_changed(node, gained=True)
        self._accounting.changes.occupied_changed(node)
