"""Nodes: machines that run allocations, their domains, and the tasks there that are not scheduled here."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from yunikorn.resources import INT32_MIN, NOTHING, Resource, Tally, shrink, sum_of, without_zeros
from yunikorn.states import NODE, SCHEDULABLE

if TYPE_CHECKING:
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.ask import Ask
    from yunikorn.model.ask_class import AskClass


class Node:
    """A node with its available resources and its allocations."""

    __slots__ = (
        "allocations",
        "attributes",
        "available",
        "capacity",
        "change_log",
        "classes",
        "domains",
        "drained_by_operator",
        "drained_by_rm",
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
        "victims_version",
    )

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
        """Asks that reserved the node; no other ask may be placed here while there are any."""
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
        """The node is `Draining` while one of the two is True (docs/decisions/0093)."""
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


# -- domains ----------------------------------------------------------------------------------------------


class Closing:
    """Refusal of an ask class in a domain."""

    __slots__ = ("ask", "marked", "reason", "subjects")

    def __init__(self, ask: Ask, reason: str, subjects: tuple[Hashable, ...]) -> None:
        self.ask = ask
        """A request of the class, with which the predicate is asked again."""
        self.reason = reason
        self.subjects = subjects
        """Subjects whose tasks may end the refusal."""
        self.marked: list[Node] = []
        """Nodes of the domain that searches have marked as unfit for the ask class."""


class Domain:
    """Nodes that are alike for one predicate, and the ask classes that it refuses there."""

    __slots__ = ("by_subject", "closed", "key", "nodes")

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.nodes: dict[Node, None] = {}
        self.closed: dict[AskClass, Closing] = {}
        """Refused ask classes; an ask class that is missing must be checked."""
        self.by_subject: dict[Hashable, dict[AskClass, None]] = {}
        """Refused ask classes by subject."""

    def close(self, ask_class: AskClass, closing: Closing) -> None:
        """Remember a refusal."""
        self.closed[ask_class] = closing
        for subject in closing.subjects:
            self.by_subject.setdefault(subject, {})[ask_class] = None

    def open(self, ask_class: AskClass) -> Closing:
        """Forget the refusal of an ask class, and return it."""
        closing = self.closed.pop(ask_class)
        for subject in closing.subjects:
            alike = self.by_subject.get(subject)
            if alike is not None:
                alike.pop(ask_class, None)
                if not alike:
                    del self.by_subject[subject]
        return closing


# -- foreign allocations ----------------------------------------------------------------------------------

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
