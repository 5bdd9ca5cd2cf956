"""Evictions: allocations selected to end together, and the reason.

A victim counts as used until the RM confirms its release. Until then its queues include the amount in
`preempting`, as in YuniKorn 1.9.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from yunikorn.resources import grow, shrink

if TYPE_CHECKING:
    from yunikorn.objects.allocation import Allocation
    from yunikorn.objects.ask import Ask
    from yunikorn.objects.node import Node
    from yunikorn.resources import Resource


class Eviction:
    """Set of victims that end for a common purpose."""

    __slots__ = ("ask", "made", "node", "outstanding", "started")

    def __init__(self, ask: Ask | None, node: Node | None, started: int) -> None:
        self.ask = ask
        """The request that needs the room; None if a quota or a node became smaller."""
        self.node = node
        """The node reserved for the request; None if the request lacks room in a queue instead."""
        self.made = ask.made if ask is not None else 0
        """Value of `ask.made` at the start; the eviction has served its purpose when `ask.made` is larger."""
        self.started = started
        """Time of the decision (ns)."""
        self.outstanding: dict[str, Resource] = {}
        """Resources of the victims that have not ended yet, by uuid."""

    def add(self, victims: Iterable[Allocation]) -> None:
        """Add victims, and count their resources as `preempting` in their queues."""
        for victim in victims:
            victim.ensure_extras().eviction = self
            self.outstanding[victim.uuid] = victim.resource
            for queue in victim.app.chain:
                grow(queue.preempting, victim.resource)

    def left(self, victim: Allocation) -> None:
        """Remove a victim that ended for any reason, while the victim is still in its queues."""
        amount = self.outstanding.pop(victim.uuid)
        for queue in victim.app.chain:
            shrink(queue.preempting, amount)

    def resized(self, victim: Allocation, resource: Resource) -> None:
        """Update the size of a victim that has not ended yet."""
        self.left(victim)
        self.outstanding[victim.uuid] = resource
        for queue in victim.app.chain:
            grow(queue.preempting, resource)

    @property
    def waits(self) -> bool:
        """True if the request still waits for the room that the eviction makes."""
        ask = self.ask
        return ask is not None and ask.eviction is self and ask.pending > 0 and ask.made == self.made
