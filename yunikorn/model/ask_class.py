"""Index of requested amounts, which finds all ask classes that do not fit a node by binary search."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from yunikorn.resources import Resource, without_zeros

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from yunikorn.model.ask import Ask
    from yunikorn.model.node import Node
    from yunikorn.model.pending_class import PendingClass
    from yunikorn.model.usage_tracker import UsageTracker


class FitIndex:
    """Sorted requested amounts per resource type, with the bits of the ask classes that request more.

    The index covers the ask classes that were passed in (`known`) and makes no statement about others.
    """

    __slots__ = ("_types", "known")

    def __init__(self, ask_classes: Iterable[AskClass]) -> None:
        self.known = 0
        """Bits of the ask classes in the index."""
        asked: dict[str, dict[int, int]] = {}
        for ask_class in ask_classes:
            self.known |= ask_class.bit
            for name, amount in ask_class.pairs:
                bits = asked.setdefault(name, {})
                bits[amount] = bits.get(amount, 0) | ask_class.bit
        self._types = [(name, *_steps(bits)) for name, bits in asked.items()]

    def unfit_bits(self, available: Mapping[str, int]) -> int:
        """Return the bits of the known ask classes that need more than `available`."""
        found = 0
        for name, amounts, above in self._types:
            found |= above[bisect_right(amounts, available.get(name, 0))]
        return found


def _steps(bits: Mapping[int, int]) -> tuple[list[int], list[int]]:
    """Return the amounts, ascending, and for each gap between them the bits of larger requests."""
    amounts = sorted(bits)
    above = [0]
    for amount in reversed(amounts):
        above.append(above[-1] | bits[amount])
    above.reverse()
    return amounts, above


IDLE_ASK_CLASSES = 256
"""Number of idle ask classes (without waiting requests) that are kept for reuse before all idle ones are
dropped."""

NOTHING_REFUSED: Mapping[str, int] = MappingProxyType({})

NO_NODES: frozenset[str] = frozenset()
_AVOIDING = "\0avoiding"
"""Marks the avoided nodes among the classes for predicates."""

Pairs = tuple[tuple[str, int], ...]
"""Names and amounts of resources."""
Key = tuple[Resource, str, str, tuple[Hashable, ...], Hashable]
"""Resources, name of the node order, required node, class for each predicate, value for the node order."""


class AskClass:
    """Properties and search results shared by equivalent requests."""

    __slots__ = (
        "avoids",
        "bit",
        "classes",
        "key",
        "node_order",
        "pairs",
        "pending_classes",
        "refusals",
        "refused",
        "refused_at",
        "required",
        "reserving_ask",
        "resource",
        "searched_apart",
        "tries",
        "unschedulable",
        "value",
        "verdicts",
        "waiting",
    )

    def __init__(self, key: Key, bit: int) -> None:
        self.key = key
        self.resource, self.node_order, self.required, self.classes, self.value = key
        self.pairs: Pairs = tuple(self.resource.items())
        self.bit = bit
        self.searched_apart = bool(self.required)
        """True if the search for a node differs: one node is required, or some are avoided."""
        self.avoids = NO_NODES
        """Nodes on which requests are not placed, because the RM could not start them there."""
        self.pending_classes: dict[tuple[UsageTracker | None, ...], PendingClass] = {}
        """Pending classes by limit trackers; the key ends with an additional None for gangs whose visits are
        forced."""
        self.unschedulable = False
        """True if no node had room at the latest attempt."""
        self.reserving_ask: Ask | None = None
        """The request of the class that has reserved a node."""
        self.refusals: Mapping[str, int] = NOTHING_REFUSED
        """Reasons why nodes with room refused the class in the latest search, with counts."""
        self.refused_at = 0
        """Time of that search (ns)."""
        self.tries = 0
        """Number of times the class was marked unschedulable."""
        self.waiting = 0
        """Number of pending classes with waiting requests."""
        self.verdicts: dict[Hashable, str | None] = {}
        """Results of predicates that declare node classes, by node class: None, or the reason for a refusal.
        Ask classes may share a mapping."""
        self.refused: dict[str, tuple[int, str]] = {}
        """Refusals by other predicates, by node id: the node's version and the reason."""

    @property
    def asks(self) -> int:
        """Number of waiting requests."""
        return sum(pending_class.asks for pending_class in self.pending_classes.values())

    @property
    def is_pinned(self) -> bool:
        """True if requests of the class may be placed on drained nodes and nodes reserved for others."""
        return bool(self.required)

    def tried(self) -> None:
        """Count one more time that the class was marked unschedulable."""
        self.tries += 1

    def fits(self, node: Node) -> bool:
        """Return True if `node` has room for one request and is the required node, if one is required."""
        if self.required and self.required != node.id:
            return False
        available = node.available
        for name, amount in self.pairs:
            if amount > available.get(name, 0):
                return False
        return True


class AvoidingClass(AskClass):
    """Ask class of requests that failed to start on some nodes; otherwise as another ask class."""

    __slots__ = ()

    def avoid(self, nodes: frozenset[str]) -> None:
        """Set the nodes that are avoided; called once."""
        self.avoids, self.searched_apart = nodes, True

    def fits(self, node: Node) -> bool:
        """Return True if `node` has room for one request and is not avoided."""
        return node.id not in self.avoids and super().fits(node)


