"""Preemption schedule: queues and nodes with requests that may preempt, and the time of their next round.

A round is due when a request has waited long enough, and again after any change since the last failed round,
but not within `RETRY_INTERVAL` of that round. Without changes nothing is due and no timer is set.

Evictor: requests the release of victims, and tracks the requests that wait for their room.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Generic, TypeVar

from yunikorn.clock import SECOND
from yunikorn.model.allocation import Eviction, PreemptionMode, TerminationType
from yunikorn.resources import INT64_MAX, INT64_MIN

if TYPE_CHECKING:
    from yunikorn.accounting.allocation_accounting import AllocationAccounting
    from yunikorn.accounting.partition import Partition
    from yunikorn.clock import Timer, Timers
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.ask import Ask
    from yunikorn.model.node import Node


_IN_WORDS = {
    PreemptionMode.END: "",
    PreemptionMode.REQUEUE: ", to start again from its beginning",
    PreemptionMode.SUSPEND: ", to continue later",
}
"""End of the message of an event about a victim."""


class Evictor:
    """Executes preemption plans: accounting, events and messages."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._evictions: dict[Ask, Eviction] = {}

    def evict(
        self,
        victims: Mapping[Allocation, PreemptionMode],
        message: str,
        event: str,
        ask: Ask | None = None,
        node: Node | None = None,
    ) -> None:
        """Ask the RM to release `victims` in their modes, with `message`; `event` is recorded for each."""
        partition = self._partition
        eviction = Eviction(ask, node, partition.clock.now())
        eviction.add(victims)
        for victim, mode in victims.items():
            hold = victim.hold
            victim.mark_releasing(TerminationType.PREEMPTED_BY_SCHEDULER)
            if hold is not None:
                # The RM is not informed of such a placement. The other members of a gang end with the victim,
                # and are no candidates any more.
                for one in hold.members:
                    one.mark_releasing(TerminationType.PREEMPTED_BY_SCHEDULER)
                partition.held_placements.take_back(hold, event)
            elif victim.uuid in eviction.outstanding:
                partition.changes.released(victim, TerminationType.PREEMPTED_BY_SCHEDULER, message, mode)
            what = event if hold is not None else f"{event}{_IN_WORDS[mode]}"
            partition.changes.requests.preempted(victim, what)
        for app in dict.fromkeys(victim.app for victim in victims):
            gang = app.atomic
            if gang is not None and gang.done and app.core is not None and app.core.is_ending:
                # What is requested again would be useless one by one.
                partition.gangs.formation.restart(gang)
        if ask is not None:
            ask.ensure_extras().eviction = eviction
            self._evictions[ask] = eviction

    def evict_for(
        self, ask: Ask, node: Node | None, victims: Mapping[Allocation, PreemptionMode], *, kind: str = "ask"
    ) -> None:
        """Ask the RM to release `victims` so that `ask` can run, on `node` if that is reserved for it."""
        message = f"preempting allocations to free up resources to run {kind}: {ask.key}"
        event = f"Preempted by {ask.key} from application {ask.app.id} in {ask.app.chain[0].path}"
        self.evict(victims, message, event, ask, node)

    def is_waiting(self, ask: Ask) -> bool:
        """Return True if `ask` has preempted, and waits for the room of its victims.

        A request may preempt again if another request took the room. That is possible only without a reserved
        node: if the node was removed, or if only quotas were exceeded.
        """
        return self._partition.clock.now() < self.waits_until(ask)

    def waits_until(self, ask: Ask) -> int:
        """Return the time (ns) from which `ask` may preempt again; `NEVER` while it has victims or a node."""
        eviction = ask.eviction
        if eviction is None or not eviction.is_awaited:
            return INT64_MIN
        if eviction.outstanding or (eviction.node is not None and ask.reserved is eviction.node):
            return NEVER
        return eviction.started + RETRY_INTERVAL

    def promised(self) -> Iterator[Ask]:
        """Yield the requests that wait for the room of their victims, oldest first."""
        now = self._partition.clock.now()
        for ask in list(self._evictions):
            if now < self.waits_until(ask):
                yield ask
            elif ask.eviction is None or not ask.eviction.is_awaited:
                del self._evictions[ask]


