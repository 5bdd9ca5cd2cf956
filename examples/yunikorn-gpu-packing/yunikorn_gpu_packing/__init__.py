"""A node sort policy for YuniKorn that packs nodes without stranding free GPUs.

partitions:
  - name: default
    nodesortpolicy:
      type: gpu-packing
      gpu: nvidia.com/gpu
      typical:
        - {resources: {vcore: 8000, memory: 34359738368, nvidia.com/gpu: 1}, weight: 3}
        - {resources: {vcore: 64000, memory: 274877906944, nvidia.com/gpu: 8}, weight: 1}

Binpacking fills the fullest node. Requests without GPUs can therefore use up the cores of a node with GPUs,
so that no request can use these GPUs. This policy computes for each node how many more GPUs a request would
strand: GPUs that are free, but with too few cores, too little memory or too few other GPUs for typical tasks.
It selects the node with the smallest number, and of equal nodes the fullest.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from yunikorn.api import AskClass, Node, NodeSortPolicy, hookimpl

TIE = 1e-3
"""Weight of the packing relative to stranded GPUs; small enough to only break ties."""


def _not_negative(_: object, __: object, weight: float) -> None:
    if weight < 0:
        raise ValueError(f"a weight is 0 or more, got {weight:g}")


@attrs.frozen
class Task:
    """Typical task."""

    resources: dict[str, int]
    """Resources of the task, in the units of the scheduler: milli-vcores, bytes, counts."""
    weight: float = attrs.field(default=1.0, validator=_not_negative)
    """Frequency relative to the other tasks."""


@attrs.frozen
class GpuPacking(NodeSortPolicy):
    """The node on which the request strands the fewest GPUs goes first; of equal ones the fullest."""

    name = "gpu-packing"
    score_range = (0.0, 1.0 + TIE)
    gpu: str = "nvidia.com/gpu"
    """Resource type of GPUs."""
    typical: list[Task] = attrs.field(factory=list)
    """Typical tasks with GPUs. Default: one GPU with its share of the node's other resources."""

    def score(self, node: Node, ask_class: AskClass) -> float:
        """Return the stranded fraction of GPUs, plus the free fraction of the node as a tie-breaker."""
        capacity, available, request = node.capacity, node.available, ask_class.resource
        left = {name: available.get(name, 0) - request.get(name, 0) for name in capacity}
        stranded = 0.0
        gpus = capacity.get(self.gpu, 0)
        if gpus > 0:
            before, after = self._stranded(node, available), self._stranded(node, left)
            stranded = (after - before) / gpus
        return stranded + TIE * _free(capacity, left)

    def _stranded(self, node: Node, free: Mapping[str, int]) -> float:
        """Return the number of free GPUs that typical tasks cannot use, as the mean over their weights."""
        gpus = free.get(self.gpu, 0)
        if gpus <= 0:
            return 0.0
        if not self.typical:
            return self._out_of_proportion(node, free, gpus)
        total = unused = 0.0
        for task in self.typical:
            each = task.resources.get(self.gpu, 0)
            if each > 0:
                total += task.weight
                unused += task.weight * max(0, gpus - each * _times(task.resources, free))
        return unused / total if total else 0.0

    def _out_of_proportion(self, node: Node, free: Mapping[str, int], gpus: int) -> float:
        """Return the number of free GPUs for which the node lacks a share of its other resources."""
        whole = node.capacity[self.gpu]
        share = min(
            (max(0, free[name]) / node.capacity[name] for name in free if name in node.capacity), default=0
        )
        return max(0.0, gpus - share * whole)


def _times(resources: Mapping[str, int], free: Mapping[str, int]) -> int:
    """Return the number of such tasks that fit."""
    return min(max(0, free.get(name, 0)) // amount for name, amount in resources.items() if amount > 0)


def _free(capacity: Mapping[str, int], left: Mapping[str, int]) -> float:
    """Return the mean over the node's types of the fraction left free, 0 to 1."""
    parts = [max(0, left[name]) / amount for name, amount in capacity.items() if amount > 0]
    return sum(parts) / len(parts) if parts else 0.0


@hookimpl
def yunikorn_node_sort_policies() -> list[type[NodeSortPolicy]]:
    """Return the policy of this package."""
    return [GpuPacking]
