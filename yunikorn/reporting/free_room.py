"""What is free on nodes, and how much of that is of no use to what waits.

Free room is *unusable* for a size that waits when it lies on nodes on which one task of that size does not
fit. Over all sizes that wait and ask for a resource type the mean is taken, weighted by how many tasks of
each wait. This is the idea of the fragmentation measure of Q. Weng et al., "Beware of fragmentation:
scheduling GPU-sharing workloads with fragmentation gradient descent", USENIX ATC 2023, with the sizes that
wait at that moment in place of those that are typical, and without parts of single devices. Sizes that fit on
no node, not even on an empty one, do not count: that is no matter of what is free.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import attrs

from yunikorn.resources import Resource, Tally, fits, grow

Space = tuple[tuple[str, int], ...]
"""What is free on a node: types and amounts above 0, in the order of their names."""
SIZES = 24
"""So many sizes are looked at, those that most tasks wait for; of equal ones the first to wait."""


@attrs.define(eq=False)
class Room:
    """A node: what it has, what is free on it, and whether anything new may be placed there."""

    capacity: Resource
    index: int
    """How many others registered before it was there for the first time."""
    free: Tally = attrs.Factory(dict)
    open: bool = True
    counted: Space = attrs.field(default=(), init=False)
    """What the rooms it belongs to have counted of it; see `Rooms.spaces`."""
    _changes: list[Room] | None = attrs.field(default=None, init=False)

    def take(self, amount: Mapping[str, int], sign: int) -> None:
        """`amount` less is free (`sign` 1), or more (-1)."""
        grow(self.free, amount, -sign)
        self._changed()

    def switch(self, open: bool) -> None:
        """New things may be placed there from now on, or may not."""
        self.open = open
        self._changed()

    def report(self, changes: list[Room] | None) -> None:
        """Have it put itself on this list, once, when something changes."""
        self._changes = changes

    def _changed(self) -> None:
        if self._changes is not None:
            self._changes.append(self)
            self._changes = None

    @property
    def space(self) -> Space:
        """What is free for new things, by the names of the types; what is over-committed is no room."""
        if not self.open:
            return ()
        return tuple(sorted(item for item in self.free.items() if item[1] > 0))


class Rooms:
    """The nodes of a partition, counted by what is free on them.

    Most nodes are as they were at the last look: only those that changed are counted anew.
    """

    def __init__(self) -> None:
        self.capacities: Counter[Resource] = Counter()
        """How many nodes are of each size."""
        self._rooms: dict[str, Room] = {}
        self._spaces: Counter[Space] = Counter()
        self._changes: list[Room] = []

    def __len__(self) -> int:
        return len(self._rooms)

    def __iter__(self) -> Iterator[Room]:
        return iter(self._rooms.values())

    def add(self, name: str, room: Room) -> None:
        """A node is there from now on."""
        self._rooms[name] = room
        self.capacities[room.capacity] += 1
        self._changes.append(room)

    def remove(self, name: str) -> None:
        """It is there no more."""
        room = self._rooms.pop(name)
        self.capacities -= Counter([room.capacity])
        room.switch(False)

    def resize(self, room: Room, capacity: Resource) -> None:
        """It has this capacity from now on."""
        self.capacities -= Counter([room.capacity])
        self.capacities[capacity] += 1
        room.capacity = capacity

    @property
    def spaces(self) -> Counter[Space]:
        """How many nodes have the same room for new things; those that have none do not count."""
        spaces = self._spaces
        for room in self._changes:
            before, now = room.counted, room.space
            if before != now:
                room.counted = now
                if before:
                    spaces[before] -= 1
                    if not spaces[before]:
                        del spaces[before]
                if now:
                    spaces[now] += 1
            room.report(self._changes)
        self._changes.clear()
        return spaces


@attrs.frozen
class Look:
    """Free and unusable amounts, of the types that something waits for; `cost` in comparisons."""

    free: dict[str, int]
    unusable: dict[str, int]
    cost: int


def look(rooms: Rooms, waiting: Counter[Resource]) -> Look:
    """Compare what is free with the sizes that wait."""
    spaces = rooms.spaces
    sizes = [
        (size, tasks)
        for size, tasks in waiting.most_common(SIZES)
        if any(fits(capacity, size) for capacity in rooms.capacities)
    ]
    free: Tally = {}
    for left, nodes in spaces.items():
        for name, amount in left:
            free[name] = free.get(name, 0) + amount * nodes
    asked = sorted({name for size, _ in sizes for name, amount in size.items() if amount > 0})
    lost: dict[str, int] = dict.fromkeys(asked, 0)
    weights: dict[str, int] = dict.fromkeys(asked, 0)
    counted = [(dict(left), nodes) for left, nodes in spaces.items()]
    for size, tasks in sizes:
        names = [name for name, amount in size.items() if amount > 0]
        useless = _useless(counted, size)
        for name in names:
            weights[name] += tasks
            lost[name] += tasks * useless.get(name, 0)
    return Look(
        free={name: free.get(name, 0) for name in asked},
        unusable={name: lost[name] // weights[name] for name in asked},
        cost=len(rooms) + len(spaces) * len(sizes),
    )


def _useless(spaces: Iterable[tuple[Tally, int]], size: Resource) -> Tally:
    """What is free, per type, where one task of this size does not fit."""
    wanted = [item for item in size.items() if item[1] > 0]
    total: Tally = {}
    for here, nodes in spaces:
        for name, amount in wanted:
            if here.get(name, 0) < amount:
                grow(total, here, nodes)
                break
    return total
