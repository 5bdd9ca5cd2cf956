"""Unused quotas of siblings, for quota policies that let a queue borrow them.

A change of a queue costs a constant number of operations, however many siblings the queue has: a queue that
changes is noted, and the sum is updated for the noted queues when the sum is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from yunikorn.resources import NOTHING, Resource, Tally, grow, shrink

if TYPE_CHECKING:
    from collections.abc import Mapping


class Sibling(Protocol):
    """Queue as its siblings see it: a quota, and what of it is used and requested."""

    @property
    def configured_max(self) -> Resource | None:
        """Quota from the configuration, a template or a tag; None without a quota."""
        ...

    @property
    def allocated(self) -> Mapping[str, int]:
        """Allocated resources."""
        ...

    @property
    def demand(self) -> Mapping[str, int]:
        """Allocated plus pending resources."""
        ...


class SiblingUsage:
    """Amounts that the children of one queue leave unused of their configured quotas, less their excess."""

    __slots__ = ("_changed", "_spare", "_stale", "_total", "is_listed", "version", "watchers")

    def __init__(self, stale: list[SiblingUsage]) -> None:
        """Create without children; the object adds itself to `stale` when something changes."""
        self.version = 0
        """Incremented whenever a child changes."""
        self.is_listed = False
        """True while `stale` contains the object."""
        self.watchers: dict[Any, None] = {}
        """Children whose policies watch their siblings."""
        self._stale = stale
        self._changed: dict[Sibling, None] = {}
        self._spare: dict[Sibling, Tally] = {}
        self._total: Tally = {}

    def note(self, child: Sibling) -> None:
        """Record that usage, demand or quota of a child changes."""
        self.version += 1
        self._changed[child] = None
        if not self.is_listed:
            self.is_listed = True
            self._stale.append(self)

    def remove(self, child: Sibling) -> None:
        """Remove a child that has left the tree."""
        self.note(child)
        del self._changed[child]
        shrink(self._total, self._spare.pop(child, NOTHING))

    def unused_by_others(self, child: Sibling) -> Resource:
        """Return the amounts that the siblings of `child` leave unused; none is negative or 0."""
        if self._changed:
            changed, self._changed = self._changed, {}
            for queue in changed:
                shrink(self._total, self._spare.get(queue, NOTHING))
                self._spare[queue] = spare = _spare_of(queue)
                grow(self._total, spare)
        own = self._spare.get(child, NOTHING)
        left = {name: amount - own.get(name, 0) for name, amount in self._total.items()}
        for name, amount in own.items():
            if name not in left:
                left[name] = -amount
        return Resource({name: amount for name, amount in left.items() if amount > 0})


class Lender:
    """One child in the `SiblingUsage` of its parent."""

    __slots__ = ("_child", "_notes", "siblings")

    def __init__(self, child: Sibling, siblings: SiblingUsage) -> None:
        self._child = child
        self.siblings = siblings
        self._notes = 0
        self.note()

    def note(self, app: object = None) -> None:
        """Record that usage, demand or quota of the child changes."""
        self._notes += 1
        self.siblings.note(self._child)

    @property
    def version(self) -> int:
        """Number that changes whenever a sibling of the child changes."""
        return self.siblings.version - self._notes

    def unused_by_others(self) -> Resource:
        """Return the amounts that the siblings of the child leave unused."""
        return self.siblings.unused_by_others(self._child)

    def leave(self) -> None:
        """Remove the child, which has left the tree."""
        self.siblings.remove(self._child)


def _spare_of(queue: Sibling) -> Tally:
    """Return what a queue neither uses nor requests of its quota; negative is what it uses above the quota.

    A queue that requests more than its quota lends nothing, even if the requests find no node.
    """
    spare: Tally = {}
    for name, most in (queue.configured_max or NOTHING).items():
        left = most - queue.demand.get(name, 0)
        if left < 0:
            left = min(most - queue.allocated.get(name, 0), 0)
        if left:
            spare[name] = left
    return spare
