"""Nodes: where allocations run."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from yunikorn.resources import Resource, Tally, shrink, sum_of, without_zeros
from yunikorn.states import NODE, SCHEDULABLE

if TYPE_CHECKING:
    from yunikorn.objects.allocation import Allocation
    from yunikorn.objects.ask import Ask
    from yunikorn.objects.foreign import ForeignAllocation


class Node:
    """A node with its room and what runs on it (facts §10.1)."""

    __slots__ = (
        "allocations",
        "attributes",
        "available",
        "capacity",
        "classes",
        "foreign",
        "gained",
        "id",
        "is_dirty",
        "occupied",
        "position",
        "reported",
        "reservations",
        "state",
        "unfit",
        "version",
    )

    def __init__(
        self,
        node_id: str,
        capacity: Mapping[str, int],
        attributes: Mapping[str, str],
        occupied: Mapping[str, int],
    ) -> None:
        # What every decision looks at comes first: there it lies together where this is compiled.
        self.id = node_id
        self.state = NODE.initial
        self.unfit = 0
        """Bits of ask classes for which it is known to have no room."""
        self.capacity: Resource = without_zeros(capacity)
        self.available: Tally = dict(self.capacity)
        """What is left of the capacity: all that a decision needs to know, and so all that is booked."""
        self.allocations: dict[str, Allocation] = {}
        self.reservations: dict[Ask, None] = {}
        """Asks that wait for room here; while there are any, no other ask may come."""
        self.version = 0
        """Counts the changes of its room and attributes."""
        self.position: Any = None
        """Its place in the order that most requests look at, kept by the scheduling layer."""
        self.is_dirty = False
        """Whether it changed since the node orders were last brought up to date."""
        self.gained = False
        """Whether it may take more than it could then."""
        # The rest is looked at when it comes, changes or goes.
        self.attributes: Mapping[str, str] = dict(attributes)
        self.reported: Resource = without_zeros(occupied)
        """What the RM says that others take of it, and ..."""
        self.foreign: dict[str, ForeignAllocation] = {}
        """... what they take by name, by key; ..."""
        self.occupied: Resource = self.reported
        """... both together."""
        self.classes: tuple[Hashable, ...] = ()
        """Its class for each predicate that declares one."""
        shrink(self.available, self.occupied)

    @property
    def label(self) -> str:
        """What a message calls it."""
        return f"node {self.id}"

    @property
    def schedulable(self) -> bool:
        """Whether new allocations may come here."""
        return self.state == SCHEDULABLE

    @property
    def allocated(self) -> Tally:
        """What is allocated here: what is neither left nor taken by others."""
        capacity, occupied, available = self.capacity, self.occupied, self.available
        found: Tally = {}
        for name in {**capacity, **occupied, **available}:
            amount = capacity.get(name, 0) - occupied.get(name, 0) - available.get(name, 0)
            if amount:
                found[name] = amount
        return found

    @property
    def is_free(self) -> bool:
        """Whether any request may come here: schedulable, and not reserved."""
        return self.state == SCHEDULABLE and not self.reservations

    def could_host(self, pairs: Sequence[tuple[str, int]]) -> bool:
        """Whether so much would have room if nothing were allocated here; what others take stays theirs."""
        capacity, occupied = self.capacity, self.occupied
        for name, amount in pairs:
            if amount > capacity.get(name, 0) - occupied.get(name, 0):
                return False
        return True

    def on_state_change(self, before: str, reason: str) -> None:
        """Called by the state machine; a node has nothing more to do."""

    def take(self, allocation: Allocation) -> None:
        """Book `allocation` here; it may exceed the room, as recovered ones can."""
        self.allocations[allocation.uuid] = allocation
        self.version += 1
        available = self.available
        for name, amount in allocation.resource.items():
            available[name] = available.get(name, 0) - amount

    def give_back(self, allocation: Allocation) -> None:
        """Undo `take`."""
        del self.allocations[allocation.uuid]
        self.version += 1
        self.unfit = 0
        available = self.available
        for name, amount in allocation.resource.items():
            available[name] = available.get(name, 0) + amount

    def lend(self, resource: Resource) -> None:
        """Try out how it is with `resource` less, until `regain`."""
        self._shift(resource, 1)

    def regain(self, resource: Resource) -> None:
        """Undo `lend`."""
        self._shift(resource, -1)

    def _shift(self, resource: Resource, times: int) -> None:
        self.version += 1
        self.unfit = 0
        available = self.available
        for name, amount in resource.items():
            available[name] = available.get(name, 0) - amount * times

    def resize(
        self, capacity: Mapping[str, int] | None = None, occupied: Mapping[str, int] | None = None
    ) -> None:
        """Set the capacity and what others take of it, if given, and compute the room anew.

        Less capacity than is used leaves the room negative.
        """
        allocated = self.allocated
        if capacity is not None:
            self.capacity = without_zeros(capacity)
        if occupied is not None:
            self.reported = without_zeros(occupied)
        named = [foreign.resource for foreign in self.foreign.values()]
        self.occupied = without_zeros(sum_of([self.reported, *named])) if named else self.reported
        self.version += 1
        self.unfit = 0
        self.available = dict(self.capacity)
        shrink(self.available, self.occupied)
        shrink(self.available, allocated)

    def __repr__(self) -> str:
        return f"<Node {self.id} {self.state} {dict(self.available)} of {dict(self.capacity)}>"
