"""Free amounts of all nodes together over the times to come, in blocks of times.

A block knows the least and the largest amounts of its times, so that it is passed, or taken from, as a whole.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping

from yunikorn_policies.expected_ends import NEVER, Amounts

LENGTH = 64
"""Number of times in a new block; one with twice as many is parted."""


class TimeBlock:
    """Successive times, each with the amounts that are free from then on."""

    def __init__(self, times: list[int], free: dict[str, list[int]]) -> None:
        self.times, self.free = times, free
        self.taken: Amounts = dict.fromkeys(free, 0)
        """Amounts that were taken at all times."""
        self.least: Amounts = {}
        self.most: Amounts = {}
        for name in free:
            self.measure(name)

    def measure(self, name: str) -> None:
        """Find the bounds of an amount."""
        self.least[name], self.most[name] = min(self.free[name]), max(self.free[name])

    def take(self, name: str, amount: int, first: int, last: int) -> None:
        """Take an amount at the times with these numbers."""
        if first == 0 and last == len(self.times):
            self.taken[name] = self.taken.get(name, 0) + amount
            return
        column = self.free[name]
        column[first:last] = [each - amount for each in column[first:last]]
        self.measure(name)

    def cut(self, place: int, time: int) -> None:
        """Insert a time, at which as much is free as before."""
        self.times.insert(place, time)
        for column in self.free.values():
            column.insert(place, column[place - 1])

    def halves(self) -> tuple[TimeBlock, TimeBlock]:
        """Return two blocks in the place of this one."""
        half = len(self.times) // 2
        found = tuple(
            TimeBlock(self.times[part], {name: column[part] for name, column in self.free.items()})
            for part in (slice(half), slice(half, None))
        )
        for block in found:
            block.taken = dict(self.taken)
        return found[0], found[1]


class PooledRoom:
    """Free amounts over the times to come."""

    def __init__(
        self, now: int, free: Mapping[str, int], ends: Iterable[tuple[int, Mapping[str, int]]] = ()
    ) -> None:
        """Create a pool from what is free now, and what will be released, in order of time."""
        room, rows = dict(free), [(now, dict(free))]
        for time, amounts in ends:
            for name, amount in amounts.items():
                room[name] = room.get(name, 0) + amount
            if time > rows[-1][0]:
                rows.append((time, dict(room)))
            else:
                rows[-1] = (rows[-1][0], dict(room))
        self._blocks = [
            TimeBlock(
                [time for time, _ in part], {name: [one.get(name, 0) for _, one in part] for name in room}
            )
            for part in (rows[at : at + LENGTH] for at in range(0, len(rows), LENGTH))
        ]
        self._firsts = [block.times[0] for block in self._blocks]

    def following(self, time: int) -> int:
        """Return the first time (ns) after one at which the amounts change, or `NEVER`."""
        at = max(bisect_right(self._firsts, time) - 1, 0)
        for block in self._blocks[at : at + 2]:
            place = bisect_right(block.times, time)
            if place < len(block.times):
                return block.times[place]
        return NEVER

    def begin(self, amounts: Mapping[str, int], time: int, since: int = 0) -> int:
        """Return the earliest time (ns), not before `since`, with room for a time, or `NEVER`."""
        needed = [(name, amount) for name, amount in amounts.items() if amount]
        at = max(bisect_right(self._firsts, since) - 1, 0)
        start = None
        for number in range(at, len(self._blocks)):
            block = self._blocks[number]
            if start is not None and block.times[0] >= start + time:
                return start
            left = [(name, amount + block.taken.get(name, 0)) for name, amount in needed]
            if any(block.most.get(name, -1) < amount for name, amount in left):
                start = None
            elif all(block.least[name] >= amount for name, amount in left):
                start = max(block.times[0], since) if start is None else start
            else:
                columns = [(block.free[name], amount) for name, amount in left]
                first = max(bisect_right(block.times, since) - 1, 0) if number == at else 0
                for place in range(first, len(block.times)):
                    if start is not None and block.times[place] >= start + time:
                        return start
                    if any(column[place] < amount for column, amount in columns):
                        start = None
                    elif start is None:
                        start = max(block.times[place], since)
        return NEVER if start is None else start

    def take(self, amounts: Mapping[str, int], time: int, begin: int) -> None:
        """Take amounts from a begin on for a time (ns)."""
        end = begin + time
        self._cut(begin)
        self._cut(end)
        at = max(bisect_right(self._firsts, begin) - 1, 0)
        for block in self._blocks[at:]:
            if block.times[0] >= end:
                break
            first, last = bisect_left(block.times, begin), bisect_left(block.times, end)
            for name, amount in amounts.items():
                if amount:
                    block.take(name, amount, first, last)

    def _cut(self, time: int) -> None:
        """Let the amounts change at a time; no effect before the first one."""
        at = bisect_right(self._firsts, time) - 1
        if at < 0:
            return
        block = self._blocks[at]
        place = bisect_left(block.times, time)
        if place < len(block.times) and block.times[place] == time:
            return
        block.cut(place, time)
        if len(block.times) >= 2 * LENGTH:
            self._blocks[at : at + 1] = halves = block.halves()
            self._firsts[at : at + 1] = [half.times[0] for half in halves]
