"""Allocations: resources of a node that are assigned to an application."""

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
    """Resources of a node that are assigned to an application."""

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
        """The ask that led to this allocation; None for an allocation reported by an RM (recovery)."""
        self.node = node
        self.queue_name = app.chain[0].path
        """Path of the application's leaf queue at the time of placement."""
        self.resource = resource
        self.priority = priority
        self.spec = spec
        """Spec of the ask at the time of placement."""
        self.placed = placed
        """Time of placement (ns)."""
        self.state = ALLOCATED
        self.extras: AllocationExtras | None = None
        """None for most allocations; read its fields through the properties below."""

    @property
    def label(self) -> str:
        """Name of the allocation in messages."""
        return f"allocation {self.uuid} of application {self.app.id}"

    def end(self, event: str) -> None:
        """Apply the event `stop`, `preempt` or `timeout`; raise `StateError` if the allocation has ended."""
        self.state = ALLOCATION.next(self.label, self.state, event)
        if self.extras is not None and self.extras.timer is not None:
            self.extras.timer.cancel()
            self.extras.timer = None

    # -- termination --------------------------------------------------------------------------------

    def ensure_extras(self) -> AllocationExtras:
        """Return the extras for modification; create them on first use."""
        if self.extras is None:
            self.extras = AllocationExtras()
        return self.extras

    @property
    def eviction(self) -> Eviction | None:
        """The eviction that this allocation is a victim of, if any."""
        return None if self.extras is None else self.extras.eviction

    @property
    def releasing(self) -> TerminationType | None:
        """Termination type of the release sent to the RM, until the RM confirms that release."""
        return None if self.extras is None else self.extras.releasing

    @property
    def replacement(self) -> Allocation | None:
        """The real allocation that replaces this placeholder once the RM confirms the release."""
        return None if self.extras is None else self.extras.replacement

    @property
    def replaces(self) -> Allocation | None:
        """The placeholder that this allocation will replace.

        Until then the allocation is not accounted for, except on its node if that differs from the
        placeholder's.
        """
        return None if self.extras is None else self.extras.replaces

    @property
    def timer(self) -> Timer | None:
        """Timer that ends the allocation when its execution timeout expires, if the allocation has one."""
        return None if self.extras is None else self.extras.timer

    def __repr__(self) -> str:
        return f"<Allocation {self.uuid} on {self.node.id} {self.state}>"
