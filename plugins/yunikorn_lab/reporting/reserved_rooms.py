"""Free room of reserved nodes, as far as requests of other sizes want the room.

A reserved node with the free amount *f* counts as `min(f, max(u - w, 0))`: *u* is what all unblocked requests
want, and *w* what those requests want that have the size the node is reserved for. The sum over all nodes is
the difference of two sums of `max(u - p, 0)`, one over the points *w*, and one over the points *w + f*. Both
are kept in order, so that a record costs what changed since the last one, not the number of reserved nodes.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Iterable

import attrs

from yunikorn.resources import Resource
from yunikorn_lab.reporting.free_room import Room


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
