"""A line: queues or applications in their policy's order, with sight of what each still waits for.

What a member waits for is a set of claims, kept as bits of an integer (see `claim`). The line
is a list of short sorted blocks; a block remembers an upper bound of its members' bits, so that a
search walks past blocks, not members, that have nothing of what may be placed now. The bound rises
at once and is tightened only when a search has looked in vain, which keeps every move O(log n).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, Generic, Protocol, TypeVar

BLOCK = 48
"""Members of a block before it is split in two."""

Rank = tuple[Any, ...]
"""Where a member stands: smallest first; the last part makes it unique."""


class Member(Protocol):
    """What can stand in a line."""

    bits: int
    rank: Rank | None
    block: Block[Any] | None


M = TypeVar("M", bound=Member)
T = TypeVar("T")


class Block(Generic[M]):
    """A short sorted run of members."""

    __slots__ = ("bits", "members", "ranks")

    def __init__(self, ranks: list[Rank], members: list[M], bits: int) -> None:
        self.ranks = ranks
        self.members = members
        self.bits = bits


class Line(Generic[M]):
    """Members in order of their ranks."""

    __slots__ = ("_blocks", "_tops", "version")

    def __init__(self) -> None:
        self._blocks: list[Block[M]] = []
        self._tops: list[Rank] = []
        self.version = -1
        """Of the facts common to all ranks (such as the cluster's size), when they were computed."""

    def __len__(self) -> int:
        return sum(len(block.members) for block in self._blocks)

    def __iter__(self) -> Iterator[M]:
        for block in self._blocks:
            yield from block.members

    def put(self, member: M, rank: Rank) -> None:
        """Have `member` stand at `rank`, wherever it stood before.

        Raises whatever comparing ranks raises; the member is then out of the line.
        """
        if member.rank is not None:
            if member.rank == rank:
                block = member.block
                assert block is not None
                block.bits |= member.bits
                return
            if len(self._blocks) == 1:
                self._shift(member, member.rank, rank)
                return
            self.remove(member)
        if not self._blocks:
            self._blocks.append(Block([rank], [member], member.bits))
            self._tops.append(rank)
            member.rank, member.block = rank, self._blocks[0]
            return
        at = min(bisect_left(self._tops, rank), len(self._blocks) - 1)
        block = self._blocks[at]
        index = bisect_left(block.ranks, rank)
        block.ranks.insert(index, rank)
        block.members.insert(index, member)
        block.bits |= member.bits
        member.rank, member.block = rank, block
        if index == len(block.ranks) - 1:
            self._tops[at] = rank
        if len(block.ranks) > BLOCK:
            self._split(at)

    def _shift(self, member: M, old: Rank, rank: Rank) -> None:
        """Move a member of a line of one block: the common case, without the search for a block."""
        block = self._blocks[0]
        ranks, members = block.ranks, block.members
        at = bisect_left(ranks, rank)
        was = _index(ranks, members, old, member)
        if at > was:
            at -= 1
        if at != was:
            del members[was]
            members.insert(at, member)
        del ranks[was]
        ranks.insert(at, rank)
        member.rank = rank
        block.bits |= member.bits
        self._tops[0] = ranks[-1]

    def _split(self, at: int) -> None:
        block = self._blocks[at]
        half = len(block.ranks) // 2
        upper = Block(block.ranks[half:], block.members[half:], block.bits)
        del block.ranks[half:], block.members[half:]
        for member in upper.members:
            member.block = upper
        self._blocks.insert(at + 1, upper)
        self._tops[at] = block.ranks[-1]
        self._tops.insert(at + 1, upper.ranks[-1])

    def remove(self, member: M) -> None:
        """Take `member` out; harmless when it is not in."""
        block, rank = member.block, member.rank
        if block is None or rank is None:
            return
        member.block = member.rank = None
        index = _index(block.ranks, block.members, rank, member)
        del block.ranks[index], block.members[index]
        last = index == len(block.ranks)
        if block.ranks and not last:
            return
        at = _index(self._tops, self._blocks, rank, block)
        if block.ranks:
            self._tops[at] = block.ranks[-1]
        else:
            del self._blocks[at], self._tops[at]

    def clear(self) -> None:
        """Have nobody stand here: everybody has to be put in anew."""
        for member in self:
            member.rank = member.block = None
        self._blocks, self._tops, self.version = [], [], -1

    def first(self, wanted: int) -> M | None:
        """The foremost member that waits for any of the `wanted` claims."""
        for block in self._blocks:
            if block.bits & wanted:
                bits = 0
                for member in block.members:
                    if member.bits & wanted:
                        return member
                    bits |= member.bits
                block.bits = bits
        return None


def _index(ranks: list[Rank], things: list[T], rank: Rank, thing: T) -> int:
    """Where `thing` stands, even if its key compares to others differently at every look."""
    try:
        at = bisect_left(ranks, rank)
    except Exception:
        at = len(things)
    if at < len(things) and things[at] is thing:
        return at
    return next(at for at, other in enumerate(things) if other is thing)


class Roster(Generic[M]):
    """A plain sorted list of members by rank, for the front of a lane."""

    __slots__ = ("_members", "_ranks")

    def __init__(self) -> None:
        self._ranks: list[Rank] = []
        self._members: list[M] = []

    def __len__(self) -> int:
        return len(self._ranks)

    def add(self, member: M, rank: Rank) -> None:
        """Have `member` stand at `rank`; raises what comparing ranks raises."""
        at = bisect_left(self._ranks, rank)
        self._ranks.insert(at, rank)
        self._members.insert(at, member)

    def remove(self, member: M, rank: Rank) -> None:
        """Take out `member`, who stands at `rank`."""
        at = _index(self._ranks, self._members, rank, member)
        del self._ranks[at], self._members[at]

    def front(self, count: int) -> list[M]:
        """The first `count` members."""
        return self._members[:count]
