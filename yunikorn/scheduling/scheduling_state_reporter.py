"""Telling an RM how its waiting requests fare: the hint that makes an autoscaler add nodes (facts §7.10).

FAILED is said once of a request that its quotas and limits have room for but no node has; SKIPPED while a
quota, a limit or its place in the order keeps it back; RESERVED when a node is kept for it; SCHEDULED when
it has its place. Each is said when it changes, and only to an RM that wants to know (decision 37).

Requests that FAILED count against the quotas for those after them, so that no more nodes are called for
than quotas let requests use. Requests are looked at when nothing more can be placed, a second later, and
only if something has changed since; those that were told FAILED are not looked at again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from yunikorn.clock import SECOND
from yunikorn.objects.event_recorder import shortened
from yunikorn.objects.queue import Queue
from yunikorn.resources import NOTHING, Tally, grow
from yunikorn.scheduling.explain import of_application
from yunikorn.scheduling.predicate_chain import counted
from yunikorn.states import ALLOCATED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from yunikorn.clock import Timer
    from yunikorn.objects.ask import Ask
    from yunikorn.objects.ask_class import AskClass
    from yunikorn.objects.node import Node
    from yunikorn.objects.usage_tracker import UsageTracker
    from yunikorn.scheduling.partition_scheduler import PartitionScheduler

SKIPPED, SCHEDULED, RESERVED, FAILED = "SKIPPED", "SCHEDULED", "RESERVED", "FAILED"
NO_NODE = "request is waiting for cluster resources become available"
REFUSED = "no node that has room accepts the request: "
EVERY = SECOND


@attrs.frozen(slots=True)
class SchedulingState:
    """How a request fares, for its RM."""

    application_id: str
    key: str
    state: str
    reason: str


class SchedulingStateReporter:
    """The waiting requests of one partition, and what was said of them."""

    def __init__(self, at: PartitionScheduler) -> None:
        self._at = at
        self._accounting = at.partition.accounting
        self._open: dict[Ask, None] = {}
        """Those that may have to be told something."""
        self._told: dict[Ask, str] = {}
        self._failed: dict[Ask, int] = {}
        """Those that were told FAILED, and how many repeats of each were counted."""
        self._claimed: dict[Queue | UsageTracker, Tally] = {}
        """What they take of quotas and limits once there are nodes for them."""
        self._timer: Timer | None = None
        self._seen = (-1, -1)
        self._moves = 0
        """Counts what happened to requests and quotas that may change what is to be said."""
        self._reports: list[SchedulingState] = []
        for app in at.partition.applications.values():
            for ask in app.asks.values():
                if ask.pending:
                    self.waits(ask)

    def drain(self) -> list[SchedulingState]:
        """Hand out what is to be said, and start anew."""
        reports, self._reports = self._reports, []
        return reports

    # -- what the accounting tells ----------------------------------------------------------------------

    def waits(self, ask: Ask) -> None:
        """A request starts to wait."""
        self._open[ask] = None
        self._moves += 1

    def leaves(self, ask: Ask) -> None:
        """A request waits no more: it was served, or it went."""
        if ask.state == ALLOCATED:
            self._tell(ask, SCHEDULED, "")
        self._open.pop(ask, None)
        self._told.pop(ask, None)
        self._call_off(ask)

    def _call_off(self, ask: Ask) -> None:
        """No node is called for any more for the sake of a request, if one was."""
        count = self._failed.pop(ask, 0)
        if count:
            self._pending_class(ask, -count)
            self._moves += 1

    def reserved(self, ask: Ask, node: Node) -> None:
        """A node is kept for a request."""
        self._tell(ask, RESERVED, f"node {node.id} is kept for the request")

    def unreserved(self, ask: Ask) -> None:
        """The node that was kept for a request is not any more: how it fares has to be found out anew."""
        self._call_off(ask)
        self.waits(ask)

    # -- looking ------------------------------------------------------------------------------------

    def look(self) -> None:
        """Nothing more can be placed now: look at what waits soon, if anything has changed."""
        seen = (self._accounting.changes, self._moves)
        if self._open and self._timer is None and seen != self._seen:
            self._seen = seen
            self._timer = self._at.partition.timers.after(EVERY, self._inspect)

    def recount(self) -> None:
        """Quotas and limits are others now: count anew what was called for."""
        self._claimed.clear()
        self._moves += 1
        for ask, count in self._failed.items():
            self._pending_class(ask, count)

    def stop(self) -> None:
        """The partition goes."""
        if self._timer is not None:
            self._timer.cancel()

    def _inspect(self) -> None:
        self._timer = None
        rooms: dict[AskClass, bool] = {}
        for ask in list(self._open):
            reason = self._obstacle(ask)
            if reason:
                self._tell(ask, SKIPPED, reason)
            elif self._found_no_node(ask):
                del self._open[ask]
                self._failed[ask] = count = self._fitting(ask)
                self._pending_class(ask, count)
                self._tell(ask, FAILED, self._why(ask, rooms))

    def _why(self, ask: Ask, rooms: dict[AskClass, bool]) -> str:
        """The reason why no node takes a request: refusals by predicates, if some node has room.

        `rooms` keeps the answers for classes of requests.
        """
        refusals, ask_class = ask.refusals, ask.ask_class
        if refusals and ask_class not in rooms:
            nodes = self._at.partition.nodes.values()
            rooms[ask_class] = any(node.schedulable and ask_class.fits(node) for node in nodes)
        return shortened(REFUSED + counted(refusals)) if refusals and rooms[ask_class] else NO_NODE

    def _obstacle(self, ask: Ask) -> str:
        """What but the lack of nodes keeps a request from running, in words; empty when nothing does."""
        if ask.gang_blocked:
            return "it waits for its gang"
        for reason in of_application(self._at, ask.app):
            return reason.summary
        for holder in self._holders(ask):
            if not self._room(holder, ask):
                return f"over the quota of {holder.label}"
        return ""

    def _found_no_node(self, ask: Ask) -> bool:
        """Whether it was tried in vain, or cannot be tried because the cluster is full."""
        if ask.ask_class.required or ask.reserved is not None:
            return False
        root = self._at.partition.queues.root
        tried = ask.ask_class.unschedulable or ask.unschedulable or ask.app.backoff_timer is not None
        return tried or not root.has_room(ask.ask_class.pairs)

    # -- counting -----------------------------------------------------------------------------------

    @staticmethod
    def _holders(ask: Ask) -> Sequence[Queue | UsageTracker]:
        # Root's quota is the cluster itself: it grows with the nodes that are called for.
        return (*ask.app.chain[:-1], *ask.app.owner)

    def _room(self, holder: Queue | UsageTracker, ask: Ask) -> int:
        """How many repeats of a request fit a quota, with what was called for already."""
        if isinstance(holder, Queue):
            most, used = holder.max or NOTHING, holder.allocated
        else:
            most, used = holder.max_resources or NOTHING, holder.usage
        claimed, count = self._claimed.get(holder, {}), ask.pending
        for name, amount in ask.ask_class.pairs:
            limit = most.get(name)
            if limit is not None:
                left = limit - used.get(name, 0) - claimed.get(name, 0)
                count = min(count, max(left, 0) // amount)
        return count

    def _fitting(self, ask: Ask) -> int:
        return min((self._room(holder, ask) for holder in self._holders(ask)), default=ask.pending)

    def _pending_class(self, ask: Ask, count: int) -> None:
        for holder in self._holders(ask):
            claimed = self._claimed.setdefault(holder, {})
            grow(claimed, ask.ask_class.resource, count)
            if not claimed:
                del self._claimed[holder]

    def _tell(self, ask: Ask, state: str, reason: str) -> None:
        if self._told.get(ask) != state:
            self._told[ask] = state
            self._reports.append(SchedulingState(ask.app.id, ask.key, state, reason))