RETRY_INTERVAL = 15 * SECOND
"""Time (ns) between two attempts for one request, as in YuniKorn 1.9."""
NEVER = INT64_MAX

S = TypeVar("S")


class ScheduleEntry(Generic[S]):
    """Schedule of one queue or node."""

    __slots__ = ("eligible_at", "retry", "seen", "subject")

    def __init__(self, subject: S, eligible_at: int) -> None:
        self.subject = subject
        self.eligible_at = eligible_at
        """Time (ns) at which the next request has waited long enough."""
        self.retry = NEVER
        """Time (ns) from which another round is allowed after a change."""
        self.seen = -1
        """Number of changes in the accounting at the last round."""

    def is_due(self, now: int, changes: int) -> bool:
        """Return True if a round is due."""
        return now >= self.eligible_at or (changes != self.seen and now >= self.retry)


class PreemptionSchedule(Generic[S]):
    """Schedule of all queues and nodes of a partition."""

    def __init__(self, timers: Timers, accounting: AllocationAccounting) -> None:
        self._timers = timers
        self._accounting = accounting
        self.entries: dict[S, ScheduleEntry[S]] = {}
        """Entries by queue or node; empty while no request may preempt."""
        self._eligible_at = self._retry = NEVER
        self._seen = -1
        self._timer: Timer | None = None

    def notice(self, subject: S, eligible_at: int) -> None:
        """Schedule a request of `subject` that may preempt from `eligible_at` (ns) on."""
        entry = self.entries.get(subject)
        if entry is None:
            self.entries[subject] = ScheduleEntry(subject, eligible_at)
        elif eligible_at < entry.eligible_at:
            entry.eligible_at = eligible_at
        if eligible_at < self._eligible_at:
            self._eligible_at = eligible_at
            self._alarm(eligible_at)

    def due(self, now: int) -> list[ScheduleEntry[S]]:
        """Return the entries due now, in the order in which they were added."""
        changes = self._accounting.change_count
        if now < self._eligible_at and (changes == self._seen or now < self._retry):
            if changes != self._seen:
                self._alarm(self._retry)
            return []
        return [entry for entry in self.entries.values() if entry.is_due(now, changes)]

    def is_due(self, now: int) -> bool:
        """Return True if a round is due by time, without a change."""
        return now >= self._eligible_at and bool(self.entries)

    def reschedule(self, entry: ScheduleEntry[S], *, eligible_at: int, retry: int) -> None:
        """Schedule the next round: at `eligible_at`, or from `retry` on after a further change."""
        entry.eligible_at, entry.retry = eligible_at, retry
        entry.seen = self._accounting.change_count

    def drop(self, subject: S) -> None:
        """Remove a queue or node without pending requests."""
        self.entries.pop(subject, None)

    def clear(self) -> None:
        """Remove all entries."""
        self.entries.clear()

    def set_timer(self) -> None:
        """Set the timer for the next round, after all due entries have been processed."""
        changes = self._seen = self._accounting.change_count
        entries = self.entries.values()
        self._retry = min((entry.retry for entry in entries), default=NEVER)
        changed = min((entry.retry for entry in entries if entry.seen != changes), default=NEVER)
        self._eligible_at = min(changed, min((entry.eligible_at for entry in entries), default=NEVER))
        self._alarm(self._eligible_at)

    def _alarm(self, due: int) -> None:
        # The timer only makes the caller run the scheduler again at that time.
        timer = self._timer
        if due == NEVER or (timer is not None and timer.call is not None and timer.due <= due):
            return
        if timer is not None:
            timer.cancel()
        self._timer = self._timers.at(due, lambda: None)
