"""Checks of a configuration against a cluster: guarantees, maxima and limits that its nodes cannot provide.

What no cluster of this size can give is a warning. A max above the cluster is a hint only: it is normal where
nodes come and go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from yunikorn.config.partition_configs import PartitionDraft
from yunikorn.config.queue_configs import QueueDraft
from yunikorn.config.yaml_reading import Findings
from yunikorn.quantities import spell_amount
from yunikorn.resources import sum_of

Capacities = Mapping[str, Mapping[str, int]]
"""Capacity of all nodes together, by partition. A resource type that is missing there is on no node."""


def check_cluster(capacities: Capacities, partitions: Iterable[PartitionDraft], findings: Findings) -> None:
    """Compare all queues with the nodes of their partition, in a configuration without problems."""
    for partition in partitions:
        capacity = capacities.get(partition.name)
        if capacity is None:
            text = f"no node is in partition {partition.name}: its queues were not compared with the cluster"
            findings.hint(partition.table.here(), text)
        else:
            _ClusterCheck(capacity, findings).check(partition.root)


class _ClusterCheck:
    """Check of the queues of a partition."""

    def __init__(self, capacity: Mapping[str, int], findings: Findings) -> None:
        self._capacity = capacity
        self._findings = findings

    def check(self, queue: QueueDraft) -> Mapping[str, int]:
        """Check a queue and all below, and return what they are guaranteed."""
        below = [self.check(child) for child in queue.queues]
        self._check_sum(queue, below)
        for name in self._above(queue.guaranteed.value):
            text = (
                f"queue {queue.path} is guaranteed {spell_amount(name, queue.guaranteed.value[name])}, but"
                f" {self._all_nodes(name)}: lower the guarantee, or add nodes"
            )
            self._findings.warning(queue.guaranteed.at(name), text)
        for name in self._above(queue.max.value):
            text = (
                f"queue {queue.path} never reaches its max of {spell_amount(name, queue.max.value[name])},"
                f" because {self._all_nodes(name)}: it limits nothing in a cluster of this size"
            )
            self._findings.hint(queue.max.at(name), text)
        self._check_limits(queue)
        return {**sum_of(below), **queue.guaranteed.value}

    def _check_sum(self, queue: QueueDraft, below: list[Mapping[str, int]]) -> None:
        """Warn about a sum that exceeds the cluster, at the lowest queue where it does."""
        total = sum_of(below)
        for name in self._above(total):
            if any(each.get(name, 0) > self._capacity.get(name, 0) for each in below):
                continue
            if name in queue.guaranteed.value:
                continue  # the guarantee of the queue itself is at least as large
            text = (
                f"the queues below {queue.path} are guaranteed {spell_amount(name, total[name])} in total,"
                f" but {self._all_nodes(name)}: lower their guarantees, or add nodes"
            )
            self._findings.warning(queue.table.spot("queues"), text)

    def _check_limits(self, queue: QueueDraft) -> None:
        for draft in queue.limits:
            amount = draft.max_resources
            for name in self._above(amount.value):
                text = (
                    f"{spell_amount(name, amount.value[name])} is never reached, because"
                    f" {self._all_nodes(name)}: lower the limit, or leave it out"
                )
                self._findings.warning(amount.at(name), text)

    def _above(self, amount: Mapping[str, int]) -> list[str]:
        """Return the resource types of which the cluster has less."""
        return [name for name, value in amount.items() if value > self._capacity.get(name, 0)]

    def _all_nodes(self, name: str) -> str:
        capacity = self._capacity.get(name, 0)
        return (
            f"all nodes together have {spell_amount(name, capacity)}" if capacity else f"no node has {name}"
        )
