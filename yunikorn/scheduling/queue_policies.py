"""Which policy orders which queue: made from names and options in the queue's properties."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from yunikorn.api import AppSortPolicy, Context
from yunikorn.objects.queue import RECOVERY
from yunikorn.registry import APP_SORT, QUEUE_SORT, Registry
from yunikorn.scheduling.lanes import LaneGate
from yunikorn.scheduling.member_order import MemberOrder

if TYPE_CHECKING:
    from collections.abc import Iterable

    from yunikorn.objects.queue import Queue
    from yunikorn.scheduling.faults import FaultLog

FALLBACK = "fifo"
"""What orders the recovery queue, whatever its properties (facts §1.10)."""


class QueuePolicies:
    """Gives queues their orders; queues with the same policy and options share the policy object."""

    def __init__(self, registry: Registry, faults: FaultLog, context: Context) -> None:
        self._registry = registry
        self._faults = faults
        self._context = context
        self._made: dict[tuple[str, str, tuple[tuple[str, str], ...]], tuple[Any, str]] = {}
        self._new: set[int] = set()
        """The objects that were made since the last `use`, by identity."""

    def apply(self, queues: Iterable[Queue]) -> None:
        """Give each of these queues the order that its settings name."""
        for queue in queues:
            queue.order = self._order(queue)
            # Ranks of another policy do not compare with those of this one: start with an empty line,
            # which also forgets members that left before the queue became a leaf, or a parent.
            queue.line.clear()
            for member in queue.stale:
                member.touched = False
            queue.stale.clear()
            for app in queue.applications.values():
                app.admitted, app.lane_rank = True, None
                app.touch()
            queue.held = 0

    def _order(self, queue: Queue) -> MemberOrder:
        settings = queue.settings
        if queue.is_leaf:
            kind, name, options = APP_SORT, settings.app_sort, settings.app_sort_options
            if queue.path == RECOVERY:
                name, options = FALLBACK, {}
        else:
            kind, name, options = QUEUE_SORT, settings.queue_sort, settings.queue_sort_options
        key = (kind.id, name, tuple(sorted(options.items())))
        if key not in self._made:
            policy = self._registry.make(kind, name, options, comma_lists=True)
            origin = self._registry.find(kind, name).origin
            self._made[key] = policy, origin
            self._new.add(id(policy))
            self._faults.guard(origin, "opening", policy.opened, self._context)
        policy, origin = self._made[key]
        lanes = None
        if isinstance(policy, AppSortPolicy) and type(policy).lane is not AppSortPolicy.lane:
            lanes = LaneGate(policy, origin, self._faults)
        return MemberOrder(policy, origin, self._faults, priority_first=settings.sort_priority, lanes=lanes)

    def use(self, registry: Registry) -> None:
        """Take plugins from `registry` from now on."""
        self._registry = registry
        self._new.clear()

    def drop_unused(self, queues: Iterable[Queue]) -> None:
        """Close the policies that no queue uses any more, and tell the others of the new configuration."""
        used = {id(queue.order.policy) for queue in queues}
        for key, (policy, origin) in list(self._made.items()):
            if id(policy) in self._new:
                continue
            if id(policy) in used:
                self._faults.guard(origin, "reloading", policy.reloaded, self._context)
            else:
                del self._made[key]
                self._faults.guard(origin, "closing", policy.closed)

    def close(self) -> None:
        """Tell all policies that they have been used for the last time; a failure is only reported."""
        for policy, origin in self._made.values():
            self._faults.guard(origin, "closing", policy.closed)
        self._made.clear()
