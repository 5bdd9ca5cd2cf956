"""Asks: requests of an application for a number of equal allocations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from yunikorn.resources import INT64_MIN, Resource
from yunikorn.states import ASK

if TYPE_CHECKING:
    from yunikorn.objects.application import Application
    from yunikorn.objects.atomic_gang import AtomicGang
    from yunikorn.objects.claim import Claim
    from yunikorn.objects.eviction import Eviction
    from yunikorn.objects.node import Node
    from yunikorn.objects.shape import Shape

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1

Order = tuple[int, int, int]
"""Minus the priority, creation, arrival: where a request stands (decision 16)."""


class Ask:
    """A request for `pending` more allocations of `resource` each."""

    __slots__ = (
        "app",
        "arrival",
        "barred_until",
        "claim",
        "created",
        "eviction",
        "gang",
        "held",
        "key",
        "live",
        "made",
        "may_be_preempted",
        "may_preempt",
        "order",
        "originator",
        "over_limit",
        "over_quota",
        "parked",
        "pending",
        "placeholder",
        "priority",
        "reserved",
        "resource",
        "run_limit",
        "shape",
        "state",
        "tags",
        "task_group",
        "tries",
    )

    def __init__(
        self,
        key: str,
        app: Application,
        resource: Resource,
        *,
        pending: int,
        priority: int,
        tags: Mapping[str, str],
        created: int,
        arrival: int,
    ) -> None:
        self.key = key
        self.app = app
        self.resource = resource
        self.pending = pending
        self.made = 0
        """Allocations it has led to so far; numbers them."""
        self.live = 0
        """Allocations of it that have not ended."""
        self.priority = priority
        self.tags = tags
        self.created = created
        self.arrival = arrival
        self.shape: Shape
        """Its class of requests for nodes, and ..."""
        self.claim: Claim
        """... for queues too; both given before it is booked."""
        self.order: Order = (-priority, created, arrival)
        """Where it stands among its application's requests (decision 16)."""
        self.state = ASK.initial
        self.over_limit = False
        """Whether it has been reported as too large for what its user or group has left."""
        self.over_quota = False
        """Whether it has been reported as too large for what its queues have left."""
        self.may_preempt = True
        """Whether others may have to go for it ..."""
        self.may_be_preempted = True
        """... and whether its allocations may have to go for others (decision 23)."""
        self.eviction: Eviction | None = None
        """What was last told to go for it."""
        self.barred_until = INT64_MIN
        """When preemption, which was tried for it in vain, may be tried again (ns)."""
        self.reserved: Node | None = None
        """The node that is kept for it."""
        self.parked = False
        """Whether it is out of the running until something changes (see `scheduling.parking`)."""
        self.tries = 0
        """How often it was parked."""
        self.run_limit = 0
        """How long each allocation of it may run (ns); 0 is for ever."""
        self.placeholder = False
        """Whether its allocations only keep room for the real ones of its task group."""
        self.originator = False
        self.task_group = ""
        self.held = False
        """Whether it is out of the running for the sake of its gang; it is parked as well then."""
        self.gang: AtomicGang | None = None
        """The gang that it stands for: not a request of its own, but of all members together."""

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
