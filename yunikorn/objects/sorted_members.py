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

SortKey = tuple[Any, ...]
"""Where a member stands, and at its end the member; smallest first, unique without the member."""


class QueueMember:
    """What can stand in a line: an application, or a queue."""

    __slots__ = ("allocated", "bits", "block", "demand", "is_dirty", "priority", "sort_key", "tie")

    def __init__(self, tie: int | str, priority: int) -> None:
        self.tie = tie
        """What decides between equals."""
        self.priority = priority
        """The highest that waits in it."""
        self.bits = 0
        """Bits of the pending classes that it waits for and that are worth trying."""
        self.sort_key: SortKey | None = None
        self.block: Block[Any] | None = None
        """Where it stands; None where it does not."""
        self.is_dirty = False
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


M = TypeVar("M", bound=QueueMember)


class Block(Generic[M]):
    """A short sorted run of members, kept as their ranks: each ends with its member."""

    __slots__ = ("bits", "sort_keys")

    def __init__(self, sort_keys: list[SortKey], bits: int) -> None:
        self.sort_keys = sort_keys
        self.bits = bits


class SortedMembers(Generic[M]):
    """Members in order of their ranks."""

    __slots__ = ("blocks", "tops", "version")

    def __init__(self) -> None:
        self.blocks: list[Block[M]] = [Block([], 0)]
        self.tops: list[SortKey] = []
        """Between any two blocks the rank that parts them, without its member."""
        self.version = -1
        """Of the facts common to all ranks (such as the cluster's size), when they were computed."""

    def __len__(self) -> int:
        return sum(len(block.sort_keys) for block in self.blocks)

    def __iter__(self) -> Iterator[M]:
        for block in self.blocks:
            for sort_key in block.sort_keys:
                yield sort_key[-1]

    def put(self, member: M, sort_key: SortKey) -> None:
        """Have `member` stand at `sort_key`, which ends with it, wherever it stood before.

        Raises whatever comparing ranks raises; the member is then out of the line.
        """
        block = member.block
        if block is not None:
            sort_keys = block.sort_keys
            if len(sort_keys) > 1 and sort_keys[0] is member.sort_key:
                # Nearly always: whoever was served last stood in front.
                del sort_keys[0]
                member.block = None
            else:
                self.remove(member)
        at = bisect_left(self.tops, sort_key) if self.tops else 0
        block = self.blocks[at]
        sort_keys = block.sort_keys
        insort(sort_keys, sort_key)
        block.bits |= member.bits
        member.sort_key = sort_key
        member.block = block
        if len(sort_keys) > BLOCK:
            self._split(at)

    def _split(self, at: int) -> None:
        block = self.blocks[at]
        half = len(block.sort_keys) // 2
        upper: Block[M] = Block(block.sort_keys[half:], block.bits)
        del block.sort_keys[half:]
        for sort_key in upper.sort_keys:
            sort_key[-1].block = upper
        self.blocks.insert(at + 1, upper)
        self.tops.insert(at, block.sort_keys[-1][:-1])

    def remove(self, member: M) -> None:
        """Take `member` out; harmless when it is not in."""
        block, sort_key = member.block, member.sort_key
        if block is None or sort_key is None:
            return
        member.block = member.sort_key = None
        sort_keys = block.sort_keys
        del sort_keys[_index(sort_keys, sort_key)]
        if not sort_keys and self.tops:
            self._drop(block)

    def _drop(self, block: Block[M]) -> None:
        """A block has nobody left."""
        at = next(at for at, other in enumerate(self.blocks) if other is block)
        del self.blocks[at], self.tops[min(at, len(self.tops) - 1)]

    def clear(self) -> None:
        """Have nobody stand here: everybody has to be put in anew."""
        for member in self:
            member.sort_key = member.block = None
        self.blocks, self.tops, self.version = [Block([], 0)], [], -1

    def first(self, wanted: int) -> M | None:
        """The foremost member that waits for any of the `wanted` pending classes."""
        for block in self.blocks:
            if block.bits & wanted:
                bits = 0
                for sort_key in block.sort_keys:
                    member: M = sort_key[-1]
                    if member.bits & wanted:
                        return member
                    bits |= member.bits
                block.bits = bits
        return None


def _index(sort_keys: list[SortKey], sort_key: SortKey) -> int:
    """Where `sort_key` stands, even if its key compares to others differently at every look."""
    try:
        at = bisect_left(sort_keys, sort_key)
    except Exception:
        at = len(sort_keys)
    if at < len(sort_keys) and sort_keys[at] is sort_key:
        return at
    return next(at for at, other in enumerate(sort_keys) if other is sort_key)


class SortedKeys(Generic[M]):
    """The ranks of some members in order, in short sorted blocks: every operation takes O(log n) comparisons.

    A block is parted from the next by the rank that the next began with when they were split, without its
    member: exact for a search, as no two ranks are equal without their members.
    """

    __slots__ = ("_blocks", "_size", "_tops")

    def __init__(self) -> None:
        self._blocks: list[list[SortKey]] = [[]]
        self._tops: list[SortKey] = []
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def first(self) -> SortKey | None:
        """The smallest rank; None without members."""
        return self._blocks[0][0] if self._size else None

    def add(self, sort_key: SortKey) -> None:
        """Have a member stand at `sort_key`, which ends with it; raises what comparing ranks raises."""
        at = bisect_left(self._tops, sort_key) if self._tops else 0
        insort(self._blocks[at], sort_key)
        self._grew(at)

    def remove(self, sort_key: SortKey) -> None:
        """Take out the member that stands at `sort_key`."""
        at, place = self._find(sort_key)
        del self._blocks[at][place]
        self._shrank(at)

    def take_first(self) -> SortKey:
        """Take the smallest rank out."""
        sort_key = self._blocks[0].pop(0)
        self._shrank(0)
        return sort_key

    def take_last(self) -> SortKey:
        """Take the largest rank out."""
        at = len(self._blocks) - 1
        sort_key = self._blocks[at].pop()
        self._shrank(at)
        return sort_key

    def put_first(self, sort_key: SortKey) -> None:
        """Put `sort_key`, which is smaller than all here, in front; compares nothing."""
        self._blocks[0].insert(0, sort_key)
        self._grew(0)

    def put_last(self, sort_key: SortKey) -> None:
        """Put `sort_key`, which is larger than all here, at the end; compares nothing."""
        at = len(self._blocks) - 1
        self._blocks[at].append(sort_key)
        self._grew(at)

    def _find(self, sort_key: SortKey) -> tuple[int, int]:
        """The block of `sort_key`, and its place there, even if its key compares differently at every
        look.
        """
        try:
            at = bisect_left(self._tops, sort_key)
            sort_keys = self._blocks[at]
            place = bisect_left(sort_keys, sort_key)
            if place < len(sort_keys) and sort_keys[place] is sort_key:
                return at, place
        except CONTAINED:
            pass
        return next(
            (at, place)
            for at, sort_keys in enumerate(self._blocks)
            for place, other in enumerate(sort_keys)
            if other is sort_key
        )

    def _grew(self, at: int) -> None:
        self._size += 1
        sort_keys = self._blocks[at]
        if len(sort_keys) > BLOCK:
            half = len(sort_keys) // 2
            self._blocks.insert(at + 1, sort_keys[half:])
            self._tops.insert(at, sort_keys[half][:-1])
            del sort_keys[half:]

    def _shrank(self, at: int) -> None:
        self._size -= 1
        if not self._blocks[at] and self._tops:
            del self._blocks[at], self._tops[max(0, at - 1)]
