"""Kept candidates of a partition, by the cause of preemption."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yunikorn.scheduling.preemption.kept_candidates import KeptCandidates, Unkeepable, all_leaves
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
"""Number of allocations in eligible leaves, per node of the partition, after which candidates are kept."""
QUEUES = 32
"""Number of removed queues that may be counted before they are forgotten."""


class CandidateStore:
    """Kept candidates of a partition by cause; empty if the policy's answers are not constant."""

    def __init__(self, policy: VictimPolicy, partition: Partition) -> None:
        self._policy = policy
        self._partition = partition
        self._changes = NodeChanges(partition)
        self._kept: dict[object, KeptCandidates] = {}
        self._seen: dict[Queue, int] = {}
        """Allocations in eligible leaves, by asking queue, summed over the searches that kept nothing."""
        self._most_seen = QUEUES
        """Number of queues in `_seen` at which removed queues are forgotten."""
        self._usable = policy.is_constant

    def find(
        self, asking: Queue, cause: PreemptionCause, eligible: EligibleLeaves, pairs: Pairs
    ) -> KeptPool | None:
        """Return the candidates for a request, up to date; None if they cannot, or need not, be kept."""
        if not self._usable or not pairs:
            return None
        key = cause.kind, asking, cause.priority
        if key not in self._kept and not self._is_worthwhile(asking, eligible):
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

    def _is_worthwhile(self, asking: Queue, eligible: EligibleLeaves) -> bool:
        """Return True if the searches of a queue have seen as many allocations as there are nodes to list.

        What they saw are the allocations in eligible leaves; most are candidates.

        Listing all nodes for a queue that finds no candidates, or few, would cost far more than its search,
        and a thousand queues may search at one time.
        """
        seen = self._seen.pop(asking, 0)
        seen += sum(len(app.allocations) for leaf in eligible for app in leaf.applications.values())
        if seen >= WORTHWHILE * len(self._partition.nodes):
            return True
        if len(self._seen) >= self._most_seen:
            present = all_leaves(asking)
            self._seen = {queue: count for queue, count in self._seen.items() if queue in present}
            self._most_seen = 2 * len(self._seen) + QUEUES
        self._seen[asking] = seen
        return False
