"""Evictions: allocations that were told to go, and what for.

An evicted allocation counts as used until the RM confirms that it is gone; until then its queues know
the amount as `preempting` (facts §9.5).
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
    """Some allocations that have to go together."""

    __slots__ = ("ask", "made", "node", "outstanding", "started")

    def __init__(self, ask: Ask | None, node: Node | None, started: int) -> None:
        self.ask = ask
        """The request it makes room for; None when a quota or a node became smaller."""
        self.node = node
        """The node that is kept for that request; None when it is room in a queue that it lacks."""
        self.made = ask.made if ask is not None else 0
        """How many allocations the request had led to: one more, and this one has served its purpose."""
        self.started = started
        """When it was decided (ns)."""
        self.outstanding: dict[str, Resource] = {}
        """By uuid: the amounts of those that have not gone yet."""

    def add(self, victims: Iterable[Allocation]) -> None:
        """Have these allocations go, and tell their queues."""
        for victim in victims:
            victim.ensure_extras().eviction = self
            self.outstanding[victim.uuid] = victim.resource
            for queue in victim.app.chain:
                grow(queue.preempting, victim.resource)

    def left(self, victim: Allocation) -> None:
        """One of them is gone, in whatever way; called while it is still in its queues."""
        amount = self.outstanding.pop(victim.uuid)
        for queue in victim.app.chain:
            shrink(queue.preempting, amount)

    def resized(self, victim: Allocation, resource: Resource) -> None:
        """One of them has another size until it goes."""
        self.left(victim)
        self.outstanding[victim.uuid] = resource
        for queue in victim.app.chain:
            grow(queue.preempting, resource)

    @property
    def waits(self) -> bool:
        """Whether the request it makes room for still waits for that room."""
        ask = self.ask
        return ask is not None and ask.eviction is self and ask.pending > 0 and ask.made == self.made
