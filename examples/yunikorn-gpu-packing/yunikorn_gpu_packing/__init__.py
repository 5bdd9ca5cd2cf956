"""A node sort policy for YuniKorn: packs so that the GPUs that stay free are of use to somebody.

partitions:
  - name: default
    nodesortpolicy:
      type: gpu-packing
      gpu: nvidia.com/gpu
      typical:
        - {resources: {vcore: 8000, memory: 34359738368, nvidia.com/gpu: 1}, weight: 3}
        - {resources: {vcore: 64000, memory: 274877906944, nvidia.com/gpu: 8}, weight: 1}

Binpacking fills the fullest node. It does so with requests that need no GPU, too, on nodes that have some,
until their cores are used up and their GPUs are of use to nobody. This policy asks of each node how much
more of its GPUs a request would strand: GPUs that are free, but in too few cores, too little memory or too
small a number for what usually comes. It takes the node where that is least, and packs where it is equal.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from yunikorn.api import AskClass, Node, NodeSortPolicy, hookimpl

TIE = 1e-3
"""What the packing counts, beside GPUs that are stranded: next to nothing."""


def _not_negative(_: object, __: object, weight: float) -> None:
    if weight < 0:
        raise ValueError(f"a weight is 0 or more, got {weight:g}")


@attrs.frozen
class Task:
    """What usually comes."""

    resources: dict[str, int]
    """What it takes, in the units of the scheduler: milli-cores, bytes, counts."""
    weight: float = attrs.field(default=1.0, validator=_not_negative)
    """How often it comes, relative to the others."""


@attrs.frozen
class GpuPacking(NodeSortPolicy):
    """The node goes first on which the request strands the fewest GPUs; of equal ones the fullest."""

    name = "gpu-packing"
    gpu: str = "nvidia.com/gpu"
    """The resource type of GPUs."""
    typical: list[Task] = attrs.field(factory=list)
    """What usually comes and needs GPUs. Without it, one GPU with its share of the node's other resources."""

    def score(self, node: Node, ask_class: AskClass) -> float:
        """How many GPUs more would be stranded, then how much of the node is free; the lowest goes first."""
        capacity, available, request = node.capacity, node.available, ask_class.resource
        left = {name: available.get(name, 0) - request.get(name, 0) for name in capacity}
        stranded = 0.0
        gpus = capacity.get(self.gpu, 0)
        if gpus > 0:
            before, after = self._stranded(node, available), self._stranded(node, left)
            stranded = (after - before) / gpus
        return stranded + TIE * _free(capacity, left)

    def _stranded(self, node: Node, free: Mapping[str, int]) -> float:
        """Free GPUs that typical tasks have no use for, however many come: the mean over their weights."""
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
        """GPUs for which less is left of something else than their share of the node."""
        whole = node.capacity[self.gpu]
        share = min(
            (max(0, free[name]) / node.capacity[name] for name in free if name in node.capacity), default=0
        )
        return max(0.0, gpus - share * whole)


def _times(resources: Mapping[str, int], free: Mapping[str, int]) -> int:
    """How many such tasks fit."""
    return min(max(0, free.get(name, 0)) // amount for name, amount in resources.items() if amount > 0)


def _free(capacity: Mapping[str, int], left: Mapping[str, int]) -> float:
    """The mean over the types of a node of the part that would be left, 0 to 1."""
    parts = [max(0, left[name]) / amount for name, amount in capacity.items() if amount > 0]
    return sum(parts) / len(parts) if parts else 0.0


@hookimpl
def yunikorn_node_sort_policies() -> list[type[NodeSortPolicy]]:
    """What this package offers."""
    return [GpuPacking]
