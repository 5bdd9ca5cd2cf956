"""A line: queues or applications in their policy's order, with sight of what each still waits for.

What a member waits for is a set of pending classes, kept as bits of an integer (see `pending_class`). The
line
is a list of short sorted blocks; a block remembers an upper bound of its members' bits, so that a
search walks past blocks, not members, that have nothing of what may be placed now. The bound rises
at once and is tightened only when a search has looked in vain, which keeps every move O(log n).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from yunikorn.errors import CONTAINED
from yunikorn.resources import Tally, less

BLOCK = 96
"""Members of a block before it is split in two."""

Rank = tuple[Any, ...]
"""Where a member stands, and at its end the member; smallest first, unique without the member."""


class Member:
    """What can stand in a line: an application, or a queue."""

    __slots__ = ("allocated", "bits", "block", "demand", "priority", "rank", "tie", "touched")

    def __init__(self, tie: int | str, priority: int) -> None:
        self.tie = tie
        """What decides between equals."""
        self.priority = priority
        """The highest that waits in it."""
        self.bits = 0
        """Bits of the pending classes that it waits for and that are worth trying."""
        self.rank: Rank | None = None
        self.block: Block[Any] | None = None
        """Where it stands; None where it does not."""
        self.touched = False
        """Whether it is among those of its line that have changed."""
        self.allocated: Tally = {}
        """What it holds, with all below it."""
        self.demand: Tally = {}
        """What it holds and what it waits for, together: a decision does not change it."""

    @property
    def label(self) -> str:
        """What a message calls it."""
        raise NotImplementedError

    @property
    def pending(self) -> Tally:
        """What it waits for, with all below it."""
        return less(self.demand, self.allocated)

    def waits(self) -> bool:
        """Whether anything of it is to be tried in its turn."""
        raise NotImplementedError


M = TypeVar("M", bound=Member)


class Block(Generic[M]):
    """A short sorted run of members, kept as their ranks: each ends with its member."""

    __slots__ = ("bits", "ranks")

    def __init__(self, ranks: list[Rank], bits: int) -> None:
        self.ranks = ranks
        self.bits = bits


class Line(Generic[M]):
    """Members in order of their ranks."""

    __slots__ = ("blocks", "tops", "version")

    def __init__(self) -> None:
        self.blocks: list[Block[M]] = [Block([], 0)]
        self.tops: list[Rank] = []
        """Between any two blocks the rank that parts them, without its member."""
        self.version = -1
        """Of the facts common to all ranks (such as the cluster's size), when they were computed."""

    def __len__(self) -> int:
        return sum(len(block.ranks) for block in self.blocks)

    def __iter__(self) -> Iterator[M]:
        for block in self.blocks:
            for rank in block.ranks:
                yield rank[-1]

    def put(self, member: M, rank: Rank) -> None:
        """Have `member` stand at `rank`, which ends with it, wherever it stood before.

        Raises whatever comparing ranks raises; the member is then out of the line.
        """
        block = member.block
        if block is not None:
            ranks = block.ranks
            if len(ranks) > 1 and ranks[0] is member.rank:
                # Nearly always: whoever was served last stood in front.
                del ranks[0]
                member.block = None
            else:
                self.remove(member)
        at = bisect_left(self.tops, rank) if self.tops else 0
        block = self.blocks[at]
        ranks = block.ranks
        insort(ranks, rank)
        block.bits |= member.bits
        member.rank = rank
        member.block = block
        if len(ranks) > BLOCK:
            self._split(at)

    def _split(self, at: int) -> None:
        block = self.blocks[at]
        half = len(block.ranks) // 2
        upper: Block[M] = Block(block.ranks[half:], block.bits)
        del block.ranks[half:]
        for rank in upper.ranks:
            rank[-1].block = upper
        self.blocks.insert(at + 1, upper)
        self.tops.insert(at, block.ranks[-1][:-1])

    def remove(self, member: M) -> None:
        """Take `member` out; harmless when it is not in."""
        block, rank = member.block, member.rank
        if block is None or rank is None:
            return
        member.block = member.rank = None
        ranks = block.ranks
        del ranks[_index(ranks, rank)]
        if not ranks and self.tops:
            self._drop(block)

    def _drop(self, block: Block[M]) -> None:
        """A block has nobody left."""
        at = next(at for at, other in enumerate(self.blocks) if other is block)
        del self.blocks[at], self.tops[min(at, len(self.tops) - 1)]

    def clear(self) -> None:
        """Have nobody stand here: everybody has to be put in anew."""
        for member in self:
            member.rank = member.block = None
        self.blocks, self.tops, self.version = [Block([], 0)], [], -1

    def first(self, wanted: int) -> M | None:
        """The foremost member that waits for any of the `wanted` pending classes."""
        for block in self.blocks:
            if block.bits & wanted:
                bits = 0
                for rank in block.ranks:
                    member: M = rank[-1]
                    if member.bits & wanted:
                        return member
                    bits |= member.bits
                block.bits = bits
        return None


def _index(ranks: list[Rank], rank: Rank) -> int:
    """Where `rank` stands, even if its key compares to others differently at every look."""
    try:
        at = bisect_left(ranks, rank)
    except Exception:
        at = len(ranks)
    if at < len(ranks) and ranks[at] is rank:
        return at
    return next(at for at, other in enumerate(ranks) if other is rank)


class Roster(Generic[M]):
    """The ranks of some members in order, in short sorted blocks: every operation takes O(log n) comparisons.

    A block is parted from the next by the rank that the next began with when they were split, without its
    member: exact for a search, as no two ranks are equal without their members.
    """

    __slots__ = ("_blocks", "_size", "_tops")

    def __init__(self) -> None:
        self._blocks: list[list[Rank]] = [[]]
        self._tops: list[Rank] = []
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def first(self) -> Rank | None:
        """The smallest rank; None without members."""
        return self._blocks[0][0] if self._size else None

    def add(self, rank: Rank) -> None:
        """Have a member stand at `rank`, which ends with it; raises what comparing ranks raises."""
        at = bisect_left(self._tops, rank) if self._tops else 0
        insort(self._blocks[at], rank)
        self._grew(at)

    def remove(self, rank: Rank) -> None:
        """Take out the member that stands at `rank`."""
        at, place = self._find(rank)
        del self._blocks[at][place]
        self._shrank(at)

    def take_first(self) -> Rank:
        """Take the smallest rank out."""
        rank = self._blocks[0].pop(0)
        self._shrank(0)
        return rank

    def take_last(self) -> Rank:
        """Take the largest rank out."""
        at = len(self._blocks) - 1
        rank = self._blocks[at].pop()
        self._shrank(at)
        return rank

    def put_first(self, rank: Rank) -> None:
        """Put `rank`, which is smaller than all here, in front; compares nothing."""
        self._blocks[0].insert(0, rank)
        self._grew(0)

    def put_last(self, rank: Rank) -> None:
        """Put `rank`, which is larger than all here, at the end; compares nothing."""
        at = len(self._blocks) - 1
        self._blocks[at].append(rank)
        self._grew(at)

    def _find(self, rank: Rank) -> tuple[int, int]:
        """The block of `rank`, and its place there, even if its key compares differently at every look."""
        try:
            at = bisect_left(self._tops, rank)
            ranks = self._blocks[at]
            place = bisect_left(ranks, rank)
            if place < len(ranks) and ranks[place] is rank:
                return at, place
        except CONTAINED:
            pass
        return next(
            (at, place)
            for at, ranks in enumerate(self._blocks)
            for place, other in enumerate(ranks)
            if other is rank
        )

    def _grew(self, at: int) -> None:
        self._size += 1
        ranks = self._blocks[at]
        if len(ranks) > BLOCK:
            half = len(ranks) // 2
            self._blocks.insert(at + 1, ranks[half:])
            self._tops.insert(at, ranks[half][:-1])
            del ranks[half:]

    def _shrank(self, at: int) -> None:
        self._size -= 1
        if not self._blocks[at] and self._tops:
            del self._blocks[at], self._tops[max(0, at - 1)]
