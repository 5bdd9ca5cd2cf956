"""The order of nodes that the ConfigMap names decides, also after a change."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.kubernetes.cluster.objects import job, nodes, pod
from tests.kubernetes.scheduling import QUEUES, Scheduled


@pytest.mark.parametrize(("order", "expected"), [("binpacking", [4]), ("fair", [1, 1, 1, 1])])
def test_pods_are_packed_or_spread(order: str, expected: list[int], scheduled: Scheduled) -> None:
    text = QUEUES.replace("    queues:", f"    nodesortpolicy: {{type: {order}}}\n    queues:")
    with scheduled.queues(text):
        scheduled.make_nodes(*nodes(4, cpu="8"))
        # One after the other, so that each is placed after the others.
        for number in range(4):
            scheduled.create(pod(f"p-{number}"))
            scheduled.node_of(f"p-{number}")
        assert sorted(Counter(scheduled.running(4).values()).values()) == expected


def test_packed_nodes_are_filled_completely(scheduled: Scheduled) -> None:
    text = QUEUES.replace("    queues:", "    nodesortpolicy: {type: binpacking}\n    queues:")
    with scheduled.queues(text):
        scheduled.make_nodes(*nodes(5, cpu="4"))
        scheduled.create(job("batch", pods=8))
        assert sorted(Counter(scheduled.running(8).values()).values()) == [4, 4]
