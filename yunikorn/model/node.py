"""Nodes: machines that run allocations."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from yunikorn.model.ask import NodeOwner
from yunikorn.resources import Resource, Tally, shrink, sum_of, without_zeros
from yunikorn.states import NODE, SCHEDULABLE

if TYPE_CHECKING:
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.application import Application
    from yunikorn.model.ask import Ask
    from yunikorn.model.domain import Domain
    from yunikorn.model.foreign_allocation import ForeignAllocation


class Node:
    """A node with its available resources and its allocations."""

    __slots__ = (
        "allocations", "attributes", "available", "capacity", "change_log", "classes", "domains",
        "drained_by_operator", "drained_by_rm", "foreign", "gained", "id", "is_dirty", "occupied",
        "position", "reported", "reservations", "state", "unfit", "version", "victims_version",
    )  # fmt: skip

    def __init__(
        self,
        node_id: str,
        capacity: Mapping[str, int],
        attributes: Mapping[str, str],
        occupied: Mapping[str, int],
    ) -> None:
        # Attributes used by every decision come first: compiled builds store them next to each other.
        self.id = node_id
        self.state = NODE.initial
        self.unfit = 0
        """Bits of ask classes known not to fit."""
        self.capacity: Resource = without_zeros(capacity)
        self.available: Tally = dict(self.capacity)
        """Capacity less occupied and allocated resources; the only amount that allocations update."""
        self.allocations: dict[str, Allocation] = {}
        self.reservations: dict[Ask, None] = {}
        """Asks that reserved the node, and those that have it alone; no other ask may be placed here while
        there are any."""
        self.version = 0
        """Incremented whenever the available resources or the attributes change."""
        self.victims_version = 0
        """Incremented whenever the order of the possible victims changes in another way than by `version`."""
        self.change_log: list[Node] | None = None
        """List to which the node is appended at its next change, for preemption; None if it is there."""
        self.position: Any = None
        """Position in the node order used by most requests; maintained by the scheduling layer."""
        self.is_dirty = False
        """True if the node changed since the latest update of the node orders."""
        self.gained = False
        """True if the node may fit more than at the latest update of the node orders."""
        # Attributes used only when the node is added, changed or removed.
        self.attributes: Mapping[str, str] = MappingProxyType(dict(attributes))
        self.reported: Resource = without_zeros(occupied)
        """Occupied resources reported by the RM as an amount, without foreign allocations."""
        self.foreign: dict[str, ForeignAllocation] = {}
        """Foreign allocations by key."""
        self.occupied: Resource = self.reported
        """Total of `reported` and `foreign`."""
        self.classes: tuple[Hashable, ...] = ()
        """Node class for each predicate that declares node classes."""
        self.domains: tuple[Domain, ...] = ()
        """Domain of the node for each predicate that declares domains."""
        self.drained_by_rm = self.drained_by_operator = False
        """The node is `Draining` while one of the two is True (docs/decisions/archive/0093)."""
        shrink(self.available, self.occupied)

    @property
    def label(self) -> str:
        """Name of the node in messages."""
        return f"node {self.id}"

    @property
    def schedulable(self) -> bool:
        """True if the state of the node permits new allocations."""
        return self.state == SCHEDULABLE

    @property
    def allocated(self) -> Tally:
        """Allocated resources: capacity less occupied and available resources."""
        capacity, occupied, available = self.capacity, self.occupied, self.available
        found: Tally = {}
        for name in {**capacity, **occupied, **available}:
            amount = capacity.get(name, 0) - occupied.get(name, 0) - available.get(name, 0)
            if amount:
                found[name] = amount
        return found

    @property
    def is_free(self) -> bool:
        """True if any request may be placed here: the node is schedulable and not reserved."""
        return self.state == SCHEDULABLE and not self.reservations

    @property
    def owners(self) -> list[NodeOwner]:
        """Applications that have the node alone: one, unless an RM has placed tasks of several."""
        return [one for one in self.reservations if isinstance(one, NodeOwner)]

    def is_open_to(self, app: Application) -> bool:
        """Return True if the node is free, or only `app` has it alone."""
        others = [one for one in self.reservations if one.app is not app or not isinstance(one, NodeOwner)]
        return self.state == SCHEDULABLE and not others

    def could_host(self, pairs: Sequence[tuple[str, int]]) -> bool:
        """Return True if the amounts fit a node without allocations; occupied resources remain occupied."""
        capacity, occupied = self.capacity, self.occupied
        for name, amount in pairs:
            if amount > capacity.get(name, 0) - occupied.get(name, 0):
                return False
        return True

    def on_state_change(self, before: str, reason: str) -> None:
        """Do nothing; called by the state machine after a change."""

    def mark_changed(self) -> None:
        """Note that answers for the node may have changed."""
        self.version += 1
        self.log_change()

    def reorder_victims(self) -> None:
        """Note that the order of possible victims here may have changed."""
        self.victims_version += 1
        self.log_change()

    def log_change(self) -> None:
        """Note that the available resources or the possible victims here may have changed."""
        log = self.change_log
        if log is not None:
            self.change_log = None
            log.append(self)

    def take(self, allocation: Allocation) -> None:
        """Add `allocation`; a recovered allocation may exceed the available resources."""
        self.allocations[allocation.uuid] = allocation
        self.version += 1
        if self.change_log is not None:
            self.log_change()
        available = self.available
        for name, amount in allocation.resource.items():
            available[name] = available.get(name, 0) - amount

    def give_back(self, allocation: Allocation) -> None:
        """Remove `allocation`."""
        del self.allocations[allocation.uuid]
        self.version += 1
        if self.change_log is not None:
            self.log_change()
        self.unfit = 0
        available = self.available
        for name, amount in allocation.resource.items():
            available[name] = available.get(name, 0) + amount

    def lend(self, resource: Resource) -> None:
        """Reduce the available resources by `resource` while a placement is planned, until `regain`."""
        self._shift(resource, 1)

    def regain(self, resource: Resource) -> None:
        """Undo `lend`."""
        self._shift(resource, -1)

    def _shift(self, resource: Resource, times: int) -> None:
        self.mark_changed()
        self.unfit = 0
        available = self.available
        for name, amount in resource.items():
            available[name] = available.get(name, 0) - amount * times

    def resize(
        self, capacity: Mapping[str, int] | None = None, occupied: Mapping[str, int] | None = None
    ) -> None:
        """Set the capacity and the reported occupied resources, if given, and recompute the available ones.

        The available resources become negative if the capacity is less than the usage.
        """
        allocated = self.allocated
        if capacity is not None:
            self.capacity = without_zeros(capacity)
        if occupied is not None:
            self.reported = without_zeros(occupied)
        named = [foreign.resource for foreign in self.foreign.values()]
        self.occupied = without_zeros(sum_of([self.reported, *named])) if named else self.reported
        self.mark_changed()
        self.unfit = 0
        self.available = dict(self.capacity)
        shrink(self.available, self.occupied)
        shrink(self.available, allocated)

    def __repr__(self) -> str:
        return f"<Node {self.id} {self.state} {dict(self.available)} of {dict(self.capacity)}>"
