"""Shapes: classes of requests that every node answers alike, each with a bit of its own.

Requests of equal resources, equal predicate classes and equal node order have one shape. What nodes
were found to answer to one of them holds for all, and is kept as a bit in an integer.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from yunikorn.objects.thresholds import Thresholds
from yunikorn.resources import Resource, without_zeros

if TYPE_CHECKING:
    from collections.abc import Callable

    from yunikorn.objects.allowance import Allowance
    from yunikorn.objects.ask import Ask
    from yunikorn.objects.claim import Claim
    from yunikorn.objects.node import Node

IDLE_SHAPES = 256
"""Shapes without a waiting request that are kept for the next one, before all idle ones are dropped."""

NOTHING_REFUSED: Mapping[str, int] = MappingProxyType({})

Pairs = tuple[tuple[str, int], ...]
"""Names and amounts of resources."""
Key = tuple[Resource, str, str, tuple[Hashable, ...]]
"""Resources, name of the node order, required node, and classes for the predicates."""


class Shape:
    """What the requests of a class have in common."""

    __slots__ = (
        "bit",
        "claims",
        "classes",
        "closed",
        "holder",
        "key",
        "node_order",
        "pairs",
        "refusals",
        "refused",
        "required",
        "resource",
        "tries",
        "verdicts",
        "waiting",
    )

    def __init__(self, key: Key, bit: int) -> None:
        self.key = key
        self.resource, self.node_order, self.required, self.classes = key
        self.pairs: Pairs = tuple(self.resource.items())
        self.bit = bit
        self.claims: dict[tuple[Allowance | None, ...], Claim] = {}
        """By owner: its requests under the same limits; with a None at the end those of insistent gangs."""
        self.closed = False
        """Whether no node had room when it was last tried."""
        self.holder: Ask | None = None
        """The one of its requests that has reserved a node."""
        self.refusals: Mapping[str, int] = NOTHING_REFUSED
        """Reasons for which nodes with room were refused in the last search, each with its count."""
        self.tries = 0
        """How often it was parked."""
        self.waiting = 0
        """Claims of it that requests wait for."""
        self.verdicts: dict[Hashable, str | None] = {}
        """What class-declaring predicates said, by class of node: None, or the reason for no."""
        self.refused: dict[str, tuple[int, str]] = {}
        """By node id: what other predicates refused, at which version of the node."""

    @property
    def asks(self) -> int:
        """Waiting requests of this shape."""
        return sum(claim.asks for claim in self.claims.values())

    @property
    def is_pinned(self) -> bool:
        """Whether requests of it may come to a node that is drained, or reserved for others."""
        return bool(self.required)

    def tried(self) -> None:
        """It is parked once more."""
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


class ShapeTable:
    """The live shapes of a partition."""

    def __init__(self) -> None:
        self._shapes: dict[Key, Shape] = {}
        self._free: list[int] = []
        self._used = 0
        self._idle = 0
        self.closed: dict[int, Shape] = {}
        """By bit: the shapes for which no node had room when they were last tried."""
        self.users: dict[str, int] = {}
        """By name of a node order: how many shapes with waiting requests use it."""
        self._thresholds = Thresholds(())
        self._unknown = False
        """Whether there are shapes that wait and that the thresholds do not know, and ..."""
        self._looks = 0
        """... how often they were asked since."""
        self.retired = 0
        """Counts how often nobody waited for a shape any more."""
        self.on_forget: list[Callable[[int], None]] = []
        """Called with the bits of dropped shapes, before the bits serve again."""
        self.on_drop: list[Callable[[Shape], None]] = []
        """Called with each shape that is dropped."""

    def __iter__(self) -> Iterator[Shape]:
        return iter(self._shapes.values())

    def of(
        self,
        resource: Resource,
        node_order: str = "",
        required: str = "",
        classes: tuple[Any, ...] = (),
        kind: type[Shape] = Shape,
    ) -> Shape:
        """The shape of requests for `resource` (zero entries do not count, facts §20.4)."""
        key = (without_zeros(resource), node_order, required, classes)
        shape = self._shapes.get(key)
        if shape is None:
            if self._idle >= IDLE_SHAPES and self._idle * 2 > len(self._shapes):
                self._drop_idle()
            if self._free:
                bit = self._free.pop()
            else:
                bit = 1 << self._used
                self._used += 1
            shape = self._shapes[key] = kind(key, bit)
            self._idle += 1
        return shape

    def cramped(self, node: Node) -> int:
        """Have `node` learn for which shapes it has no room; what is not known yet is left open."""
        thresholds = self._thresholds
        if self._unknown:
            # Paid for by the looks that knowing all shapes saves, however often new ones come.
            self._looks += 1
            if self._looks > len(self._shapes):
                self._looks, self._unknown = 0, False
                thresholds = Thresholds(shape for shape in self._shapes.values() if shape.waiting)
                self._thresholds = thresholds
        node.cramped |= thresholds.without_room(node.available)
        return node.cramped

    def wait(self, shape: Shape) -> None:
        """Requests wait for one more claim of this shape."""
        if not shape.waiting:
            self._idle -= 1
            if not shape.bit & self._thresholds.known:
                self._unknown = True
            self.users[shape.node_order] = self.users.get(shape.node_order, 0) + 1
        shape.waiting += 1

    def leave(self, shape: Shape) -> None:
        """No request waits for a claim of this shape any more."""
        shape.waiting -= 1
        if not shape.waiting:
            self._idle += 1
            self.retired += 1
            self.users[shape.node_order] -= 1

    def close(self, shape: Shape) -> None:
        """No node has room for this shape, until `reopen`."""
        shape.closed = True
        self.closed[shape.bit] = shape

    def reopen(self, shape: Shape) -> None:
        """Some node may have room for this shape again."""
        shape.closed = False
        self.closed.pop(shape.bit, None)

    def forget_node(self, node_id: str) -> None:
        """A node of this id is a new one: what predicates said of an earlier one counts no more."""
        for shape in self._shapes.values():
            shape.refused.pop(node_id, None)

    def forget_verdicts(self) -> None:
        """Predicates changed: what they said of nodes counts no more."""
        for shape in self._shapes.values():
            shape.verdicts.clear()
            shape.refused.clear()

    def _drop_idle(self) -> None:
        gone = 0
        for key, shape in list(self._shapes.items()):
            if not shape.waiting:
                del self._shapes[key]
                self.closed.pop(shape.bit, None)
                for drop in self.on_drop:
                    drop(shape)
                self._free.append(shape.bit)
                gone |= shape.bit
        self._idle = 0
        self._thresholds, self._unknown = Thresholds(()), True
        for forget in self.on_forget:
            forget(gone)
