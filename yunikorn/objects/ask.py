"""Asks: requests of an application for a number of equal allocations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from yunikorn.resources import Resource
from yunikorn.states import ASK

if TYPE_CHECKING:
    from yunikorn.objects.application import Application
    from yunikorn.objects.claim import Claim
    from yunikorn.objects.node import Node
    from yunikorn.objects.shape import Shape

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1


class Ask:
    """A request for `pending` more allocations of `resource` each."""

    __slots__ = (
        "app",
        "arrival",
        "claim",
        "created",
        "key",
        "live",
        "made",
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
        self.order = (-priority, created, arrival)
        """Where it stands among its application's requests (decision 16)."""
        self.state = ASK.initial
        self.over_limit = False
        """Whether it has been reported as too large for what its user or group has left."""
        self.over_quota = False
        """Whether it has been reported as too large for what its queues have left."""
        self.reserved: Node | None = None
        """The node that is kept for it."""
        self.parked = False
        """Whether it is out of the running until something changes (see `scheduling.parking`)."""
        self.tries = 0
        """How often it was parked."""
        self.run_limit = 0
        """How long each allocation of it may run (ns); 0 is for ever."""
        self.placeholder = False
        self.originator = False
        self.task_group = ""

    @property
    def label(self) -> str:
        """What a message calls it."""
        return f"ask {self.key} of application {self.app.id}"

    def __repr__(self) -> str:
        return f"<Ask {self.key} {self.state} x{self.pending}>"
