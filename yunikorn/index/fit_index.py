"""Index of requested amounts, which finds all classes of requests that do not fit by binary search."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping


class FitIndex:
    """Sorted requested amounts per resource type, with the bits of the classes that request more.

    The index covers the classes that were passed in (`known`) and makes no statement about others.
    """

    __slots__ = ("_types", "known")

    def __init__(self, classes: Iterable[tuple[int, Iterable[tuple[str, int]]]]) -> None:
        """Create for classes, each with its bit, and the names and amounts of the resources it requests."""
        self.known = 0
        """Bits of the classes in the index."""
        asked: dict[str, dict[int, int]] = {}
        for bit, pairs in classes:
            self.known |= bit
            for name, amount in pairs:
                bits = asked.setdefault(name, {})
                bits[amount] = bits.get(amount, 0) | bit
        self._types = [(name, *_steps(bits)) for name, bits in asked.items()]

    def unfit_bits(self, available: Mapping[str, int]) -> int:
        """Return the bits of the known classes that need more than `available`."""
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
