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


class CandidateStore:
    """Kept candidates of a partition by cause; empty if the policy's answers are not constant."""

    def __init__(self, policy: VictimPolicy, partition: Partition) -> None:
        self._policy = policy
        self._changes = NodeChanges(partition)
        self._kept: dict[object, KeptCandidates] = {}
        self._usable = policy.is_constant

    def find(
        self, asking: Queue, cause: PreemptionCause, eligible: EligibleLeaves, pairs: Pairs
    ) -> KeptPool | None:
        """Return the candidates for a request, up to date; None if they cannot be kept."""
        if not self._usable or not pairs:
            return None
        self._changes.collect(one.reader for one in self._kept.values())
        key = cause.kind, asking, cause.priority
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
