"""Index of requested amounts, which finds all ask classes that do not fit a node by binary search."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from yunikorn.objects.ask_class import AskClass


class FitIndex:
    """Sorted requested amounts per resource type, with the bits of the ask classes that request more.

    The index covers the ask classes that were passed in (`known`) and makes no statement about others.
    """

    __slots__ = ("_types", "known")

    def __init__(self, ask_classes: Iterable[AskClass]) -> None:
        self.known = 0
        """Bits of the ask classes in the index."""
        asked: dict[str, dict[int, int]] = {}
        for ask_class in ask_classes:
            self.known |= ask_class.bit
            for name, amount in ask_class.pairs:
                bits = asked.setdefault(name, {})
                bits[amount] = bits.get(amount, 0) | ask_class.bit
        self._types = [(name, *_steps(bits)) for name, bits in asked.items()]

    def unfit_bits(self, available: Mapping[str, int]) -> int:
        """Return the bits of the known ask classes that need more than `available`."""
        found = 0
        for name, amounts, above in self._types:
            found |= above[bisect_right(amounts, available.get(name, 0))]
        return found


def _steps(bits: Mapping[int, int]) -> tuple[list[int], list[int]]:
    """Return the amounts, ascending, and for each gap between them the bits of larger requests."""
    amounts = sorted(bits)
    above = [0]
    for amount in reversed(amounts):
        above.append(above[-1] | bits[amount])
    above.reverse()
    return amounts, above
