"""Prospects: whether any request of a leaf can have victims at all, before they are asked one by one.

Victims in other queues make no room within the leaf's own guarantee and quota. When not even the smallest
of what waits fits there, all attempts of the leaf are vain until something of it goes, and none is made: on a
full cluster thousands of requests wait like this, each of which would be tried every few seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from yunikorn.resources import NOTHING, Tally
from yunikorn.scheduling.preemption.snapshot import guarantees

if TYPE_CHECKING:
    from yunikorn.objects.ask_class import AskClass
    from yunikorn.objects.queue import Queue


class PreemptionPrecheck:
    """What one look knows of the requests that wait, wherever they do."""

    def __init__(self, ask_classes: Iterable[AskClass]) -> None:
        """`ask_classes` are looked through when that is first needed."""
        self._ask_classes = ask_classes
        self._least: Tally | None = None
        """By type: the smallest amount that a request which asks for it waits for."""
        self._common: frozenset[str] = frozenset()
        """The types that all requests ask for."""

    def cannot_help(self, leaf: Queue) -> bool:
        """Whether no request of `leaf` can have victims, whatever it asks for.

        What other requests were promised is left out: it could only make less room.
        """
        settings = leaf.settings
        if settings.preempts_by_priority or settings.preempts_within:
            return False
        called_on = {name for bound in guarantees(leaf) for name in bound.limit}
        exceeded = self._exceeded(leaf)
        # A request calls on a guarantee by one of its types, and has to keep to the bounds by all of them.
        return bool(called_on) and (called_on <= exceeded or not exceeded.isdisjoint(self._common))

    def _exceeded(self, leaf: Queue) -> set[str]:
        """The types by which every request that asks for them exceeds a bound of the leaf itself."""
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
