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

    over_limit: bool
    """Whether it has been reported as too large for what its user or group has left."""
    over_quota: bool
    """Whether it has been reported as too large for what its queues have left."""
    eviction: Eviction | None
    """What was last told to go for it."""
    made: int
    """Allocations it has led to since it has a plight: tells whether an eviction has served it."""
    barred_until: int
    """When preemption, which was tried for it in vain, may be tried again (ns)."""
    attempt_change: int
    """The ledger's count of changes at the last attempt to preempt for it."""
    reserved: Node | None
    """The node that is kept for it."""
    parked: bool
    """Whether it is out of the running until something changes (see `scheduling.parking`)."""
    refusals: Mapping[str, int]
    """Reasons for which nodes with room were refused to this ask alone, each with its count."""
    tries: int
    """How often it was parked."""
    held: bool
    """Whether it is out of the running for the sake of its gang; it is parked as well then."""
    gang: AtomicGang | None
    """The gang that it stands for: not a request of its own, but of all members together."""

    def __init__(self) -> None:
        self.over_limit = self.over_quota = self.unschedulable = self.gang_blocked = False
        self.eviction = self.reserved = self.gang = None
        self.made = self.tries = 0
        self.barred_until = INT64_MIN
        self.attempt_change = -1
        self.refusals = NOTHING_REFUSED
