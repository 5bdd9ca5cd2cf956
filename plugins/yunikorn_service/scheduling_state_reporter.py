"""Reports of scheduling states to the RM, as hints for a cluster autoscaler.

FAILED is reported once for a request that fits its quotas and limits but no node; SKIPPED while a quota, a
limit or its position in the order blocks the request; RESERVED when a node is reserved for it; SCHEDULED when
it is allocated. Only changes are reported, and only if the RM asks for them (`docs/decisions/archive/0037`).

FAILED requests count against the quotas for later requests, so that no more nodes are added than quotas allow
to use. Requests are examined a second after nothing more can be placed, and only if something has changed
since; FAILED requests are not examined again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.accounting.event_recorder import shortened
from yunikorn.accounting.outbox import SchedulingState
from yunikorn.clock import SECOND
from yunikorn.explain.explanations import of_application
from yunikorn.resources import NOTHING, Tally, grow
from yunikorn.scheduling.obstacles import holders, replicas_within
from yunikorn.scheduling.predicate_chain import counted
from yunikorn.states import ALLOCATED

if TYPE_CHECKING:
    from yunikorn.clock import Timer
    from yunikorn.model.ask import Ask
    from yunikorn.model.ask_class import AskClass
    from yunikorn.model.gang import AtomicGang
    from yunikorn.model.node import Node
    from yunikorn.scheduling.obstacles import Holder
    from yunikorn.scheduling.partition_scheduler import PartitionScheduler

SKIPPED, SCHEDULED, RESERVED, FAILED = "SKIPPED", "SCHEDULED", "RESERVED", "FAILED"
NO_NODE = "request is waiting for cluster resources become available"
REFUSED = "no node that has room accepts the request: "
EVERY = SECOND


class SchedulingStateReporter:
    """Pending requests of one partition, and the states reported for them."""

    def __init__(self, at: PartitionScheduler) -> None:
        self._at = at
        self._accounting = at.partition.accounting
        self._open: dict[Ask, None] = {}
        """Pending requests whose state may still change."""
        self._reported: dict[Ask, str] = {}
        self._failed: dict[Ask, int] = {}
        """Requests reported as FAILED, with the number of replicas counted against quotas."""
        self._claimed: dict[Holder, Tally] = {}
        """Amounts of the FAILED requests, per queue or limit that they will use."""
        self._timer: Timer | None = None
        self._seen = (-1, -1)
        self._moves = 0
        """Number of changes of requests and quotas that may affect states."""
        self._reports: list[SchedulingState] = []
        for app in at.partition.applications.values():
            for ask in app.asks.values():
                if ask.pending:
                    self.pending_added(ask)

    def drain(self) -> list[SchedulingState]:
        """Return the new reports and clear them."""
        reports, self._reports = self._reports, []
        return reports

    def has_failed(self, ask: Ask) -> bool:
        """Return True if the request was reported as FAILED, for which more nodes may be added."""
        return ask in self._failed

    # -- notifications of the accounting ------------------------------------------------------------

    def pending_added(self, ask: Ask) -> None:
        """Add a request that has become pending."""
        self._open[ask] = None
        self._moves += 1

    def pending_removed(self, ask: Ask) -> None:
        """Remove a request that was allocated or released."""
        if ask.state == ALLOCATED:
            self._report(ask, SCHEDULED, "")
        self._open.pop(ask, None)
        self._reported.pop(ask, None)
        self._call_off(ask)

    def _call_off(self, ask: Ask) -> None:
        """Stop counting a FAILED request against its quotas."""
        count = self._failed.pop(ask, 0)
        if count:
            self._count_against_quotas(ask, -count)
            self._moves += 1

    def reserved(self, ask: Ask, node: Node) -> None:
        """Report that a node was reserved for a request."""
        self._report(ask, RESERVED, f"node {node.id} is reserved for the request")

    def reservation_lost(self, ask: Ask) -> None:
        """Re-examine a request whose reservation was cancelled."""
        self._call_off(ask)
        self.pending_added(ask)

    # -- reviewing ----------------------------------------------------------------------------------

    def review(self) -> None:
        """Schedule an examination of pending requests after an idle decision, if something has changed."""
        seen = (self._accounting.change_count, self._moves)
        if self._open and self._timer is None and seen != self._seen:
            self._seen = seen
            self._timer = self._at.partition.timers.after(EVERY, self._inspect)

    def recount(self) -> None:
        """Recount the FAILED requests after a change of quotas or limits."""
        self._claimed.clear()
        self._moves += 1
        for ask, count in self._failed.items():
            self._count_against_quotas(ask, count)

    def stop(self) -> None:
        """Stop reporting; the partition is being removed."""
        if self._timer is not None:
            self._timer.cancel()

    def _inspect(self) -> None:
        self._timer = None
        rooms: dict[AskClass, bool] = {}
        gangs: dict[AtomicGang, bool] = {}
        for ask in list(self._open):
            reason = self._obstacle(ask, gangs)
            if reason:
                self._report(ask, SKIPPED, reason)
            elif ask.gang_blocked or self._found_no_node(ask):
                del self._open[ask]
                self._failed[ask] = count = self._fitting(ask)
                self._count_against_quotas(ask, count)
                self._report(ask, FAILED, self._why(ask, rooms))

    def _why(self, ask: Ask, rooms: dict[AskClass, bool]) -> str:
        """Return why no node accepts a request: refusals by predicates, if some node has room.

        `rooms` caches answers per ask class.
        """
        refusals, ask_class = ask.refusals, ask.ask_class
        if refusals and ask_class not in rooms:
            nodes = self._at.partition.nodes.values()
            rooms[ask_class] = any(node.schedulable and ask_class.fits(node) for node in nodes)
        return shortened(REFUSED + counted(refusals)) if refusals and rooms[ask_class] else NO_NODE

    def _obstacle(self, ask: Ask, gangs: dict[AtomicGang, bool]) -> str:
        """Return what other than a lack of nodes stops a request; empty if nothing does.

        `gangs` caches answers per gang, computed before its members count against quotas.
        """
        if ask.gang_blocked and not self._gang_found_no_nodes(ask, gangs):
            return "the request waits for its gang"
        if ask.unpermitted:
            return shortened(ask.unpermitted)
        for reason in of_application(self._at, ask.app):
            return reason.summary
        for holder in _quotas(ask):
            if not self._room(holder, ask):
                return f"over the quota of {holder.label}"
        return ""

    def _gang_found_no_nodes(self, ask: Ask, gangs: dict[AtomicGang, bool]) -> bool:
        """Return True for a member of an Atomic gang that is whole, and that only a lack of nodes stops."""
        gang = ask.whole_gang
        if gang is None or ask.key not in gang.needed:
            return False
        known = gangs.get(gang)
        if known is None:
            request = gang.request
            known = gangs[gang] = (
                request is not None
                and not (gang.held or gang.refusals or gang.is_too_large)
                and self._found_no_node(request)
                and all(self._room(holder, request) for holder in _quotas(ask))
            )
        return known

    def _found_no_node(self, ask: Ask) -> bool:
        """Return True if no node accepted the request, or the full cluster prevents an attempt."""
        if ask.ask_class.required or ask.reserved is not None:
            return False
        root = self._at.partition.queues.root
        tried = ask.ask_class.unschedulable or ask.unschedulable or ask.app.backoff_timer is not None
        return tried or not root.has_room(ask.ask_class.pairs)

    # -- counting -----------------------------------------------------------------------------------

    def _room(self, holder: Holder, ask: Ask) -> int:
        """Return how many replicas of a request fit a quota, in addition to the FAILED requests."""
        return replicas_within(holder, ask.ask_class.pairs, ask.pending, self._claimed.get(holder, NOTHING))

    def _fitting(self, ask: Ask) -> int:
        return min((self._room(holder, ask) for holder in _quotas(ask)), default=ask.pending)

    def _count_against_quotas(self, ask: Ask, count: int) -> None:
        for holder in _quotas(ask):
            claimed = self._claimed.setdefault(holder, {})
            grow(claimed, ask.ask_class.resource, count)
            if not claimed:
                del self._claimed[holder]

    def _report(self, ask: Ask, state: str, reason: str) -> None:
        if self._reported.get(ask) != state:
            self._reported[ask] = state
            self._reports.append(SchedulingState(ask.app.id, ask.key, state, reason))


def _quotas(ask: Ask) -> list[Holder]:
    # The root quota is the size of the cluster, which grows with the nodes that are added.
    return [holder for holder in holders(ask.app) if holder is not ask.app.chain[-1]]
