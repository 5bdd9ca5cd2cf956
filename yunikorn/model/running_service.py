"""Service that the running allocations of an application have received: amounts times nanoseconds.

The sum is computed when it is read, so that a placement costs nothing where no policy reads it. Allocations
are listed in the order in which they were added; those since the previous reading are therefore the last.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from yunikorn.resources import Tally, grow, shrink

if TYPE_CHECKING:
    from collections.abc import Mapping

    from yunikorn.resources import Resource


class Placed(Protocol):
    """Allocation, as far as its service depends on it."""

    @property
    def resource(self) -> Resource:
        """Its resources."""
        ...

    @property
    def placed(self) -> int:
        """Time of placement (ns)."""
        ...


class RunningService:
    """Sum over the allocations of one application of their resources times their time of placement."""

    __slots__ = ("_allocations", "_counted", "_starts")

    def __init__(self, allocations: dict[str, Any]) -> None:
        """Create for the live allocations of an application, in the order in which they were added."""
        self._allocations = allocations
        self._counted = 0
        """Number of allocations in `_starts`: the first ones."""
        self._starts: Tally = {}

    def add_to(self, total: Tally, allocated: Mapping[str, int], now: int) -> None:
        """Add the service until `now` to a total; `allocated` is the sum of the allocations."""
        starts = self._starts
        if self._counted != len(self._allocations):
            self._count()
        for name, amount in allocated.items():
            total[name] = total.get(name, 0) + amount * now - starts.get(name, 0)

    def leave(self, allocation: Placed) -> None:
        """Remove an allocation that is about to leave the application."""
        self._count()
        self._counted -= 1
        shrink(self._starts, allocation.resource, allocation.placed)

    def change(self, allocation: Placed, resource: Resource, placed: int) -> None:
        """Replace amount and time of placement of an allocation that is about to get these."""
        self._count()
        shrink(self._starts, allocation.resource, allocation.placed)
        grow(self._starts, resource, placed)

    def _count(self) -> None:
        """Add the allocations that came since the previous call."""
        one: Placed
        for one in islice(reversed(self._allocations.values()), len(self._allocations) - self._counted):
            grow(self._starts, one.resource, one.placed)
        self._counted = len(self._allocations)
