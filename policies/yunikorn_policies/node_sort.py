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

from collections.abc import Mapping

import attrs

from yunikorn.api import Node, NodeSortPolicy, hookimpl

DEFAULT_WEIGHTS = {"vcore": 1.0, "memory": 1.0}


def _not_negative(_: object, attribute: attrs.Attribute[dict[str, float]], weights: dict[str, float]) -> None:
    for name, weight in weights.items():
        if weight < 0:
            raise ValueError(f"the weight of {name} is {weight:g}; weights are 0 or more")


@attrs.frozen
class _Weighted(NodeSortPolicy):
    resourceweights: dict[str, float] = attrs.field(factory=dict, validator=_not_negative)

    def _utilisation(self, node: Node) -> float:
        """The weighted mean over the types that the node has of the part of each that is in use."""
        weights: Mapping[str, float] = self.resourceweights or DEFAULT_WEIGHTS
        capacity, available = node.capacity, node.available
        used = total = 0.0
        for name, weight in weights.items():
            whole = capacity.get(name)
            if whole and weight:
                used += weight * (1.0 - available.get(name, 0) / whole)
                total += weight
        return used / total if total else 0.0


@attrs.frozen
class Fair(_Weighted):
    """The least used node first, so that the load spreads."""

    name = "fair"

    def score(self, node: Node) -> float:
        """How much of the node is used, 0 to 1."""
        return self._utilisation(node)


@attrs.frozen
class BinPacking(_Weighted):
    """The most used node first, so that nodes fill up and others stay free."""

    name = "binpacking"

    def score(self, node: Node) -> float:
        """How much of the node is free, 0 to 1."""
        return 1.0 - self._utilisation(node)


@hookimpl
def yunikorn_node_sort_policies() -> list[type[NodeSortPolicy]]:
    """The default ways to order nodes."""
    return [Fair, BinPacking]
