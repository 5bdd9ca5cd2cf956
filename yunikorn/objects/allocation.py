"""Allocations: requests that have their place on a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.states import ALLOCATED, ALLOCATION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from yunikorn.clock import Timer
    from yunikorn.objects.application import Application
    from yunikorn.objects.ask import Ask
    from yunikorn.objects.eviction import Eviction
    from yunikorn.objects.node import Node
    from yunikorn.objects.termination import TerminationType
    from yunikorn.resources import Resource


class Allocation:
    """An amount of a node, held by an application."""

    __slots__ = (
        "app",
        "ask",
        "eviction",
        "key",
        "may_be_preempted",
        "node",
        "originator",
        "placed",
        "placeholder",
        "priority",
        "queue_name",
        "releasing",
        "replacement",
        "replaces",
        "resource",
        "state",
        "tags",
        "task_group",
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
        self.originator = False
        """Whether its application cannot live without it: then it goes for nobody else."""
        self.may_be_preempted = True
        self.eviction: Eviction | None = None
        """With what it has been told to go, if it has."""
        self.placeholder = False
        """Whether it only keeps room for a real allocation of its task group."""
        self.task_group = ""
        self.releasing: TerminationType | None = None
        """Why the RM was told to end it, while that is not confirmed."""
        self.replacement: Allocation | None = None
        """The real allocation that takes this placeholder's place once the RM confirms its end."""
        self.replaces: Allocation | None = None
        """The placeholder that it waits for: until then it is in no books but those of another node."""
        self.timer: Timer | None = None
        """Ends it when its time is up, if its time is limited."""
        if ask is not None:
            self.originator = ask.originator
            self.may_be_preempted = ask.may_be_preempted
            self.placeholder = ask.placeholder
            self.task_group = ask.task_group

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
