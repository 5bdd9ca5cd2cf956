"""Scores for random clusters and pods order the nodes as kube-scheduler's scoring plugins do."""

from __future__ import annotations

from collections import Counter
from typing import Any

import attrs
import pytest

from tests.kubernetes.predicates.drawn import NAMESPACES, Draw, Obj, ask_of, host_of
from tests.kubernetes.reference import Points, Reference
from yunikorn_kubernetes.preferences.pod_preferences import PodPreferences
from yunikorn_testing import allocation
from yunikorn_testing.samples import AllocationSample

KINDS = {
    "soft_node": "NodeAffinity",
    "soft_taints": "TaintToleration",
    "soft_affinity": "InterPodAffinity",
    "soft_spread": "PodTopologySpread",
    "images": "ImageLocality",
}
PLUGINS = tuple(KINDS.values())
CLUSTERS, PODS, NODES, RUNNING = 50, 10, 8, 14
BATCHES = 4
NAMESPACE_OBJECTS = [
    {"metadata": {"name": name, "labels": dict(labels)}} for name, labels in NAMESPACES.items()
]


@attrs.frozen
class Wanted:
    """Ask class of a request, as the policy gets it."""

    value: Any


class ScoredWorld:
    """A random cluster, for both sides."""

    def __init__(self, seed: int) -> None:
        self.draw = Draw(seed)
        self.policy = PodPreferences()
        self.nodes: list[Obj] = []
        self.hosts = []
        for number in range(NODES):
            self.nodes.append(self.draw.with_images(self.draw.node(f"n{number}")))
            self.hosts.append(host_of(self.nodes[number]))
            self.policy.node_added(self.hosts[number])
        self.pods: list[Obj] = []
        self.tasks: list[AllocationSample] = []
        self.run(RUNNING)

    def run(self, pods: int) -> None:
        """Start pods, some of which attract or repel others, or are being deleted."""
        draw = self.draw
        for number in range(pods):
            kinds = [one for one in ("affinity", "soft_affinity") if draw.often(0.3)]
            found = draw.pod(f"running-{len(self.pods)}-{number}", *kinds)
            if draw.often(0.1):
                found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            host = draw.random.choice(self.hosts)
            found["spec"]["nodeName"] = host.id
            self.tasks.append(allocation(ask_of(found), host))
            self.policy.placed(self.tasks[-1], host)
            self.pods.append(found)

    def change(self) -> None:
        """End some pods, replace a node, and start other pods."""
        for _ in range(RUNNING // 2):
            self.end(self.draw.random.randrange(len(self.pods)))
        number = self.draw.random.randrange(NODES)
        host = self.hosts[number]
        for at in [at for at, task in enumerate(self.tasks) if task.node is host][::-1]:
            self.end(at)
        self.policy.node_removed(host)
        self.nodes[number] = self.draw.with_images(self.draw.node(host.id))
        self.hosts[number] = host_of(self.nodes[number])
        self.policy.node_added(self.hosts[number])
        self.run(RUNNING // 2)

    def end(self, at: int) -> None:
        """End a pod."""
        task = self.tasks.pop(at)
        del self.pods[at]
        self.policy.released(task, task.node)

    @property
    def objects(self) -> dict[str, list[Obj]]:
        return {"nodes": self.nodes, "pods": self.pods, "namespaces": NAMESPACE_OBJECTS}

    def scores(self, found: Obj) -> dict[str, float]:
        """Return the scores of our policy by node."""
        wanted: Any = Wanted(self.policy.ask_class(ask_of(found)))
        return {host.id: self.policy.score(host, wanted) for host in self.hosts}


def assert_same_order(ours: dict[str, float], theirs: Points, about: object) -> None:
    """Check that no pair of nodes is in another order, and that nodes with equal points have equal scores."""
    points = {node: sum(each.values()) for node, each in theirs.items()}
    for one in points:
        for other in points:
            assert (points[one] > points[other]) is (ours[one] < ours[other]), (
                about,
                one,
                other,
                ours,
                theirs,
            )
    others = [score for node, score in ours.items() if node not in points]
    assert all(score == 1.0 for score in others), (about, others)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_nodes_are_in_the_order_of_kube_scheduler(reference: Reference, batch: int) -> None:
    compared = 0
    told: Counter[str] = Counter()
    asked_for: Counter[str] = Counter()
    for seed in range(batch * CLUSTERS, (batch + 1) * CLUSTERS):
        world = ScoredWorld(seed)
        draw = world.draw
        asked: list[tuple[Obj, list[str]]] = []
        for number in range(PODS):
            if number == PODS // 2:
                world.change()
            if number < PODS // 2:
                kinds = draw.some(list(KINDS), 4)
                hard = [one for one in ("node", "affinity") if draw.often(0.15)]
                asked.append((draw.pod(f"asked-{number}", *hard, *kinds), kinds))
            found, kinds = asked[number % (PODS // 2)]
            theirs = reference.score(found, world.objects if number % (PODS // 2) == 0 else None)
            assert_same_order(world.scores(found), theirs, (seed, number, found))
            compared += 1
            for plugin in (KINDS[kind] for kind in kinds):
                asked_for[plugin] += 1
                told[plugin] += len({each.get(plugin) for each in theirs.values()}) > 1
    assert compared * BATCHES >= 2_000
    # Each preference decides often enough, where the pod has it.
    for plugin in PLUGINS:
        assert told[plugin] >= 0.2 * asked_for[plugin], (plugin, told, asked_for)


@pytest.mark.parametrize(("kind", "plugin"), KINDS.items())
def test_each_preference_alone_has_the_points_of_its_plugin(
    reference: Reference, kind: str, plugin: str
) -> None:
    ours = {
        "NodeAffinity": "node-affinity",
        "TaintToleration": "taint-toleration",
        "InterPodAffinity": "inter-pod-affinity",
        "PodTopologySpread": "pod-topology-spread",
        "ImageLocality": "image-locality",
    }
    weights = {name: float(name == ours[plugin]) for name in ours.values()}
    for seed in range(40):
        world = ScoredWorld(1000 + seed)
        alone = world.policy = PodPreferences(weights=weights)
        for host in world.hosts:
            alone.node_added(host)
        for task in world.tasks:
            alone.placed(task, task.node)
        found = world.draw.pod("asked", kind)
        theirs = reference.score(found, world.objects)
        points = {node: {plugin: each.get(plugin, 0)} for node, each in theirs.items()}
        assert_same_order(world.scores(found), points, (seed, found))
