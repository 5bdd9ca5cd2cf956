"""Allocations that an RM could not start: their requests wait again, and avoid the node for a while.

See `docs/decisions/archive/0120`. The request keeps its key, its creation time and with it its place in the
order. If the RM has withdrawn the request, or if the allocation was recovered, a new request is made of the
allocation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.model.allocation import TerminationType
from yunikorn.model.ask import REQUIRED_NODE_TAG, Ask
from yunikorn.model.failed_starts import FailedStarts
from yunikorn.states import ACCEPTED, FAILING, NEW, RUNNING, STARTING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from yunikorn.accounting.partition import Partition
    from yunikorn.model.allocation import Allocation
    from yunikorn.scheduling.ask_admission import AskAdmission
    from yunikorn.scheduling.preemption.preemption import Preemption
    from yunikorn.scheduling.unschedulable_queue import UnschedulableQueue

RETURNED = "the request waits again"
"""Message that confirms such a release, unless the RM gives one."""
ENDED = "the task is not needed any more"
"""Message of the release of an allocation that ends instead."""
GATHERING = frozenset({NEW, ACCEPTED, STARTING, RUNNING})
"""Application states in which a placeholder is still of use."""


class StartFailures:
    """Handler of the failed starts in one partition."""

    def __init__(
        self,
        partition: Partition,
        asks: AskAdmission,
        preemption: Preemption,
        unschedulable_queue: UnschedulableQueue,
    ) -> None:
        self._partition = partition
        self._asks = asks
        self._preemption = preemption
        self._unschedulable_queue = unschedulable_queue

    def take(self, allocations: Sequence[Allocation], message: str) -> None:
        """Let the requests of allocations wait again; an allocation that is not needed any more ends."""
        partition = self._partition
        for one in allocations:
            if one.releasing is not None:
                # The RM was asked to end this allocation, which has ended now.
                partition.accounting.release(one, one.releasing, message)
            elif _is_needed(one):
                self._return(one, message)
            else:
                partition.release(one, TerminationType.STOPPED_BY_RM, message or ENDED)

    def _return(self, one: Allocation, message: str) -> None:
        partition, now = self._partition, self._partition.clock.now()
        ask = self._ask_of(one)
        failed = self._note(ask, one, message, now)
        was_pending = ask.pending > 0
        if not was_pending:
            partition.accounting.node_reservations.unreserve(ask)
            if ask.live <= 1:
                # No other replica: the RM may have resized the allocation, or changed its tags.
                ask.resource, ask.spec = one.resource, one.spec
            self._asks.classify(ask)
        partition.accounting.return_to(ask, one, message)
        if was_pending:
            self._classify_again(ask)
        self._pause(ask, failed, now)
        if failed.avoided:
            partition.timers.at(failed.next_end, lambda: self._review(ask, failed))
        self._preemption.notice(ask)
        partition.changes.released(one, TerminationType.SCHEDULING_FAILED_ON_RM, message or RETURNED)
        partition.changes.requests.start_failed(
            ask, one.node, f"Request '{ask.key}' {failed.text}; it waits again"
        )

    def _ask_of(self, one: Allocation) -> Ask:
        """Return the ask that gets the replica back: that of the allocation's key, or a new one."""
        app = one.app
        known = app.asks.get(one.key)
        if known is not None:
            return known
        partition = self._partition
        partition.arrivals += 1
        created = one.placed if one.ask is None else one.ask.created
        ask = Ask(one.key, app, one.resource, 0, one.priority, created, partition.arrivals, one.spec)
        partition.accounting.pending_accounting.adopt(ask)
        return ask

    @staticmethod
    def _note(ask: Ask, one: Allocation, message: str, now: int) -> FailedStarts:
        extras = ask.ensure_extras()
        if extras.failed_starts is None:
            extras.failed_starts = FailedStarts()
        failed = extras.failed_starts
        failed.review(now)
        failed.note(one.node.id, message, now, avoidable=not one.tags.get(REQUIRED_NODE_TAG))
        return failed

    def _pause(self, ask: Ask, failed: FailedStarts, now: int) -> None:
        """Keep a request that failed repeatedly from being tried at once; others are tried meanwhile."""
        if failed.paused_until <= now or ask.unschedulable:
            return
        ask.ensure_extras().refuse({failed.text: 1}, now)
        self._partition.accounting.pending_accounting.mark_unschedulable(ask)
        self._unschedulable_queue.pause_until(ask, failed.paused_until)

    def _review(self, ask: Ask, failed: FailedStarts) -> None:
        """Use nodes again that have been avoided for long enough."""
        now = self._partition.clock.now()
        failed.review(now)
        if ask.pending and ask.app.asks.get(ask.key) is ask and ask.failed_starts is failed:
            self._classify_again(ask)

    def _classify_again(self, ask: Ask) -> None:
        """Update the class of a waiting request whose avoided nodes have changed."""
        partition = self._partition
        pending_class = self._asks.pending_class_of(ask)
        if pending_class is ask.pending_class:
            return
        pausing = ask.unschedulable and ask.is_paused(partition.clock.now())
        partition.accounting.pending_accounting.reshape(ask, pending_class)
        if pausing and not ask.unschedulable:
            # The end of the pause, which is set already, makes the request schedulable.
            partition.accounting.pending_accounting.mark_unschedulable(ask)


def _is_needed(one: Allocation) -> bool:
    """Return False if the application is about to end, or has no use for placeholders any more."""
    app = one.app
    if app.leaving or app.state == FAILING:
        return False
    return not one.placeholder or app.state in GATHERING
