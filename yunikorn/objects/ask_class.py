"""Ask classes: classes of requests that every node answers alike, each with a bit of its own.

Requests of equal resources, equal predicate classes and equal node order have one ask class. What nodes
were found to answer to one of them holds for all, and is kept as a bit in an integer.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from yunikorn.objects.fit_index import FitIndex
from yunikorn.resources import Resource, without_zeros

if TYPE_CHECKING:
    from collections.abc import Callable

    from yunikorn.objects.ask import Ask
    from yunikorn.objects.node import Node
    from yunikorn.objects.pending_class import PendingClass
    from yunikorn.objects.usage_tracker import UsageTracker

IDLE_ASK_CLASSES = 256
"""Ask classes without a waiting request that are kept for the next one, before all idle ones are dropped."""

NOTHING_REFUSED: Mapping[str, int] = MappingProxyType({})

Pairs = tuple[tuple[str, int], ...]
"""Names and amounts of resources."""
Key = tuple[Resource, str, str, tuple[Hashable, ...]]
"""Resources, name of the node order, required node, and classes for the predicates."""


class AskClass:
    """What the requests of a class have in common."""

    __slots__ = (
        "bit",
        "classes",
        "key",
        "node_order",
        "pairs",
        "pending_classes",
        "refusals",
        "refused",
        "required",
        "reserving_ask",
        "resource",
        "tries",
        "unschedulable",
        "verdicts",
        "waiting",
    )

    def __init__(self, key: Key, bit: int) -> None:
        self.key = key
        self.resource, self.node_order, self.required, self.classes = key
        self.pairs: Pairs = tuple(self.resource.items())
        self.bit = bit
        self.pending_classes: dict[tuple[UsageTracker | None, ...], PendingClass] = {}
        """By owner: its requests under the same limits; with a None at the end those of insistent gangs."""
        self.unschedulable = False
        """Whether no node had room when it was last tried."""
        self.reserving_ask: Ask | None = None
        """The one of its requests that has reserved a node."""
        self.refusals: Mapping[str, int] = NOTHING_REFUSED
        """Reasons for which nodes with room were refused in the last search, each with its count."""
        self.tries = 0
        """How often it was unschedulable."""
        self.waiting = 0
        """Pending classes of it that requests wait for."""
        self.verdicts: dict[Hashable, str | None] = {}
        """What class-declaring predicates said, by class of node: None, or the reason for no."""
        self.refused: dict[str, tuple[int, str]] = {}
        """By node id: what other predicates refused, at which version of the node."""

    @property
    def asks(self) -> int:
        """Waiting requests of this ask class."""
        return sum(pending_class.asks for pending_class in self.pending_classes.values())

    @property
    def is_pinned(self) -> bool:
        """Whether requests of it may come to a node that is drained, or reserved for others."""
        return bool(self.required)

    def tried(self) -> None:
        """It is unschedulable once more."""
        self.tries += 1

    def fits(self, node: Node) -> bool:
        """Whether `node` has the room for one request, and is the one required if there is such."""
        if self.required and self.required != node.id:
            return False
        available = node.available
        for name, amount in self.pairs:
            if amount > available.get(name, 0):
                return False
        return True


class AskClasses:
    """The live ask classes of a partition."""

    def __init__(self) -> None:
        self._ask_classes: dict[Key, AskClass] = {}
        self._free: list[int] = []
        self._used = 0
        self._idle = 0
        self.unschedulable: dict[int, AskClass] = {}
        """By bit: the ask classes for which no node had room when they were last tried."""
        self.users: dict[str, int] = {}
        """By name of a node order: how many ask classes with waiting requests use it."""
        self._fit_index = FitIndex(())
        self._unknown = False
        """Whether there are ask classes that wait and that the fit index do not know, and ..."""
        self._looks = 0
        """... how often they were asked since."""
        self.retired = 0
        """Counts how often nobody waited for an ask class any more."""
        self.on_forget: list[Callable[[int], None]] = []
        """Called with the bits of dropped ask classes, before the bits serve again."""
        self.on_drop: list[Callable[[AskClass], None]] = []
        """Called with each ask class that is dropped."""

    def __iter__(self) -> Iterator[AskClass]:
        return iter(self._ask_classes.values())

    def of(
        self,
        resource: Resource,
        node_order: str = "",
        required: str = "",
        classes: tuple[Any, ...] = (),
        kind: type[AskClass] = AskClass,
    ) -> AskClass:
        """The ask class for `resource` (zero entries do not count, facts §20.4)."""
        key = (without_zeros(resource), node_order, required, classes)
        ask_class = self._ask_classes.get(key)
        if ask_class is None:
            if self._idle >= IDLE_ASK_CLASSES and self._idle * 2 > len(self._ask_classes):
                self._drop_idle()
            if self._free:
                bit = self._free.pop()
            else:
                bit = 1 << self._used
                self._used += 1
            ask_class = self._ask_classes[key] = kind(key, bit)
            self._idle += 1
        return ask_class

    def refresh_unfit(self, node: Node) -> int:
        """Have `node` learn for which shapes it has no room; what is not known yet is left open."""
        fit_index = self._fit_index
        if self._unknown:
            # Paid for by the looks that knowing all ask classes saves, however often new ones come.
            self._looks += 1
            if self._looks > len(self._ask_classes):
                self._looks, self._unknown = 0, False
                fit_index = FitIndex(
                    ask_class for ask_class in self._ask_classes.values() if ask_class.waiting
                )
                self._fit_index = fit_index
        node.unfit |= fit_index.unfit_bits(node.available)
        return node.unfit

    def wait(self, ask_class: AskClass) -> None:
        """Requests wait for one more pending class of this ask class."""
        if not ask_class.waiting:
            self._idle -= 1
            if not ask_class.bit & self._fit_index.known:
                self._unknown = True
            self.users[ask_class.node_order] = self.users.get(ask_class.node_order, 0) + 1
        ask_class.waiting += 1

    def leave(self, ask_class: AskClass) -> None:
        """No request waits for a pending class of this ask class any more."""
        ask_class.waiting -= 1
        if not ask_class.waiting:
            self._idle += 1
            self.retired += 1
            self.users[ask_class.node_order] -= 1

    def mark_unschedulable(self, ask_class: AskClass) -> None:
        """No node has room for this ask class, until `mark_schedulable`."""
        ask_class.unschedulable = True
        self.unschedulable[ask_class.bit] = ask_class

    def mark_schedulable(self, ask_class: AskClass) -> None:
        """Some node may have room for this ask class again."""
        ask_class.unschedulable = False
        self.unschedulable.pop(ask_class.bit, None)

    def forget_node(self, node_id: str) -> None:
        """A node of this id is a new one: what predicates said of an earlier one counts no more."""
        for ask_class in self._ask_classes.values():
            ask_class.refused.pop(node_id, None)

    def forget_verdicts(self) -> None:
        """Predicates changed: what they said of nodes counts no more."""
        for ask_class in self._ask_classes.values():
            ask_class.verdicts.clear()
            ask_class.refused.clear()

    def _drop_idle(self) -> None:
        gone = 0
        for key, ask_class in list(self._ask_classes.items()):
            if not ask_class.waiting:
                del self._ask_classes[key]
                self.unschedulable.pop(ask_class.bit, None)
                for drop in self.on_drop:
                    drop(ask_class)
                self._free.append(ask_class.bit)
                gone |= ask_class.bit
        self._idle = 0
        self._fit_index, self._unknown = FitIndex(()), True
        for forget in self.on_forget:
            forget(gone)
