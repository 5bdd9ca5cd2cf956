"""Throughput with the predicates for pods, with typical constraints; each placement is checked.

The nodes are in three zones and have host names. One node in ten has a taint that only some pods tolerate,
and half of the nodes have an SSD.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial

import attrs

from benchmarks.failure import BenchmarkFailure
from benchmarks.harness import Harness
from benchmarks.throughput import hand_in_and_decide
from benchmarks.workload import Workload, app_name, node_name
from yunikorn.interface.messages import AllocationAsk, NewNodeInfo
from yunikorn.resources import Resource

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
ZONES = 3
PREDICATES = (
    *("node-unschedulable", "node-name", "taint-toleration", "node-affinity", "node-ports"),
    *("pod-topology-spread", "inter-pod-affinity", "dynamic-resources"),
)
TAINT = '[{"effect":"NoSchedule","key":"dedicated","value":"batch"}]'
CONSTRAINTS = "yunikorn.apache.org/pod-constraints"


@attrs.frozen
class Pods(Workload):
    """Workload of pods: each application is a deployment with a label of its own."""

    kind: str = "plain"
    """Constraints of the pods: `plain`, `selector`, `spread` or `apart`."""
    predicates: tuple[str, ...] = PREDICATES

    @property
    def capacity(self) -> Resource:
        """Room on each node for twice its share of the pods, so that rules and not room decide."""
        held = 2 * (self.tasks // self.nodes + 1) * (3 if self.kind == "selector" else 1)
        return Resource({name: amount * held for name, amount in self.asked[0].items()})

    def node_infos(self) -> list[NewNodeInfo]:
        """Return the nodes with the labels and taints of a cluster."""
        return [
            NewNodeInfo(node_name(number), self._labels(number), self.capacity)
            for number in range(self.nodes)
        ]

    def _labels(self, number: int) -> dict[str, str]:
        found = {
            HOST: node_name(number),
            ZONE: f"z{number % ZONES}",
            "disk": ("ssd", "hdd")[number // ZONES % 2],
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "node.kubernetes.io/instance-type": f"m{number % 4}",
        }
        return found | ({"yunikorn.apache.org/taints": TAINT} if number % 10 == 0 else {})

    def ask(self, task: int, asked: list[Resource]) -> AllocationAsk:
        """Return a pod; its index is a label that differs from pod to pod."""
        app = app_name(task % self.applications)
        tags = {
            "kubernetes.io/meta/namespace": "default",
            "kubernetes.io/label/app": app,
            "kubernetes.io/label/index": str(task),
        }
        if constraints := self._constraints(app):
            tags[CONSTRAINTS] = json.dumps(constraints, sort_keys=True, separators=(",", ":"))
        return AllocationAsk(f"t{task}", app, resource_ask=asked[0], tags=tags)

    def _constraints(self, app: str) -> Mapping[str, object]:
        selector = {"matchLabels": {"app": app}}
        if self.kind == "selector":
            return {
                "nodeSelector": {"disk": "ssd"},
                "tolerations": [{"key": "dedicated", "operator": "Equal", "value": "batch"}],
            }
        if self.kind == "spread":
            return {"topologySpread": [{"topologyKey": ZONE, "maxSkew": 1, "labelSelector": selector}]}
        if self.kind == "apart":
            return {"podAntiAffinity": [{"topologyKey": HOST, "labelSelector": selector}]}
        return {}


def tasks_per_second(workload: Workload) -> dict[str, float]:
    """Measure, and check the placements. Raises `BenchmarkFailure` if a rule was broken."""
    assert isinstance(workload, Pods)
    harness = Harness.ready(workload)
    figures = hand_in_and_decide(harness, workload)
    workload.verify(harness.rm.placed)
    labels = [workload._labels(number) for number in range(workload.nodes)]
    numbers = {
        key: (int(key[1:]) % workload.applications, labels[int(node[1:])])
        for key, (_, node) in harness.rm.placed.items()
    }
    _RULES[workload.kind](numbers)
    return figures


Placed = Mapping[str, tuple[int, Mapping[str, str]]]
"""Application and labels of the node, by pod."""


def _counts(placed: Placed, label: str) -> dict[int, Counter[str]]:
    found: dict[int, Counter[str]] = {}
    for app, labels in placed.values():
        found.setdefault(app, Counter())[labels[label]] += 1
    return found


def _tolerated(placed: Placed, *, tolerates: bool) -> None:
    for key, (_, labels) in placed.items():
        if not tolerates and "yunikorn.apache.org/taints" in labels:
            raise BenchmarkFailure(f"pod {key} runs on a node with a taint")
        if tolerates and labels["disk"] != "ssd":
            raise BenchmarkFailure(f"pod {key} runs on a node without SSD")


def _spread(placed: Placed) -> None:
    for app, counts in _counts(placed, ZONE).items():
        if max(counts.values()) - (min(counts.values()) if len(counts) == ZONES else 0) > 1:
            raise BenchmarkFailure(f"the pods of application {app} are spread as {dict(counts)}")


def _apart(placed: Placed) -> None:
    for app, counts in _counts(placed, HOST).items():
        if max(counts.values()) > 1:
            raise BenchmarkFailure(f"a node runs {max(counts.values())} pods of application {app}")


_RULES: Mapping[str, Callable[[Placed], None]] = {
    "plain": partial(_tolerated, tolerates=False),
    "selector": partial(_tolerated, tolerates=True),
    "spread": _spread,
    "apart": _apart,
}
