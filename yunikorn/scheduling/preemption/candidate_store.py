"""Kept candidates of a partition, by the cause of preemption."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.scheduling.preemption.kept_candidates import KeptCandidates, Unkeepable
from yunikorn.scheduling.preemption.kept_pool import KeptPool
from yunikorn.scheduling.preemption.node_changes import NodeChanges

if TYPE_CHECKING:
    from yunikorn.accounting.partition import Partition
    from yunikorn.api import PreemptionCause
    from yunikorn.model.queue import Queue
    from yunikorn.scheduling.preemption.snapshot import Pairs
    from yunikorn.scheduling.preemption.victim_policy import VictimPolicy
    from yunikorn.scheduling.preemption.victims import EligibleLeaves

KEPT = 50_000
"""Number of nodes, over all causes, whose candidates are kept."""
WORTHWHILE = 1
"""Number of collected allocations, per node of the partition, after which candidates are kept."""
CAUSES = 10_000
"""Number of causes without kept candidates whose searches are counted."""


class CandidateStore:
    """Kept candidates of a partition by cause; empty if the policy's answers are not constant."""

    def __init__(self, policy: VictimPolicy, partition: Partition) -> None:
        self._policy = policy
        self._partition = partition
        self._changes = NodeChanges(partition)
        self._kept: dict[object, KeptCandidates] = {}
        self._collected: dict[object, int] = {}
        """Allocations that searches of other causes have collected so far."""
        self._usable = policy.is_constant

    def find(
        self, asking: Queue, cause: PreemptionCause, eligible: EligibleLeaves, pairs: Pairs
    ) -> KeptPool | None:
        """Return the candidates for a request, up to date; None if they cannot, or need not, be kept."""
        if not self._usable or not pairs:
            return None
        key = cause.kind, asking, cause.priority
        if key not in self._kept and not self._is_worthwhile(key, eligible):
            return None
        self._changes.collect(one.reader for one in self._kept.values())
        # The longest unused is first.
        kept = self._kept.pop(key, None) or KeptCandidates(asking, cause, self._policy)
        self._kept[key] = kept
        while len(self._kept) > max(1, KEPT // max(1, len(self._changes.nodes))):
            del self._kept[next(iter(self._kept))]
        try:
            kept.update(self._changes, eligible)
        except Unkeepable:
            self._usable = False
            self._kept.clear()
            return None
        return KeptPool(kept, eligible, self._policy, cause, pairs)

    def _is_worthwhile(self, key: object, eligible: EligibleLeaves) -> bool:
        """Return True if searches of this cause collect as many allocations as there are nodes to list.

        Listing all nodes for a queue that finds no candidates, or few, would cost far more than its search,
        and a thousand queues may search at one time.
        """
        collected = self._collected.pop(key, 0)
        collected += sum(len(app.allocations) for leaf in eligible for app in leaf.applications.values())
        if collected >= WORTHWHILE * len(self._partition.nodes):
            return True
        self._collected[key] = collected
        if len(self._collected) > CAUSES:
            del self._collected[next(iter(self._collected))]
        return False
