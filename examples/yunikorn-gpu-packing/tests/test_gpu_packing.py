"""Tests that requests without GPUs leave enough cores beside free GPUs."""

from __future__ import annotations

import json

import pytest
from yunikorn_gpu_packing import GpuPacking, Task

from yunikorn_testing import (
    Cluster,
    MakeScheduler,
    NodeSortPolicyContract,
    application,
    ask,
    assert_node_order,
    assert_placed,
    node,
)


class TestGpuPacking(NodeSortPolicyContract):
    """Contract test of node sort policies."""

    policy = GpuPacking(gpu="gpu")


class TestGpuPackingForTypicalTasks(NodeSortPolicyContract):
    """Contract test with the option `typical`."""

    policy = GpuPacking(
        gpu="gpu", typical=[Task({"vcore": 4000, "gpu": 1}, 3.0), Task({"vcore": 1000, "memory": 2**30})]
    )


def configuration(policy: str, **options: object) -> str:
    """Return a configuration with this node order."""
    root = {"name": "root", "submitacl": "*", "queues": [{"name": "default"}]}
    order = {"type": policy, **options}
    return json.dumps({"partitions": [{"name": "default", "nodesortpolicy": order, "queues": [root]}]})


NODES = (
    node("with", vcore=16, memory="64Gi", capacity={"gpu": 4}),
    node("without", vcore=32, memory="128Gi"),
)


def after_some_plain_work(cluster: Cluster) -> Cluster:
    """Run requests without GPUs for half of all cores, then requests with GPUs."""
    cluster.submit(application("start"), ask(vcore=1, memory="4Gi", resource={"gpu": 1}))
    cluster.run()
    cluster.submit(application("plain"), ask("task", 14, vcore=1, memory="4Gi"))
    cluster.run()
    cluster.submit(application("gpus"), ask("task", 3, vcore=4, memory="8Gi", resource={"gpu": 1}))
    cluster.run()
    return cluster


def test_binpacking_strands_gpus(scheduler: MakeScheduler) -> None:
    cluster = after_some_plain_work(scheduler(configuration("binpacking"), *NODES, plugins=[]))
    assert cluster.running("gpus") == []


@pytest.mark.parametrize("typical", [[], [{"resources": {"vcore": 4000, "gpu": 1}, "weight": 1}]])
def test_gpu_packing_strands_no_gpus(typical: object, scheduler: MakeScheduler) -> None:
    config = configuration("gpu-packing", gpu="gpu", typical=typical)
    cluster = after_some_plain_work(scheduler(config, *NODES, plugins=[GpuPacking]))
    assert_placed(cluster, "gpus", on="with", count=3)


def test_nodes_are_packed_if_no_gpu_is_stranded(scheduler: MakeScheduler) -> None:
    nodes = [node(name, vcore=8, memory="32Gi", capacity={"gpu": 2}) for name in ("a", "b")]
    cluster = scheduler(configuration("gpu-packing", gpu="gpu"), *nodes, plugins=[GpuPacking])
    cluster.submit(application("app"), ask("task", 3, vcore=4, memory="16Gi", resource={"gpu": 1}))
    cluster.run()
    assert [one.node for one in cluster.placements] == ["a", "a", "b"]
    assert_node_order(cluster, "a", "b")


def test_a_negative_weight_is_refused() -> None:
    with pytest.raises(ValueError, match="a weight is 0 or more, got -1"):
        Task({}, -1)
