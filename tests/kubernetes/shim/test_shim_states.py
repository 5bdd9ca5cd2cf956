"""States that the shim's objects pass, as its log reports them."""

from __future__ import annotations

import logging
import re

import pytest
from msgspec.structs import replace

from tests.kubernetes.shim.fake_cluster import FakeCluster
from tests.kubernetes.shim.test_pods import run


def test_scheduler_application_task_and_node_of_the_shim_have_states(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The object states document names a machine for each of the four."""

    async def test(cluster: FakeCluster) -> None:
        node, pod = cluster.add_node("n1"), cluster.add_pod("p1")
        await cluster.settle()
        cluster.put_node(replace(node, spec=replace(node.spec, unschedulable=True)))
        cluster.put_node(node)
        cluster.finish(pod)
        await cluster.settle()
        await cluster.advance(60)

    with caplog.at_level(logging.DEBUG, logger="yunikorn.kubernetes"):
        run(test)
    paths: dict[str, list[str]] = {}
    for message in caplog.messages:
        if change := re.match(r"(.+): (\w+) -> (\w+)", message):
            label, before, after = change.groups()
            path = paths.setdefault(label.split()[0], [before])
            assert path[-1] == before, message
            path.append(after)
    assert {kind: " ".join(path) for kind, path in paths.items()} == {
        "resource": "New Registering Registered Recovering Running",
        "application": "New Submitted Accepted Running Completed",
        "pod": "New Pending Scheduling Allocated Bound Completed",
        "node": "New Recovering Accepted Healthy Draining Healthy",
    }
