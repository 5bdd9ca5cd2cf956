"""Allocations: requests that have their place on a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.objects.allocation_extras import AllocationExtras
from yunikorn.objects.ask_spec import WithSpec
from yunikorn.states import ALLOCATED, ALLOCATION

if TYPE_CHECKING:
    from yunikorn.clock import Timer
    from yunikorn.objects.application import Application
    from yunikorn.objects.ask import Ask
    from yunikorn.objects.ask_spec import AskSpec
    from yunikorn.objects.eviction import Eviction
    from yunikorn.objects.node import Node
    from yunikorn.objects.termination import TerminationType
    from yunikorn.resources import Resource


class Allocation(WithSpec):
    """An amount of a node, held by an application."""

    __slots__ = (
        "app",
        "ask",
        "extras",
        "key",
        "node",
        "placed",
        "priority",
        "queue_name",
        "resource",
        "state",
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
        spec: AskSpec,
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
        self.spec = spec
        """Those of its request, as they were when it got its place."""
        self.placed = placed
        """When it got its place (ns)."""
        self.state = ALLOCATED
        self.extras: AllocationExtras | None = None
        """None for nearly all; read through the properties below."""

    @property
    def label(self) -> str:
        """What a message calls it."""
        return f"allocation {self.uuid} of application {self.app.id}"

    def end(self, event: str) -> None:
        """Take it through `stop`, `preempt` or `timeout`; raises `StateError` if it has ended before."""
        self.state = ALLOCATION.next(self.label, self.state, event)
        if self.extras is not None and self.extras.timer is not None:
            self.extras.timer.cancel()
            self.extras.timer = None

    # -- its end ------------------------------------------------------------------------------------

    def ensure_extras(self) -> AllocationExtras:
        """What is known of its end, to be changed."""
        if self.extras is None:
            self.extras = AllocationExtras()
        return self.extras

    @property
    def eviction(self) -> Eviction | None:
        """With what it has been told to go, if it has."""
        return None if self.extras is None else self.extras.eviction

    @property
    def releasing(self) -> TerminationType | None:
        """Why the RM was told to end it, while that is not confirmed."""
        return None if self.extras is None else self.extras.releasing

    @property
    def replacement(self) -> Allocation | None:
        """The real allocation that takes this placeholder's place once the RM confirms its end."""
        return None if self.extras is None else self.extras.replacement

    @property
    def replaces(self) -> Allocation | None:
        """The placeholder that it waits for: until then it is in no books but those of another node."""
        return None if self.extras is None else self.extras.replaces

    @property
    def timer(self) -> Timer | None:
        """Ends it when its time is up, if its time is limited."""
        return None if self.extras is None else self.extras.timer

    def __repr__(self) -> str:
        return f"<Allocation {self.uuid} on {self.node.id} {self.state}>"
