"""Nodes: where allocations run."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING

from yunikorn.resources import Resource, Tally, shrink, without_zeros
from yunikorn.states import NODE, SCHEDULABLE

if TYPE_CHECKING:
    from yunikorn.objects.allocation import Allocation
    from yunikorn.objects.ask import Ask


class Node:
    """A node with its room and what runs on it (facts §10.1)."""

    __slots__ = (
        "allocated",
        "allocations",
        "attributes",
        "available",
        "capacity",
        "classes",
        "gained",
        "id",
        "occupied",
        "reservations",
        "state",
        "touched",
        "version",
    )

    def __init__(
        self,
        node_id: str,
        capacity: Mapping[str, int],
        attributes: Mapping[str, str],
        occupied: Mapping[str, int],
    ) -> None:
        self.id = node_id
        self.capacity: Resource = without_zeros(capacity)
        self.attributes: Mapping[str, str] = dict(attributes)
        self.occupied: Resource = without_zeros(occupied)
        self.allocated: Tally = {}
        self.available: Tally = dict(self.capacity)
        shrink(self.available, self.occupied)
        self.allocations: dict[str, Allocation] = {}
        self.reservations: dict[Ask, None] = {}
        """Asks that wait for room here; while there are any, no other ask may come."""
        self.state = NODE.initial
        self.version = 0
        """Counts the changes of its room and attributes."""
        self.touched = False
        """Whether it changed since the node orders were last brought up to date."""
        self.gained = False
        """Whether it may take more than it could then."""
        self.classes: tuple[Hashable, ...] = ()
        """Its class for each predicate that declares one."""

    @property
    def label(self) -> str:
        """What a message calls it."""
        return f"node {self.id}"

    @property
    def schedulable(self) -> bool:
        """Whether new allocations may come here."""
        return self.state == SCHEDULABLE

    @property
    def is_free(self) -> bool:
        """Whether any request may come here: schedulable, and not reserved."""
        return self.state == SCHEDULABLE and not self.reservations

    def on_state_change(self, before: str, reason: str) -> None:
        """Called by the state machine; a node has nothing more to do."""

    def take(self, allocation: Allocation) -> None:
        """Book `allocation` here; it may exceed the room, as recovered ones can."""
        self.allocations[allocation.uuid] = allocation
        self.version += 1
        allocated, available = self.allocated, self.available
        for name, amount in allocation.resource.items():
            allocated[name] = allocated.get(name, 0) + amount
            available[name] = available.get(name, 0) - amount

    def give_back(self, allocation: Allocation) -> None:
        """Undo `take`."""
        del self.allocations[allocation.uuid]
        self.version += 1
        allocated, available = self.allocated, self.available
        for name, amount in allocation.resource.items():
            allocated[name] -= amount
            available[name] = available.get(name, 0) + amount

    def resize(self, capacity: Mapping[str, int], occupied: Mapping[str, int]) -> None:
        """Set the capacity and what others take of it; less than is used leaves the room negative."""
        self.capacity = without_zeros(capacity)
        self.occupied = without_zeros(occupied)
        self.version += 1
        self.available = dict(self.capacity)
        shrink(self.available, self.occupied)
        shrink(self.available, self.allocated)

    def __repr__(self) -> str:
        return f"<Node {self.id} {self.state} {dict(self.available)} of {dict(self.capacity)}>"
