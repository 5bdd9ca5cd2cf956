"""Sorted blocks: a sorted sequence in short blocks, so that every change takes O(log n).

Each block has a summary of its items as bits, so that a search skips whole blocks. Blocks may be grouped, and
a group is then a block of blocks.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

SortKey = tuple[Any, ...]
"""Entry of a block: ends with its item; ascending, and unique without the item.

The type is loose on purpose: with a more precise tuple type, mypyc would unbox and copy the entry, and
identity tests would fail.
"""
Border = tuple[Any, ...]
"""Separator of two blocks: greater than all entries before it, and a prefix of the entry that followed it.

A border has no item, so it is exact for a search.
"""


class Block:
    """A short sorted run of entries."""

    __slots__ = ("bits", "entries")

    def __init__(self, entries: list[SortKey], bits: int) -> None:
        self.entries = entries
        self.bits = bits
        """Summary of the items."""

    def halve(self) -> tuple[Any, Border]:
        """Cut off and return the upper half, with the border below it."""
        half = len(self.entries) // 2
        upper = self.beside(self.entries[half:])
        del self.entries[half:]
        return upper, self.border_below(upper.entries[0])

    def beside(self, entries: list[SortKey]) -> Block:
        """Return a block with the upper entries of this one, to which their items refer from now on."""
        return Block(entries, self.bits)

    def border_below(self, entry: SortKey) -> Border:
        """Return the border in front of an entry."""
        return entry[:-1]


B = TypeVar("B")


class SortedBlocks(Generic[B]):
    """Consecutive blocks, or groups of blocks, and the borders between them; there is always one."""

    __slots__ = ("blocks", "borders")

    def __init__(self, blocks: list[B], borders: list[Border]) -> None:
        self.blocks = blocks
        self.borders = borders

    def split(self, at: int) -> B:
        """Split a block in two; returns the upper one."""
        block: Any = self.blocks[at]
        upper: B
        upper, border = block.halve()
        self.blocks.insert(at + 1, upper)
        self.borders.insert(at, border)
        return upper

    def drop(self, block: B) -> None:
        """Remove an empty block, unless it is the only one."""
        if self.borders:
            at = next(at for at, other in enumerate(self.blocks) if other is block)
            del self.blocks[at], self.borders[max(0, at - 1)]
