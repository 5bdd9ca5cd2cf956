"""Evictor: requests the release of victims, and tracks the requests that wait for their room."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from yunikorn.accounting.outbox import Release
from yunikorn.model.allocation import Eviction, TerminationType
from yunikorn.resources import INT64_MIN
from yunikorn.scheduling.preemption.schedule import NEVER, RETRY_INTERVAL

if TYPE_CHECKING:
    from yunikorn.accounting.partition import Partition
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.ask import Ask
    from yunikorn.model.node import Node


class Evictor:
    """Executes preemption plans: accounting, events and messages."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._evictions: dict[Ask, Eviction] = {}

    def evict(
        self,
        victims: Sequence[Allocation],
        message: str,
        event: str,
        ask: Ask | None = None,
        node: Node | None = None,
    ) -> None:
        """Ask the RM to release `victims`, with `message`; `event` is recorded for each victim."""
        partition = self._partition
        eviction = Eviction(ask, node, partition.clock.now())
        eviction.add(victims)
        for victim in victims:
            victim.ensure_extras().releasing = TerminationType.PREEMPTED_BY_SCHEDULER
            partition.outbox.releases.append(Release(victim, TerminationType.PREEMPTED_BY_SCHEDULER, message))
            partition.event_recorder.record(
                "REQUEST", victim.key, victim.app.id, message=event, reason="Preempted"
            )
        if ask is not None:
            ask.ensure_extras().eviction = eviction
            self._evictions[ask] = eviction

    def evict_for(
        self, ask: Ask, node: Node | None, victims: Sequence[Allocation], *, kind: str = "ask"
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
        if eviction is None or not eviction.waits:
            return INT64_MIN
        if eviction.outstanding or (eviction.node is not None and ask.reserved is eviction.node):
            return NEVER
        return eviction.started + RETRY_INTERVAL

    def promised(self) -> Iterator[Ask]:
        """Yield the requests that wait for the room of their victims, oldest first."""
        for ask in list(self._evictions):
            if self.is_waiting(ask):
                yield ask
            elif ask.eviction is None or not ask.eviction.waits:
                del self._evictions[ask]
