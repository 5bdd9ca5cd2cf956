"""Default policies for the order of nodes: `fair` spreads the load, `binpacking` fills node after node.

A partition selects a policy, with weights of resource types:

    partitions:
      - name: default
        nodesortpolicy:
          type: binpacking
          resourceweights:
            vcore: 4.0
            memory: 1.0

Weights are relative to each other. The default is equal weights for `vcore` and `memory`. Types without a
weight do not count. A request is allocated on the first node in this order that has enough free resources and
that no predicate refuses.
"""

from __future__ import annotations

import attrs

from yunikorn.api import Node, NodeSortPolicy, hookimpl

DEFAULT_WEIGHTS = {"vcore": 1.0, "memory": 1.0}


def _not_negative(_: object, attribute: attrs.Attribute[dict[str, float]], weights: dict[str, float]) -> None:
    for name, weight in weights.items():
        if weight < 0:
            raise ValueError(f"the weight of {name} is {weight:g}; weights are 0 or more")


@attrs.frozen
class _ByUtilisation(NodeSortPolicy):
    score_range = (0.0, 1.0)
    resourceweights: dict[str, float] = attrs.field(factory=dict, validator=_not_negative)

    def score(self, node: Node) -> float:
        """Return the weighted mean of the used fraction of each type, over the types that the node has."""
        capacity, available = node.capacity, node.available
        used = total = 0.0
        for name, weight in (self.resourceweights or DEFAULT_WEIGHTS).items():
            whole = capacity.get(name)
            if whole and weight:
                used += weight * (1.0 - available.get(name, 0) / whole)
                total += weight
        return used / total if total else 0.0


@attrs.frozen
class FairNodes(_ByUtilisation):
    """The least used node first, so that the load spreads."""

    name = "fair"


@attrs.frozen
class BinPacking(_ByUtilisation):
    """The most used node first, so that nodes fill up and others stay free."""

    name = "binpacking"

    def score(self, node: Node) -> float:
        """Return the free fraction of the node, 0 to 1."""
        # Without `super`, which takes as long as the rest: every decision asks for a score.
        return 1.0 - _ByUtilisation.score(self, node)


@hookimpl
def yunikorn_node_sort_policies() -> list[type[NodeSortPolicy]]:
    """Return the default policies."""
    return [FairNodes, BinPacking]
