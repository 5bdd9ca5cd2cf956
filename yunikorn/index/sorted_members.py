"""Sorted members: queues or applications in the order of their policy, searchable by pending class.

The pending classes of a member are a set, stored as the bits of an integer (see `pending_class`). Members are
stored in short sorted blocks. Each block has an upper bound of its members' bits, so that a search skips
whole blocks without schedulable requests. The bound rises immediately, and is tightened only after an
unsuccessful search of the block. Every move therefore takes O(log n).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Generic, TypeVar

from yunikorn.containment import contained
from yunikorn.index.sorted_blocks import Block, SortedBlocks, SortKey
from yunikorn.resources import Tally, less

BLOCK = 96
"""Maximum number of members of a block before it is split."""


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
        self.block: MemberBlock | None = None
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


class MemberBlock(Block):
    """A block of members, which refer to it; `bits` has at least the bits of its members."""

    __slots__ = ()

    def beside(self, entries: list[SortKey]) -> MemberBlock:
        """Return a block with the upper members of this one."""
        upper = MemberBlock(entries, self.bits)
        for sort_key in entries:
            sort_key[-1].block = upper
        return upper


class SortedMembers(SortedBlocks[MemberBlock], Generic[M]):
    """Members sorted by their sort keys."""

    __slots__ = ("version",)

    def __init__(self) -> None:
        super().__init__([MemberBlock([], 0)], [])
        self.version = -1
        """Version of the inputs shared by all sort keys (such as the cluster size) when the keys were
        computed."""

    def __len__(self) -> int:
        return sum(len(block.entries) for block in self.blocks)

    def __iter__(self) -> Iterator[M]:
        for block in self.blocks:
            for sort_key in block.entries:
                yield sort_key[-1]

    def put(self, member: M, sort_key: SortKey) -> None:
        """Insert or move `member` to `sort_key`, which ends with the member.

        Comparisons of sort keys may raise exceptions; the member is then no longer contained.
        """
        block = member.block
        if block is not None:
            sort_keys = block.entries
            if len(sort_keys) > 1 and sort_keys[0] is member.sort_key:
                # Fast path: the member served last was nearly always the first.
                del sort_keys[0]
                member.block = None
            else:
                self.remove(member)
        at = bisect_left(self.borders, sort_key) if self.borders else 0
        block = self.blocks[at]
        sort_keys = block.entries
        insort(sort_keys, sort_key)
        block.bits |= member.bits
        member.sort_key = sort_key
        member.block = block
        if len(sort_keys) > BLOCK:
            self.split(at)

    def remove(self, member: M) -> None:
        """Remove `member`, if it is contained."""
        block, sort_key = member.block, member.sort_key
        if block is None or sort_key is None:
            return
        member.block = member.sort_key = None
        sort_keys = block.entries
        del sort_keys[_index(sort_keys, sort_key)]
        if not sort_keys:
            self.drop(block)

    def clear(self) -> None:
        """Remove all members."""
        for member in self:
            member.sort_key = member.block = None
        self.blocks, self.borders, self.version = [MemberBlock([], 0)], [], -1

    def first(self, wanted: int) -> M | None:
        """Return the first member that waits for any of the `wanted` pending classes."""
        for block in self.blocks:
            if block.bits & wanted:
                bits = 0
                for sort_key in block.entries:
                    member: M = sort_key[-1]
                    if member.bits & wanted:
                        return member
                    bits |= member.bits
                block.bits = bits
        return None

    def having(self, wanted: int) -> Iterator[M]:
        """Yield the members that wait for any of the `wanted` pending classes, in order."""
        for block in self.blocks:
            if block.bits & wanted:
                for sort_key in block.entries:
                    member: M = sort_key[-1]
                    if member.bits & wanted:
                        yield member


def _index(sort_keys: list[SortKey], sort_key: SortKey) -> int:
    """Return the index of `sort_key`, even if comparisons of the key are inconsistent."""
    try:
        at = bisect_left(sort_keys, sort_key)
    except contained():
        at = len(sort_keys)
    if at < len(sort_keys) and sort_keys[at] is sort_key:
        return at
    return next(at for at, other in enumerate(sort_keys) if other is sort_key)


class SortedKeys(SortedBlocks[Block]):
    """Sort keys in short sorted blocks; every operation takes O(log n) comparisons."""

    __slots__ = ("_size",)

    def __init__(self) -> None:
        super().__init__([Block([], 0)], [])
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def first(self) -> SortKey | None:
        """The smallest sort key; None if there is none."""
        return self.blocks[0].entries[0] if self._size else None

    def add(self, sort_key: SortKey) -> None:
        """Insert `sort_key`, which ends with its member; comparisons may raise exceptions."""
        at = bisect_left(self.borders, sort_key) if self.borders else 0
        insort(self.blocks[at].entries, sort_key)
        self._grew(at)

    def remove(self, sort_key: SortKey) -> None:
        """Remove `sort_key`."""
        at, place = self._find(sort_key)
        del self.blocks[at].entries[place]
        self._shrank(at)

    def take_first(self) -> SortKey:
        """Remove and return the smallest sort key."""
        sort_key = self.blocks[0].entries.pop(0)
        self._shrank(0)
        return sort_key

    def take_last(self) -> SortKey:
        """Remove and return the largest sort key."""
        at = len(self.blocks) - 1
        sort_key = self.blocks[at].entries.pop()
        self._shrank(at)
        return sort_key

    def put_first(self, sort_key: SortKey) -> None:
        """Insert `sort_key`, which must be smaller than all others, without a comparison."""
        self.blocks[0].entries.insert(0, sort_key)
        self._grew(0)

    def put_last(self, sort_key: SortKey) -> None:
        """Insert `sort_key`, which must be larger than all others, without a comparison."""
        at = len(self.blocks) - 1
        self.blocks[at].entries.append(sort_key)
        self._grew(at)

    def _find(self, sort_key: SortKey) -> tuple[int, int]:
        """Return the block of `sort_key` and the index there, even if comparisons are inconsistent."""
        try:
            at = bisect_left(self.borders, sort_key)
            sort_keys = self.blocks[at].entries
            place = bisect_left(sort_keys, sort_key)
            if place < len(sort_keys) and sort_keys[place] is sort_key:
                return at, place
        except contained():
            pass
        return next(
            (at, place)
            for at, block in enumerate(self.blocks)
            for place, other in enumerate(block.entries)
            if other is sort_key
        )

    def _grew(self, at: int) -> None:
        self._size += 1
        if len(self.blocks[at].entries) > BLOCK:
            self.split(at)

    def _shrank(self, at: int) -> None:
        self._size -= 1
        if not self.blocks[at].entries:
            self.drop(self.blocks[at])
