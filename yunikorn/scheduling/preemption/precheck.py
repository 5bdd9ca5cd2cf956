"""Precheck of a leaf: detects that no request of the leaf can have victims.

Victims in other queues free no room within the leaf's own guarantee and quota. If not even the smallest
pending request fits these, all attempts for the leaf fail until one of its own allocations ends, and none is
made. On a full cluster, thousands of pending requests would otherwise be tried every few seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from yunikorn.resources import NOTHING, Tally
from yunikorn.scheduling.preemption.snapshot import guarantees

if TYPE_CHECKING:
    from yunikorn.model.ask_class import AskClass
    from yunikorn.model.queue import Queue


class PreemptionPrecheck:
    """Precheck for one round, based on all pending requests of the partition."""

    def __init__(self, ask_classes: Iterable[AskClass]) -> None:
        """Create a precheck; `ask_classes` are evaluated on first use."""
        self._ask_classes = ask_classes
        self._least: Tally | None = None
        """Smallest pending amount per resource type, over the requests of that type."""
        self._common: frozenset[str] = frozenset()
        """Resource types that occur in all pending requests."""

    def cannot_help(self, leaf: Queue) -> bool:
        """Return True if no request of `leaf` can have victims.

        Room promised to other requests is ignored here, since it can only reduce the available room.
        """
        settings = leaf.settings
        if settings.preempts_by_priority or settings.preempts_within:
            return False
        called_on = {name for bound in guarantees(leaf) for name in bound.limit}
        exceeded = self._exceeded(leaf)
        # One type of a request suffices to rely on a guarantee, but all its types must respect the bounds.
        return bool(called_on) and (called_on <= exceeded or not exceeded.isdisjoint(self._common))

    def _exceeded(self, leaf: Queue) -> set[str]:
        """Return the types with which every request of that type exceeds a bound of the leaf itself."""
        bounds: list[Mapping[str, int]] = [limit for limit in (leaf.guaranteed, leaf.max) if limit]
        if not bounds:
            return set()
        least = self._look_through()
        used, going = leaf.allocated, leaf.preempting
        return {
            name
            for limit in bounds
            for name, amount in limit.items()
            if name not in least or used.get(name, 0) - going.get(name, 0) + least[name] > amount
        }

    def _look_through(self) -> Mapping[str, int]:
        if self._least is None:
            least: Tally = {}
            common: set[str] | None = None
            for ask_class in self._ask_classes:
                if ask_class.waiting:
                    for name, amount in ask_class.pairs:
                        least[name] = min(amount, least.get(name, amount))
                    common = set(ask_class.resource) if common is None else common & ask_class.resource.keys()
            self._least, self._common = least, frozenset(common or ())
        return self._least or NOTHING
