"""Rarely needed scheduling state of an ask."""

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
    """Rarely needed scheduling state of an ask; created on first use."""

    __slots__ = (
        "attempt_change",
        "barred_until",
        "eviction",
        "gang",
        "gang_blocked",
        "limit_reported",
        "made",
        "quota_reported",
        "refusals",
        "reserved",
        "tries",
        "unschedulable",
    )

    limit_reported: bool
    """True if the ask was reported as exceeding the headroom of its user or group."""
    quota_reported: bool
    """True if the ask was reported as exceeding the headroom of its queues."""
    eviction: Eviction | None
    """The latest eviction made for the ask."""
    made: int
    """Number of allocations made for the ask since its extras were created; shows if an eviction served
    its purpose."""
    barred_until: int
    """Time before which preemption is not retried after a failed attempt (ns)."""
    attempt_change: int
    """`AllocationAccounting.changes` at the latest preemption attempt for the ask, or -1 before the first."""
    reserved: Node | None
    """The node reserved for the ask."""
    unschedulable: bool
    """True if the ask is not scheduled until something changes (see `scheduling.unschedulable_queue`)."""
    refusals: Mapping[str, int]
    """Reasons why nodes with room refused this particular ask, with counts."""
    tries: int
    """Number of times the ask was marked unschedulable."""
    gang_blocked: bool
    """True if the ask is not scheduled because of its gang; it is then unschedulable as well."""
    gang: AtomicGang | None
    """The atomic gang that this ask represents with all its members; None for an ordinary ask."""

    def __init__(self) -> None:
        self.limit_reported = self.quota_reported = self.unschedulable = self.gang_blocked = False
        self.eviction = self.reserved = self.gang = None
        self.made = self.tries = 0
        self.barred_until = INT64_MIN
        self.attempt_change = -1
        self.refusals = NOTHING_REFUSED
