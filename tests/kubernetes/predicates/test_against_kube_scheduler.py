"""Answers for random clusters and pods are those of kube-scheduler's filters, refusing filters included."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.kubernetes.predicates.drawn import NAMESPACES, Draw, Obj, ask_of, host_of
from tests.kubernetes.reference import Reference
from yunikorn.api import Predicate
from yunikorn_kubernetes.predicates.node_affinity import NodeAffinity
from yunikorn_kubernetes.predicates.node_name import NodeName
from yunikorn_kubernetes.predicates.node_ports import NodePorts
from yunikorn_kubernetes.predicates.pod_affinity import InterPodAffinity
from yunikorn_kubernetes.predicates.refusal_sentences import RefusalSentence
from yunikorn_kubernetes.predicates.taints import NodeUnschedulable, TaintToleration
from yunikorn_kubernetes.predicates.topology_spread import PodTopologySpread
from yunikorn_testing import allocation
from yunikorn_testing.samples import AllocationSample

OURS: dict[str, type[Predicate]] = {
    "NodeUnschedulable": NodeUnschedulable,
    "NodeName": NodeName,
    "TaintToleration": TaintToleration,
    "NodeAffinity": NodeAffinity,
    "NodePorts": NodePorts,
    "PodTopologySpread": PodTopologySpread,
    "InterPodAffinity": InterPodAffinity,
}
"""Our predicates by the name of the filter, in the order in which kube-scheduler asks."""
KINDS = {
    "taints": "TaintToleration",
    "node": "NodeAffinity",
    "name": "NodeName",
    "ports": "NodePorts",
    "spread": "PodTopologySpread",
    "affinity": "InterPodAffinity",
}
OF_VOLUMES = {
    RefusalSentence.DISK,
    RefusalSentence.ONCE_POD,
    RefusalSentence.VOLUME_COUNT,
    RefusalSentence.VOLUME_AFFINITY,
    RefusalSentence.NO_VOLUME,
    RefusalSentence.NO_STORAGE,
    RefusalSentence.VOLUME_ZONE,
}
"""Sentences that need volumes: `tests/kubernetes/volumes/test_against_scheduler.py`."""
CLUSTERS, PODS, NODES, RUNNING = 50, 10, 8, 14
BATCHES = 4
NAMESPACE_OBJECTS = [
    {"metadata": {"name": name, "labels": dict(labels)}} for name, labels in NAMESPACES.items()
]


class World:
    """A random cluster, for both sides."""

    def __init__(self, seed: int) -> None:
        self.draw = draw = Draw(seed)
        self.nodes = [draw.node(f"n{number}") for number in range(NODES)]
        self.hosts = [host_of(found) for found in self.nodes]
        self.predicates: dict[str, Any] = {name: cls() for name, cls in OURS.items()}
        for host in self.hosts:
            self._tell("node_added", host)
        self.pods: list[Obj] = []
        self.tasks: list[AllocationSample] = []
        self.run(RUNNING)

    def run(self, pods: int) -> None:
        """Start pods."""
        draw = self.draw
        for number in range(pods):
            found = draw.pod(
                f"running-{len(self.pods)}-{number}",
                *(one for one in ("ports", "affinity") if draw.often(0.25)),
            )
            if draw.often(0.1):
                found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            host = draw.random.choice(self.hosts)
            found["spec"]["nodeName"] = host.id
            self.tasks.append(allocation(ask_of(found), host))
            self._tell("placed", self.tasks[-1], host)
            self.pods.append(found)

    def change(self) -> None:
        """End some pods, replace a node, and start other pods."""
        for _ in range(RUNNING // 2):
            self.end(self.draw.random.randrange(len(self.pods)))
        number = self.draw.random.randrange(NODES)
        host = self.hosts[number]
        for at in [at for at, task in enumerate(self.tasks) if task.node is host][::-1]:
            self.end(at)
        self._tell("node_removed", host)
        self.nodes[number] = self.draw.node(host.id)
        self.hosts[number] = host_of(self.nodes[number])
        self._tell("node_added", self.hosts[number])
        self.run(RUNNING // 2)

    def end(self, at: int) -> None:
        """End a pod."""
        task = self.tasks.pop(at)
        del self.pods[at]
        self._tell("released", task, task.node)

    def _tell(self, method: str, *what: object) -> None:
        for predicate in self.predicates.values():
            getattr(predicate, method)(*what)

    @property
    def objects(self) -> dict[str, list[Obj]]:
        return {"nodes": self.nodes, "pods": self.pods, "namespaces": NAMESPACE_OBJECTS}

    def refusals(self, found: Obj) -> dict[str, dict[str, str]]:
        """Return the refusals of our predicates by node."""
        asked = ask_of(found)
        return {
            host.id: {
                name: reason
                for name, predicate in self.predicates.items()
                if (reason := predicate.check(asked, host)) is not None
            }
            for host in self.hosts
        }


@pytest.mark.parametrize("batch", range(BATCHES))
def test_verdicts_are_those_of_kube_scheduler(reference: Reference, batch: int) -> None:
    refused: Counter[tuple[str, bool]] = Counter()
    feasible: Counter[bool] = Counter()
    said: set[str] = set()
    compared = 0
    for seed in range(batch * CLUSTERS, (batch + 1) * CLUSTERS):
        world = World(seed)
        draw = world.draw
        asked: list[tuple[Obj, list[str]]] = []
        for number in range(PODS):
            if number == PODS // 2:
                world.change()
            if number < PODS // 2:
                kinds = draw.some(list(KINDS), 3)
                found = draw.pod(f"asked-{number}", *kinds)
                asked.append((found, kinds))
            else:
                found, kinds = asked[number - PODS // 2]
            theirs = reference.ask(
                found,
                world.objects if number % (PODS // 2) == 0 else None,
                phase="reserve" if draw.often(0.2) else "allocate",
            )
            texts = world.refusals(found)
            ours = {node: list(refusals) for node, refusals in texts.items()}
            expected = {
                node: [name for name in OURS if name in {one.plugin for one in refusals}]
                for node, refusals in theirs.items()
            }
            assert ours == expected, (seed, number, found)
            for node, refusals in theirs.items():
                others = [one.plugin for one in refusals if one.plugin not in OURS]
                assert not others, (seed, number, others)
                if refusals and refusals[0].stage == "Filter":
                    assert refusals[0].plugin == ours[node][0], (seed, number, node)
                for one in refusals:
                    if one.stage == "Filter":
                        sentence, _, detail = texts[node][one.plugin].partition(": ")
                        assert sentence == one.message, (seed, number, node)
                        assert bool(detail) is (one.plugin != "NodeUnschedulable"), texts[node]
                        said.add(sentence)
                feasible[not refusals] += 1
                refused["NodeUnschedulable", "NodeUnschedulable" in ours[node]] += 1
                for kind in kinds:
                    refused[KINDS[kind], KINDS[kind] in ours[node]] += 1
            compared += 1
    assert compared * BATCHES >= 2_000
    assert said == {one for one in RefusalSentence if one not in OF_VOLUMES}
    # Every filter accepts and refuses often enough, where the pod has what it reads.
    for name in OURS:
        share = refused[name, True] / (refused[name, True] + refused[name, False])
        least = 0.02 if name == "NodeUnschedulable" else 0.1
        assert least <= share <= 0.9, (name, share)
    assert feasible[True] >= 0.1 * feasible.total()
