"""Fragmentation: free resources on nodes, and the part that waiting tasks cannot use.

A node's free resources are *unusable* for a waiting task size if a task of that size does not fit on the
node. The unusable amount of a resource type is the mean over all waiting sizes that ask for the type,
weighted by the number of waiting tasks. The measure follows Q. Weng et al., "Beware of fragmentation:
scheduling GPU-sharing workloads with fragmentation gradient descent", USENIX ATC 2023, but considers the
sizes that wait at the moment instead of typical sizes, and no parts of single devices. Sizes that do not fit
on any empty node are ignored, because fragmentation is not the reason for their wait.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import attrs

from yunikorn.resources import Resource, Tally, fits, grow

Space = tuple[tuple[str, int], ...]
"""Free resources of a node: types with positive amounts, sorted by name."""
SIZES = 24
"""Maximum number of evaluated sizes, those with the most waiting tasks; ties go to the first to wait."""


@attrs.define(eq=False)
class Room:
    """Capacity and free resources of a node; `open` is True if the node accepts new tasks."""

    capacity: Resource
    index: int
    """Number of the node in `time_series.NodeRows`."""
    free: Tally = attrs.Factory(dict)
    open: bool = True
    counted: Space = attrs.field(default=(), init=False)
    """Free resources as last counted by `Rooms.spaces`."""
    _changes: list[Room] | None = attrs.field(default=None, init=False)
    _watcher: dict[Room, None] | None = attrs.field(default=None, init=False)
    _totals: tuple[Tally, Tally] = attrs.field(factory=lambda: ({}, {}), init=False)
    """Free resources of all nodes of the partition: of drained ones, and of those that accept tasks."""

    def take(self, amount: Mapping[str, int], sign: int) -> None:
        """Reduce the free resources by `amount` (`sign` 1), or increase them (-1)."""
        free, total = self.free, self._totals[self.open]
        for name, value in amount.items():
            before = free.get(name, 0)
            after = before - sign * value
            if after:
                free[name] = after
            else:
                free.pop(name, None)
            # An overcommitted node has no free resources, and takes none from other nodes.
            total[name] = total.get(name, 0) + max(after, 0) - max(before, 0)
        self._changed()

    def switch(self, open: bool) -> None:
        """Set if the node accepts new tasks."""
        if open != self.open:
            for name, value in self.free.items():
                for total, sign in ((self._totals[self.open], -1), (self._totals[open], 1)):
                    total[name] = total.get(name, 0) + sign * max(value, 0)
        self.open = open
        self._changed()

    def count_in(self, drained: Tally, free: Tally) -> None:
        """Add the free resources, now and after each change, to one of these totals."""
        self._totals = drained, free
        for name, value in self.free.items():
            self._totals[self.open][name] = self._totals[self.open].get(name, 0) + max(value, 0)

    def report(self, changes: list[Room] | None) -> None:
        """Request a notification: the node appends itself to this list at its next change."""
        self._changes = changes

    def watch(self, changed: dict[Room, None] | None) -> None:
        """Request notifications: the node adds itself to these nodes at each change; None ends them."""
        self._watcher = changed

    def _changed(self) -> None:
        if self._watcher is not None:
            self._watcher[self] = None
        if self._changes is not None:
            self._changes.append(self)
            self._changes = None

    @property
    def space(self) -> Space:
        """Free resources for new tasks, sorted by type; overcommitted types are left out."""
        if not self.open:
            return ()
        return tuple(sorted(item for item in self.free.items() if item[1] > 0))


class Rooms:
    """Nodes of a partition, counted by their free resources.

    Counts are updated incrementally, only for nodes that changed since the last access.
    """

    def __init__(self) -> None:
        self.capacities: Counter[Resource] = Counter()
        """Number of nodes by capacity."""
        self.free: Tally = {}
        """Free resources of all nodes that accept tasks; overcommitted nodes have none."""
        self.drained: Tally = {}
        """Free resources of all drained nodes."""
        self._rooms: dict[str, Room] = {}
        self._spaces: Counter[Space] = Counter()
        self._changes: list[Room] = []

    def __len__(self) -> int:
        return len(self._rooms)

    def __iter__(self) -> Iterator[Room]:
        return iter(self._rooms.values())

    @property
    def names(self) -> Iterable[str]:
        """Names of the nodes."""
        return self._rooms.keys()

    def add(self, name: str, room: Room) -> None:
        """Add a node."""
        self._rooms[name] = room
        room.count_in(self.drained, self.free)
        self.capacities[room.capacity] += 1
        self._changes.append(room)

    def remove(self, name: str) -> None:
        """Remove a node."""
        room = self._rooms.pop(name)
        self.capacities -= Counter([room.capacity])
        room.switch(False)

    def resize(self, room: Room, capacity: Resource) -> None:
        """Change the capacity of a node."""
        self.capacities -= Counter([room.capacity])
        self.capacities[capacity] += 1
        room.capacity = capacity

    def get(self, name: str) -> Room | None:
        """Return a node, or None if it has left."""
        return self._rooms.get(name)

    @property
    def spaces(self) -> Counter[Space]:
        """Number of nodes by their free resources; full nodes are left out."""
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
class FreeRoom:
    """Free and unusable amounts of the types that waiting tasks ask for; `cost` counts comparisons."""

    free: dict[str, int]
    unusable: dict[str, int]
    cost: int


def find_free_room(rooms: Rooms, waiting: Counter[Resource]) -> FreeRoom:
    """Compare the free resources with the waiting sizes."""
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
    return FreeRoom(
        free={name: free.get(name, 0) for name in asked},
        unusable={name: lost[name] // weights[name] for name in asked},
        cost=len(rooms) + len(spaces) * len(sizes),
    )


def _useless(spaces: Iterable[tuple[Tally, int]], size: Resource) -> Tally:
    """Return the free amounts per type on nodes on which a task of this size does not fit."""
    wanted = [item for item in size.items() if item[1] > 0]
    total: Tally = {}
    for here, nodes in spaces:
        for name, amount in wanted:
            if here.get(name, 0) < amount:
                grow(total, here, nodes)
                break
    return total
