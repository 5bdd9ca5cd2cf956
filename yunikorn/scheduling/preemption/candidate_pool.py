"""Pools: the candidates of one look at a queue, in order, and the nodes they are on.

To collect and order what runs everywhere is most of the work of finding victims. Within one look little
changes from one request to the next that is like it: the victims it was given, and the node that is kept for
it. So the candidates are collected once, and whoever is no candidate any more is passed over. They are the
same for requests of any ask class; what differs is on which nodes it takes how many.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from yunikorn.resources import Tally, grow

if TYPE_CHECKING:
    from yunikorn.objects.allocation import Allocation
    from yunikorn.objects.node import Node
    from yunikorn.objects.queue import Queue

Order = Callable[["Allocation"], tuple[int, ...]]
"""Who goes first: the smallest."""
EligibleLeaves = Mapping["Queue", int | None]
"""Leaves in which work may go, and of which priority at most; None is any."""
Entry = tuple[int, str, "Node", "list[Allocation] | None"]
"""A node in order: how many victims it takes there (at the least, while they are not known), its id, they."""


class Candidates:
    """All that may go for requests of one priority, whatever they ask for, and what nodes have free."""

    def __init__(self, eligible: EligibleLeaves, candidates: Iterable[Allocation], order: Order) -> None:
        self._eligible = eligible
        # Sorting is stable, and an application's later allocations are found later: they go first.
        self.ordered = sorted(reversed(list(candidates)), key=order)
        self.by_node: dict[str, list[Allocation]] = {}
        """By id of the node, in the same order."""
        for candidate in self.ordered:
            self.by_node.setdefault(candidate.node.id, []).append(candidate)
        self._largest: dict[str, Tally] = {}
        self._rooms: dict[str, Tally] = {}

    def covers(self, eligible: EligibleLeaves) -> bool:
        """Whether all candidates on these grounds are among those here."""
        known = self._eligible
        return all(leaf in known and known[leaf] == most for leaf, most in eligible.items())

    def largest(self, node_id: str) -> Tally:
        """The most that any of them has on this node, by resource type."""
        found = self._largest.get(node_id)
        if found is None:
            found = self._largest[node_id] = {}
            for one in self.by_node[node_id]:
                for name, amount in one.resource.items():
                    if amount > found.get(name, 0):
                        found[name] = amount
        return found

    def room(self, node: Node) -> Tally:
        """What `node` has free once all is gone that is on its way out."""
        room = self._rooms.get(node.id)
        if room is None:
            room = self._rooms[node.id] = room_on(node)
        return room

    def changed(self, nodes: Sequence[Node]) -> None:
        """Something runs out on these nodes."""
        for node in nodes:
            self._rooms.pop(node.id, None)


class Pool:
    """Candidates for requests of one ask class and one priority."""

    def __init__(self, every: Candidates, pairs: Sequence[tuple[str, int]]) -> None:
        self.every = every
        self.candidates = every.ordered
        self.by_node = every.by_node
        self._pairs = pairs
        self._heap: list[Entry] | None = None
        self._changed: dict[str, Node] = {}

    def changed(self, nodes: Sequence[Node]) -> None:
        """Something runs out on these nodes, or they are kept for others now."""
        self.every.changed(nodes)
        for node in nodes:
            self._changed[node.id] = node

    def choices(self, nodes: Iterable[Node], fits: Callable[[Node], bool]) -> list[Entry]:
        """Those of `nodes` that may be chosen as a heap, by how few victims each takes at the least.

        `fits` says whether one may.
        """
        if self._heap is None:
            there = self.by_node
            open_ = [node for node in nodes if node.id in there and fits(node)]
            self._heap = [entry for node in open_ if (entry := self._entry(node))]
            heapq.heapify(self._heap)
        elif self._changed:
            entries = [entry for entry in self._heap if entry[1] not in self._changed]
            anew = (self._entry(node) for node in self._changed.values() if fits(node))
            self._heap = [*entries, *filter(None, anew)]
            heapq.heapify(self._heap)
        self._changed.clear()
        return list(self._heap)

    def shortage(self, node: Node) -> Tally:
        """What `node` lacks once what is on its way out already is gone."""
        room = self.every.room(node)
        return {
            name: amount - room.get(name, 0) for name, amount in self._pairs if amount > room.get(name, 0)
        }

    def _entry(self, node: Node) -> Entry | None:
        if node.id not in self.by_node:
            return None
        room = self.every.room(node)
        short = {
            name: amount - room.get(name, 0) for name, amount in self._pairs if amount > room.get(name, 0)
        }
        least = _fewest(short, self.every.largest(node.id))
        return (least, node.id, node, None) if least else None


def _fewest(short: Mapping[str, int], largest: Mapping[str, int]) -> int:
    """How many victims it takes at the least, given the largest of them; 0 if no number of them helps."""
    least = 0
    for name, amount in short.items():
        most = largest.get(name)
        if not most:
            return 0
        least = max(least, -(-amount // most))
    return least


def shortage(node: Node, pairs: Iterable[tuple[str, int]], going: Iterable[Allocation] = ()) -> Tally:
    """What `node` lacks for an amount once `going`, and what is on its way out already, is gone."""
    room = room_on(node)
    for one in going:
        grow(room, one.resource)
    return {name: amount - room.get(name, 0) for name, amount in pairs if amount > room.get(name, 0)}


def room_on(node: Node) -> Tally:
    """What `node` has free once what is on its way out already is gone."""
    room = dict(node.available)
    for one in node.allocations.values():
        extras = one.extras
        if extras is not None and extras.eviction is not None:
            grow(room, one.resource)
    return room
