"""How nodes are ordered for a request: `fair` spreads the load, `binpacking` fills node after node.

Named for a partition, with weights for the resource types that count:

    partitions:
      - name: default
        nodesortpolicy:
          type: binpacking
          resourceweights:
            vcore: 4.0
            memory: 1.0

Weights are relative to each other. Without any, `vcore` and `memory` count alike; types that are not
named do not count. A request goes to the first node in this order that has room for it and that no
predicate refuses.
"""

from __future__ import annotations

import attrs

from yunikorn.api import Node, NodeSortPolicy, hookimpl
from yunikorn_policies.shares import utilisation

DEFAULT_WEIGHTS = {"vcore": 1.0, "memory": 1.0}


def _not_negative(_: object, attribute: attrs.Attribute[dict[str, float]], weights: dict[str, float]) -> None:
    for name, weight in weights.items():
        if weight < 0:
            raise ValueError(f"the weight of {name} is {weight:g}; weights are 0 or more")


@attrs.frozen
class _Weighted(NodeSortPolicy):
    resourceweights: dict[str, float] = attrs.field(factory=dict, validator=_not_negative)


@attrs.frozen
class FairNodes(_Weighted):
    """The least used node first, so that the load spreads."""

    name = "fair"

    def score(self, node: Node) -> float:
        """How much of the node is used, 0 to 1."""
        return utilisation(node, self.resourceweights or DEFAULT_WEIGHTS)


@attrs.frozen
class BinPacking(_Weighted):
    """The most used node first, so that nodes fill up and others stay free."""

    name = "binpacking"

    def score(self, node: Node) -> float:
        """How much of the node is free, 0 to 1."""
        return 1.0 - utilisation(node, self.resourceweights or DEFAULT_WEIGHTS)


@hookimpl
def yunikorn_node_sort_policies() -> list[type[NodeSortPolicy]]:
    """The default ways to order nodes."""
    return [FairNodes, BinPacking]
