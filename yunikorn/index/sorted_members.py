"""Sorted members: queues or applications in the order of their policy, searchable by pending class.

The pending classes of a member are a set, stored as the bits of an integer (see `pending_class`). Members are
stored in short sorted blocks. Each block has an upper bound of its members' bits, so that a search skips
whole blocks without schedulable requests. The bound rises immediately, and is tightened only after an
unsuccessful search of the block. Every move therefore takes O(log n).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from yunikorn.errors import CONTAINED
from yunikorn.resources import Tally, less

BLOCK = 96
"""Maximum number of members of a block before it is split."""

SortKey = tuple[Any, ...]
"""Sort key of a member, with the member as the last element; ascending, and unique without the member."""


class QueueMember:
    """Base of applications and queues: objects that a queue sorts."""

    __slots__ = ("allocated", "bits", "block", "demand", "is_dirty", "priority", "sort_key", "tie")

    def __init__(self, tie: int | str, priority: int) -> None:
        self.tie = tie
        """Tie-breaker between members with equal keys."""
        self.priority = priority
        """Highest priority of the waiting requests."""
        self.bits = 0
        """Bits of the pending classes with schedulable requests."""
        self.sort_key: SortKey | None = None
        self.block: Block[Any] | None = None
        """The block that contains the member, if any."""
        self.is_dirty = False
        """True if the member is in the `dirty` list of its queue."""
        self.allocated: Tally = {}
        """Allocated resources, including all members below."""
        self.demand: Tally = {}
        """Allocated plus pending resources; a placement does not change the sum."""

    @property
    def label(self) -> str:
        """Name of the member in messages."""
        raise NotImplementedError

    @property
    def pending(self) -> Tally:
        """Pending resources, including all members below."""
        return less(self.demand, self.allocated)

    def is_schedulable(self) -> bool:
        """Return True if any request may be scheduled at the member's turn."""
        raise NotImplementedError


M = TypeVar("M", bound=QueueMember)


class Block(Generic[M]):
    """A short sorted list of sort keys, each ending with its member."""

    __slots__ = ("bits", "sort_keys")

    def __init__(self, sort_keys: list[SortKey], bits: int) -> None:
        self.sort_keys = sort_keys
        self.bits = bits


class SortedMembers(Generic[M]):
    """Members sorted by their sort keys."""

    __slots__ = ("blocks", "tops", "version")

    def __init__(self) -> None:
        self.blocks: list[Block[M]] = [Block([], 0)]
        self.tops: list[SortKey] = []
        """Separator between each two consecutive blocks: a sort key without its member."""
        self.version = -1
        """Version of the inputs shared by all sort keys (such as the cluster size) when the keys were
        computed."""

    def __len__(self) -> int:
        return sum(len(block.sort_keys) for block in self.blocks)

    def __iter__(self) -> Iterator[M]:
        for block in self.blocks:
            for sort_key in block.sort_keys:
                yield sort_key[-1]

    def put(self, member: M, sort_key: SortKey) -> None:
        """Insert or move `member` to `sort_key`, which ends with the member.

        Comparisons of sort keys may raise exceptions; the member is then no longer contained.
        """
        block = member.block
        if block is not None:
            sort_keys = block.sort_keys
            if len(sort_keys) > 1 and sort_keys[0] is member.sort_key:
                # Fast path: the member served last was nearly always the first.
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
        """Remove `member`, if it is contained."""
        block, sort_key = member.block, member.sort_key
        if block is None or sort_key is None:
            return
        member.block = member.sort_key = None
        sort_keys = block.sort_keys
        del sort_keys[_index(sort_keys, sort_key)]
        if not sort_keys and self.tops:
            self._drop(block)

    def _drop(self, block: Block[M]) -> None:
        """Remove an empty block."""
        at = next(at for at, other in enumerate(self.blocks) if other is block)
        del self.blocks[at], self.tops[min(at, len(self.tops) - 1)]

    def clear(self) -> None:
        """Remove all members."""
        for member in self:
            member.sort_key = member.block = None
        self.blocks, self.tops, self.version = [Block([], 0)], [], -1

    def first(self, wanted: int) -> M | None:
        """Return the first member that waits for any of the `wanted` pending classes."""
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
    """Return the index of `sort_key`, even if comparisons of the key are inconsistent."""
    try:
        at = bisect_left(sort_keys, sort_key)
    except Exception:
        at = len(sort_keys)
    if at < len(sort_keys) and sort_keys[at] is sort_key:
        return at
    return next(at for at, other in enumerate(sort_keys) if other is sort_key)


class SortedKeys(Generic[M]):
    """Sort keys in short sorted blocks; every operation takes O(log n) comparisons.

    Blocks are separated by the sort key that the second block began with at the split, without its member.
    The separator is exact for a search, because sort keys are unique without their members.
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
        """The smallest sort key; None if there is none."""
        return self._blocks[0][0] if self._size else None

    def add(self, sort_key: SortKey) -> None:
        """Insert `sort_key`, which ends with its member; comparisons may raise exceptions."""
        at = bisect_left(self._tops, sort_key) if self._tops else 0
        insort(self._blocks[at], sort_key)
        self._grew(at)

    def remove(self, sort_key: SortKey) -> None:
        """Remove `sort_key`."""
        at, place = self._find(sort_key)
        del self._blocks[at][place]
        self._shrank(at)

    def take_first(self) -> SortKey:
        """Remove and return the smallest sort key."""
        sort_key = self._blocks[0].pop(0)
        self._shrank(0)
        return sort_key

    def take_last(self) -> SortKey:
        """Remove and return the largest sort key."""
        at = len(self._blocks) - 1
        sort_key = self._blocks[at].pop()
        self._shrank(at)
        return sort_key

    def put_first(self, sort_key: SortKey) -> None:
        """Insert `sort_key`, which must be smaller than all others, without a comparison."""
        self._blocks[0].insert(0, sort_key)
        self._grew(0)

    def put_last(self, sort_key: SortKey) -> None:
        """Insert `sort_key`, which must be larger than all others, without a comparison."""
        at = len(self._blocks) - 1
        self._blocks[at].append(sort_key)
        self._grew(at)

    def _find(self, sort_key: SortKey) -> tuple[int, int]:
        """Return the block of `sort_key` and the index there, even if comparisons are inconsistent."""
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
