"""Stranded resources: half the nodes lack vcore, half lack memory, and all tasks need both."""

from __future__ import annotations

import attrs

from benchmarks.harness import Harness
from benchmarks.throughput import hand_in_and_decide
from benchmarks.workload import RM, Workload
from yunikorn.interface.messages import NewNodeInfo, UpdateRequest
from yunikorn.resources import Resource

OPEN = 100
"""One of this number of nodes has free resources of both types; these nodes can run all tasks."""


def tasks_per_second(workload: Workload) -> dict[str, float]:
    """Measure the throughput if only one node in a hundred can run tasks."""
    harness = Harness(workload.configuration(), installed=workload.plugins)
    harness.update(
        UpdateRequest(
            RM,
            new_schedulable_nodes=_nodes(workload),
            new_applications=workload.application_requests(),
        )
    )
    figures = hand_in_and_decide(harness, workload)
    workload.verify(harness.rm.placed, _capacity(workload))
    return figures


def _capacity(workload: Workload) -> Resource:
    return attrs.evolve(workload, nodes=max(1, workload.nodes // OPEN)).capacity


def _nodes(workload: Workload) -> list[NewNodeInfo]:
    capacity = _capacity(workload)
    used = Resource(vcore=capacity["vcore"]), Resource(memory=capacity["memory"])
    nodes = workload.node_infos()
    for number, node in enumerate(nodes):
        node.schedulable_resource = capacity
        if number % OPEN and workload.nodes >= OPEN:
            node.occupied_resource = used[number % 2]
    return nodes
