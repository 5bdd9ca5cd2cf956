"""The extras of a request: what keeps it from being like any other that waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.objects.ask_class import NOTHING_REFUSED
from yunikorn.resources import INT64_MIN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from yunikorn.objects.atomic_gang import AtomicGang
    from yunikorn.objects.eviction import Eviction
    from yunikorn.objects.node import Node


class AskExtras:
    """What has come upon a request; few ever have one."""

    __slots__ = (
        "attempt_change",
        "barred_until",
        "eviction",
        "gang",
        "gang_blocked",
        "made",
        "over_limit",
        "over_quota",
        "refusals",
        "reserved",
        "tries",
        "unschedulable",
    )

    def __init__(self) -> None:
        self.over_limit = False
        """Whether it has been reported as too large for what its user or group has left."""
        self.over_quota = False
        """Whether it has been reported as too large for what its queues have left."""
        self.eviction: Eviction | None = None
        """What was last told to go for it."""
        self.made = 0
        """Allocations it has led to since it has an extras: tells whether an eviction has served it."""
        self.barred_until = INT64_MIN
        """When preemption, which was tried for it in vain, may be tried again (ns)."""
        self.attempt_change = -1
        """The accounting's count of changes at the last attempt to preempt for it."""
        self.reserved: Node | None = None
        """The node that is kept for it."""
        self.unschedulable = False
        """Whether it is out of the running until something changes (see `scheduling.unschedulable_queue`)."""
        self.refusals: Mapping[str, int] = NOTHING_REFUSED
        """Reasons for which nodes with room were refused to this ask alone, each with its count."""
        self.tries = 0
        """How often it was unschedulable."""
        self.gang_blocked = False
        """Whether it is out of the running for the sake of its gang; it is unschedulable as well then."""
        self.gang: AtomicGang | None = None
        """The gang that it stands for: not a request of its own, but of all members together."""
