"""Fragmentation: free resources on nodes, and the part that waiting tasks cannot use.

A node's free resources are *unusable* for a waiting task size if a task of that size does not fit on the
node. The unusable amount of a resource type is the mean over all waiting sizes that ask for the type,
weighted by the number of waiting tasks. The measure follows Q. Weng et al., "Beware of fragmentation:
scheduling GPU-sharing workloads with fragmentation gradient descent", USENIX ATC 2023, but considers the
sizes that wait at the moment instead of typical sizes, and no parts of single devices. Sizes that do not fit
on any empty node are ignored, because fragmentation is not the reason for their wait.

Free room of reserved nodes, as far as requests of other sizes want the room.

A reserved node with the free amount *f* counts as `min(f, max(u - w, 0))`: *u* is what all unblocked requests
want, and *w* what those requests want that have the size the node is reserved for. The sum over all nodes is
the difference of two sums of `max(u - p, 0)`, one over the points *w*, and one over the points *w + f*. Both
are kept in order, so that a record costs what changed since the last one, not the number of reserved nodes.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

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


class RampSum:
    """The sum of `max(u - p, 0)` over points *p*, for a *u* that changes little between two calls."""

    __slots__ = ("_at", "_below", "_points", "_sum")

    def __init__(self) -> None:
        self._points: list[int] = []
        self._at = 0
        self._below = 0
        """Number of points below `_at`."""
        self._sum = 0
        """Sum of the points below `_at`."""

    def add(self, point: int) -> None:
        """Add a point; several may be equal."""
        insort(self._points, point)
        if point < self._at:
            self._below += 1
            self._sum += point

    def remove(self, point: int) -> None:
        """Remove one of the equal points."""
        del self._points[bisect_left(self._points, point)]
        if point < self._at:
            self._below -= 1
            self._sum -= point

    def at(self, amount: int) -> int:
        """Return the sum for `amount` as *u*."""
        if amount != self._at:
            before, self._below = self._below, bisect_left(self._points, amount)
            if self._below >= before:
                self._sum += sum(self._points[before : self._below])
            else:
                self._sum -= sum(self._points[self._below : before])
            self._at = amount
        return amount * self._below - self._sum


@attrs.define(eq=False)
class _Reserved:
    """A reserved node."""

    room: Room
    sizes: set[Resource]
    """Sizes of the requests that the node is reserved for."""
    points: list[tuple[str, int, int]] = attrs.Factory(list)
    """By resource type: the points that the sums have for this node."""


class ReservedRooms:
    """Reserved nodes of one partition."""

    def __init__(self, wanted: Callable[[str, Iterable[Resource]], int]) -> None:
        """Create without nodes; `wanted` returns what requests of some sizes want of a resource type."""
        self._wanted = wanted
        self._nodes: dict[str, _Reserved] = {}
        self._of_room: dict[Room, _Reserved] = {}
        self._of_size: dict[Resource, dict[_Reserved, None]] = {}
        self._changed_rooms: dict[Room, None] = {}
        self._starts: defaultdict[str, RampSum] = defaultdict(RampSum)
        self._ends: defaultdict[str, RampSum] = defaultdict(RampSum)

    def set(self, node: str, room: Room | None, sizes: set[Resource]) -> None:
        """Set the sizes that a node is reserved for; without sizes, or without a room, it is not reserved."""
        known = self._nodes.pop(node, None)
        if known is not None:
            self._forget(known)
        if room is None or not sizes:
            return
        reserved = self._nodes[node] = self._of_room[room] = _Reserved(room, sizes)
        for size in sizes:
            self._of_size.setdefault(size, {})[reserved] = None
        room.watch(self._changed_rooms)
        self._changed_rooms[room] = None

    def _forget(self, reserved: _Reserved) -> None:
        self._remove_points(reserved)
        reserved.room.watch(None)
        del self._of_room[reserved.room]
        self._changed_rooms.pop(reserved.room, None)
        for size in reserved.sizes:
            same = self._of_size[size]
            del same[reserved]
            if not same:
                del self._of_size[size]

    def refresh(self, sizes: Iterable[Resource]) -> None:
        """Apply all changes since the last call: those of rooms, and of the number of requests of `sizes`."""
        changed = {self._of_room[room]: None for room in self._changed_rooms}
        self._changed_rooms.clear()
        if self._of_size:
            for size in sizes:
                changed.update(self._of_size.get(size, {}))
        for reserved in changed:
            self._remove_points(reserved)
            self._add_points(reserved)

    def _add_points(self, reserved: _Reserved) -> None:
        if not reserved.room.open:
            return
        for name, free in reserved.room.free.items():
            if free > 0:
                start = self._wanted(name, reserved.sizes)
                self._starts[name].add(start)
                self._ends[name].add(start + free)
                reserved.points.append((name, start, start + free))

    def _remove_points(self, reserved: _Reserved) -> None:
        for name, start, end in reserved.points:
            self._starts[name].remove(start)
            self._ends[name].remove(end)
        reserved.points.clear()

    def kept(self, name: str, wanted: int) -> int:
        """Return the free room of a type that others want, if all unblocked requests want `wanted`."""
        return self._starts[name].at(wanted) - self._ends[name].at(wanted) if name in self._starts else 0
