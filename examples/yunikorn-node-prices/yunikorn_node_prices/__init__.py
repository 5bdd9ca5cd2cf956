"""A node sort policy for YuniKorn: cheap nodes first, whatever the currency.

partitions:
  - name: default
    nodesortpolicy:
      type: weighted
      scores:
        - {name: node-prices, weight: 2}
        - {name: binpacking, weight: 1}

The resource manager sets the price of a node as the attribute `price`. Prices have no known range, so the
policy lets the core normalise them: the cheapest node counts as 0, and the most expensive one as 1.
"""

from __future__ import annotations

import math

import attrs

from yunikorn.api import Node, NodeSortPolicy, hookimpl


@attrs.frozen
class NodePrices(NodeSortPolicy):
    """Sorts nodes by their price, cheapest first."""

    name = "node-prices"
    normalised = True
    attribute: str = "price"
    """Attribute with the price of a node."""

    def score(self, node: Node) -> float:
        """Return the price; a node without one is last."""
        text = node.attributes.get(self.attribute, "")
        return float(text) if text.replace(".", "", 1).isdecimal() else math.inf


@hookimpl
def yunikorn_node_sort_policies() -> list[type[NodeSortPolicy]]:
    """Return the policy."""
    return [NodePrices]
