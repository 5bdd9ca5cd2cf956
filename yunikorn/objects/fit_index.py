"""Which ask classes a node has no room for, found by two short searches instead of a look at each ask
class.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from yunikorn.objects.ask_class import AskClass


class FitIndex:
    """Per resource type: the amounts that ask classes ask for, and the bits of those that ask for more.

    Made for the ask classes of one moment (`known`); what it does not know it says nothing about.
    """

    __slots__ = ("_types", "known")

    def __init__(self, ask_classes: Iterable[AskClass]) -> None:
        self.known = 0
        """Bits of the ask classes that it knows."""
        asked: dict[str, dict[int, int]] = {}
        for ask_class in ask_classes:
            self.known |= ask_class.bit
            for name, amount in ask_class.pairs:
                bits = asked.setdefault(name, {})
                bits[amount] = bits.get(amount, 0) | ask_class.bit
        self._types = [(name, *_steps(bits)) for name, bits in asked.items()]

    def unfit_bits(self, available: Mapping[str, int]) -> int:
        """Bits of the known ask classes for one of which so much is not enough."""
        found = 0
        for name, amounts, above in self._types:
            found |= above[bisect_right(amounts, available.get(name, 0))]
        return found


def _steps(bits: Mapping[int, int]) -> tuple[list[int], list[int]]:
    """The amounts, ascending; and for each gap between them the bits of those that ask for more."""
    amounts = sorted(bits)
    above = [0]
    for amount in reversed(amounts):
        above.append(above[-1] | bits[amount])
    above.reverse()
    return amounts, above