class AskClasses:
    """The live ask classes of a partition."""

    def __init__(
        self, dropped: list[Callable[[AskClass], None]], bits_dropped: list[Callable[[int], None]]
    ) -> None:
        """Create without ask classes; the functions in the two lists are called with what is dropped."""
        self.dropped = dropped
        """Called with an ask class without requests that was dropped."""
        self._bits_dropped = bits_dropped
        self._ask_classes: dict[Key, AskClass] = {}
        self._free: list[int] = []
        self._used = 0
        self._idle = 0
        self.unschedulable: dict[int, AskClass] = {}
        """Ask classes for which no node had room at the latest attempt, by bit."""
        self.per_node_order: dict[str, int] = {}
        """Number of ask classes with waiting requests, by name of their node order."""
        self._fit_index = FitIndex(())
        self._unknown = False
        """True if the fit index lacks an ask class with waiting requests."""
        self._visits = 0
        """Number of uses of the fit index since the first such class appeared."""
        self.retired = 0
        """Incremented whenever the last waiting request of an ask class leaves."""

    def __iter__(self) -> Iterator[AskClass]:
        return iter(self._ask_classes.values())

    def of(
        self,
        resource: Resource,
        node_order: str = "",
        required: str = "",
        classes: tuple[Any, ...] = (),
        kind: type[AskClass] = AskClass,
        value: Any = None,
    ) -> AskClass:
        """Return the ask class for `resource`; resource types with amount 0 are ignored.

        `value` is what the node sort policy declares of the requests.
        """
        key = (without_zeros(resource), node_order, required, classes, value)
        ask_class = self._ask_classes.get(key)
        if ask_class is None:
            if self._idle >= IDLE_ASK_CLASSES and self._idle * 2 > len(self._ask_classes):
                self._drop_idle()
            ask_class = self._ask_classes[key] = kind(key, self.take_bit())
            self._idle += 1
        return ask_class

    def avoiding(self, ask_class: AskClass, nodes: frozenset[str]) -> AskClass:
        """Return the ask class of requests of `ask_class` that avoid these nodes."""
        resource, node_order, required, classes, value = ask_class.key
        # Classes of predicates are tuples of their values; this one has a longer tuple.
        found = self.of(resource, node_order, required, (*classes, (_AVOIDING, nodes)), AvoidingClass, value)
        if isinstance(found, AvoidingClass) and not found.avoids:
            found.avoid(nodes)
        return found

    def take_bit(self) -> int:
        """Return a bit that no ask class has, until `return_bits` or the end of its ask class."""
        if self._free:
            return self._free.pop()
        self._used += 1
        return 1 << (self._used - 1)

    def return_bits(self, bits: list[int]) -> None:
        """Give back bits of `take_bit`; they are cleared wherever they are set."""
        gone = 0
        for bit in bits:
            gone |= bit
        for forget in self._bits_dropped:
            forget(gone)
        self._free += bits

    def refresh_unfit(self, node: Node) -> int:
        """Add the known ask classes that do not fit to `node.unfit`, and return the result as bits."""
        fit_index = self._fit_index
        if self._unknown:
            # The cost of a rebuild is amortised over the node checks that a complete index avoids, however
            # often new ask classes appear.
            self._visits += 1
            if self._visits > len(self._ask_classes):
                self._visits, self._unknown = 0, False
                fit_index = FitIndex(
                    ask_class for ask_class in self._ask_classes.values() if ask_class.waiting
                )
                self._fit_index = fit_index
        node.unfit |= fit_index.unfit_bits(node.available)
        return node.unfit

    def wait(self, ask_class: AskClass) -> None:
        """Record that one more pending class of this ask class has waiting requests."""
        if not ask_class.waiting:
            self._idle -= 1
            if not ask_class.bit & self._fit_index.known:
                self._unknown = True
            self.per_node_order[ask_class.node_order] = self.per_node_order.get(ask_class.node_order, 0) + 1
        ask_class.waiting += 1

    def leave(self, ask_class: AskClass) -> None:
        """Record that one pending class less of this ask class has waiting requests."""
        ask_class.waiting -= 1
        if not ask_class.waiting:
            self._idle += 1
            self.retired += 1
            self.per_node_order[ask_class.node_order] -= 1

    def mark_unschedulable(self, ask_class: AskClass) -> None:
        """Record that no node has room for this ask class, until `mark_schedulable`."""
        ask_class.unschedulable = True
        self.unschedulable[ask_class.bit] = ask_class

    def mark_schedulable(self, ask_class: AskClass) -> None:
        """Record that some node may have room for this ask class."""
        ask_class.unschedulable = False
        self.unschedulable.pop(ask_class.bit, None)

    def forget_node(self, node_id: str) -> None:
        """Discard the refusals by an earlier node of this id."""
        for ask_class in self._ask_classes.values():
            ask_class.refused.pop(node_id, None)

    def forget_verdicts(self) -> None:
        """Discard all results of predicates, because the predicates changed."""
        for ask_class in self._ask_classes.values():
            ask_class.verdicts = {}
            ask_class.refused.clear()

    def _drop_idle(self) -> None:
        gone = 0
        for key, ask_class in list(self._ask_classes.items()):
            if not ask_class.waiting:
                del self._ask_classes[key]
                self.unschedulable.pop(ask_class.bit, None)
                for drop in self.dropped:
                    drop(ask_class)
                self._free.append(ask_class.bit)
                gone |= ask_class.bit
        self._idle = 0
        self._fit_index, self._unknown = FitIndex(()), True
        for forget in self._bits_dropped:
            forget(gone)
