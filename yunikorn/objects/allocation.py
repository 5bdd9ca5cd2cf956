"""Allocations: requests that have their place on a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.states import ALLOCATED, ALLOCATION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from yunikorn.clock import Timer
    from yunikorn.objects.application import Application
    from yunikorn.objects.ask import Ask
    from yunikorn.objects.node import Node
    from yunikorn.resources import Resource


class Allocation:
    """An amount of a node, held by an application."""

    __slots__ = (
        "app",
        "ask",
        "key",
        "node",
        "placed",
        "priority",
        "queue_name",
        "resource",
        "state",
        "tags",
        "timer",
        "uuid",
    )

    def __init__(
        self,
        uuid: str,
        key: str,
        app: Application,
        ask: Ask | None,
        node: Node,
        resource: Resource,
        priority: int,
        tags: Mapping[str, str],
        placed: int,
    ) -> None:
        self.uuid = uuid
        self.key = key
        self.app = app
        self.ask = ask
        """The ask it answers; None for one that an RM brought along."""
        self.node = node
        self.queue_name = app.chain[0].path
        """The queue its application was in when it got its place."""
        self.resource = resource
        self.priority = priority
        self.tags = tags
        self.placed = placed
        """When it got its place (ns)."""
        self.state = ALLOCATED
        self.timer: Timer | None = None
        """Ends it when its time is up, if its time is limited."""

    @property
    def label(self) -> str:
        """What a message calls it."""
        return f"allocation {self.uuid} of application {self.app.id}"

    def end(self, event: str) -> None:
        """Take it through `stop`, `preempt` or `timeout`; raises `StateError` if it has ended before."""
        self.state = ALLOCATION.next(self.label, self.state, event)
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def __repr__(self) -> str:
        return f"<Allocation {self.uuid} on {self.node.id} {self.state}>"
