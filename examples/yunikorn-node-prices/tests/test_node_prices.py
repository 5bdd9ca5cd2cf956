"""Tests that prices are weighed in the same way on every scale."""

from __future__ import annotations

import json

import pytest
from yunikorn_node_prices import NodePrices

from yunikorn_testing import MakeScheduler, NodeSortPolicyContract, application, ask, assert_node_order, node


class TestNodePrices(NodeSortPolicyContract):
    """Contract test of node sort policies."""

    policy = NodePrices("cost")


def configuration(weight: float) -> str:
    """Return a configuration with this weight of the prices beside the packing of nodes."""
    scores = [{"name": "node-prices", "weight": weight}, {"name": "binpacking"}]
    root = {"name": "root", "submitacl": "*", "queues": [{"name": "default"}]}
    order = {"type": "weighted", "scores": scores}
    return json.dumps({"partitions": [{"name": "default", "nodesortpolicy": order, "queues": [root]}]})


@pytest.mark.parametrize("scale", [0.0001, 1, 1_000_000])
@pytest.mark.parametrize(("weight", "first"), [(2, "cheap"), (0.25, "used")])
def test_a_weight_means_the_same_on_every_scale(
    scheduler: MakeScheduler, scale: float, weight: float, first: str
) -> None:
    prices = {"cheap": 3, "middle": 4, "used": 5}
    nodes = [
        node(name, {"price": f"{price * scale:.4f}"}, vcore=4, occupied={"vcore": 3 * (name == "used")})
        for name, price in prices.items()
    ]
    cluster = scheduler(configuration(weight), *nodes, plugins=[NodePrices])
    cluster.submit(application("app"), ask("task", vcore=1))
    cluster.run()
    assert_node_order(cluster, first)
