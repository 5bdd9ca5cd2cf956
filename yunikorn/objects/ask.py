"""Asks: requests of an application for a number of equal allocations.

There are very many, and nearly all are alike: what one may say besides its size stands in `AskSpec` that they
share, and what may come upon it in a `AskExtras` that few have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.objects.ask_class import NOTHING_REFUSED
from yunikorn.objects.ask_extras import AskExtras
from yunikorn.objects.ask_spec import AskSpec, WithSpec
from yunikorn.resources import INT64_MIN, Resource
from yunikorn.states import ASK

if TYPE_CHECKING:
    from collections.abc import Mapping

    from yunikorn.objects.application import Application
    from yunikorn.objects.ask_class import AskClass
    from yunikorn.objects.atomic_gang import AtomicGang
    from yunikorn.objects.eviction import Eviction
    from yunikorn.objects.node import Node
    from yunikorn.objects.pending_class import PendingClass

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1

Order = tuple[int, int, int]
"""Minus the priority, creation, arrival: where a request stands (decision 16)."""


class Ask(WithSpec):
    """A request for `pending` more allocations of `resource` each."""

    __slots__ = (
        "app",
        "arrival",
        "created",
        "extras",
        "key",
        "live",
        "pending",
        "pending_class",
        "priority",
        "resource",
        "state",
    )

    def __init__(
        self,
        key: str,
        app: Application,
        resource: Resource,
        pending: int,
        priority: int,
        created: int,
        arrival: int,
        spec: AskSpec,
    ) -> None:
        self.key = key
        self.app = app
        self.resource = resource
        self.pending = pending
        self.live = 0
        """Allocations of it that have not ended."""
        self.priority = priority
        self.created = created
        self.arrival = arrival
        self.pending_class: PendingClass
        """Its class of requests, for nodes and for queues; given before it is booked."""
        self.state = ASK.initial
        self.spec = spec
        self.extras: AskExtras | None = None
        """None for nearly all; read through the properties below."""

    @property
    def ask_class(self) -> AskClass:
        """Its class of requests for nodes."""
        return self.pending_class.ask_class

    @property
    def order(self) -> Order:
        """Where it stands among its application's requests (decision 16)."""
        return (-self.priority, self.created, self.arrival)

    def goes_before(self, other: Ask) -> bool:
        """Whether its place is before that of `other`, which mostly came later."""
        if self.priority == other.priority and self.created <= other.created:
            return self.created < other.created or self.arrival <= other.arrival
        return self.order < other.order

    def share_amount(self) -> None:
        """Keep the amount of its class instead of one of its own: over the wire each request brings one."""
        resource = self.pending_class.ask_class.resource
        if self.resource == resource:
            self.resource = resource

    # -- its extras ---------------------------------------------------------------------------------

    def ensure_extras(self) -> AskExtras:
        """Its extras, to be changed."""
        if self.extras is None:
            self.extras = AskExtras()
        return self.extras

    @property
    def made(self) -> int:
        """Allocations it has led to since it has an extras."""
        return 0 if self.extras is None else self.extras.made

    @property
    def over_limit(self) -> bool:
        """Whether it has been reported as too large for what its user or group has left."""
        return False if self.extras is None else self.extras.over_limit

    @property
    def over_quota(self) -> bool:
        """Whether it has been reported as too large for what its queues have left."""
        return False if self.extras is None else self.extras.over_quota

    @property
    def eviction(self) -> Eviction | None:
        """What was last told to go for it."""
        return None if self.extras is None else self.extras.eviction

    @property
    def barred_until(self) -> int:
        """When preemption, which was tried for it in vain, may be tried again (ns)."""
        return INT64_MIN if self.extras is None else self.extras.barred_until

    @property
    def attempt_change(self) -> int:
        """The accounting's count of changes at the last attempt to preempt for it; -1 before the first."""
        return -1 if self.extras is None else self.extras.attempt_change

    @property
    def reserved(self) -> Node | None:
        """The node that is kept for it."""
        return None if self.extras is None else self.extras.reserved

    @property
    def unschedulable(self) -> bool:
        """Whether it is out of the running until something changes (see `scheduling.unschedulable_queue`)."""
        return False if self.extras is None else self.extras.unschedulable

    @property
    def refusals(self) -> Mapping[str, int]:
        """Reasons for which nodes with room were refused in the last search for it, or for its like."""
        if self.extras is not None and self.extras.unschedulable:
            return self.extras.refusals
        return self.ask_class.refusals if self.ask_class.unschedulable else NOTHING_REFUSED

    @property
    def tries(self) -> int:
        """How often it was unschedulable."""
        return 0 if self.extras is None else self.extras.tries

    @property
    def gang_blocked(self) -> bool:
        """Whether it is out of the running for the sake of its gang; it is unschedulable as well then."""
        return False if self.extras is None else self.extras.gang_blocked

    @property
    def gang(self) -> AtomicGang | None:
        """The gang that it stands for, with all its members."""
        return None if self.extras is None else self.extras.gang

    def tried(self) -> None:
        """It is unschedulable once more."""
        self.ensure_extras().tries += 1

    @property
    def making_way(self) -> list[Resource]:
        """What was told to end for it and has not ended yet; empty when it waits for nothing of the kind."""
        eviction = self.eviction
        return list(eviction.outstanding.values()) if eviction is not None and eviction.waits else []

    @property
    def label(self) -> str:
        """What a message calls it."""
        return f"ask {self.key} of application {self.app.id}"

    def __repr__(self) -> str:
        return f"<Ask {self.key} {self.state} x{self.pending}>"
