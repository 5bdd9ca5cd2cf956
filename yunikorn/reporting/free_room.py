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
from collections.abc import Iterable, Mapping

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
    _space: Space | None = attrs.field(default=None, init=False)
    """What `space` last found, until something changes: most nodes are as they were at the last look."""

    def take(self, amount: Mapping[str, int], sign: int) -> None:
        """`amount` less is free (`sign` 1), or more (-1)."""
        grow(self.free, amount, -sign)
        self._space = None

    @property
    def space(self) -> Space:
        """What is free, by the names of the types; what is over-committed is no room at all."""
        if self._space is None:
            self._space = tuple(sorted(item for item in self.free.items() if item[1] > 0))
        return self._space


@attrs.frozen
class Look:
    """Free and unusable amounts, of the types that something waits for; `cost` in comparisons."""

    free: dict[str, int]
    unusable: dict[str, int]
    cost: int


def look(rooms: Iterable[Room], waiting: Counter[Resource]) -> Look:
    """Compare what is free with the sizes that wait."""
    spaces: Counter[Space] = Counter()
    count = 0
    largest: set[Resource] = set()
    for room in rooms:
        count += 1
        largest.add(room.capacity)
        if room.open and room.space:
            spaces[room.space] += 1
    sizes = [
        (size, tasks)
        for size, tasks in waiting.most_common(SIZES)
        if any(fits(capacity, size) for capacity in largest)
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
        cost=count + len(spaces) * len(sizes),
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
