"""The predicates in a scheduler: no placement breaks a rule, and no pod waits while a node accepts it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.kit import RM, configuration
from tests.kubernetes.predicates import naive
from tests.kubernetes.predicates.drawn import Draw, Obj, ask_of, host_of
from tests.kubernetes.predicates.pods import pod_tags
from yunikorn.interface.messages import Allocation
from yunikorn.resources import Resource
from yunikorn_kubernetes.predicates.node_affinity import NodeAffinity
from yunikorn_kubernetes.predicates.node_ports import NodePorts
from yunikorn_kubernetes.predicates.taints import NodeUnschedulable, TaintToleration
from yunikorn_testing import AskSample, NodeSample

NAMES = [
    *("node-unschedulable", "node-name", "taint-toleration", "node-affinity", "node-ports"),
    *("pod-topology-spread", "inter-pod-affinity", "dynamic-resources"),
]
KINDS = [
    ("spread",),
    ("affinity",),
    ("affinity",),
    ("spread", "affinity"),
    ("node", "spread"),
    ("taints",),
    (),
]
ROOM = 4
"""Number of pods on a node."""


class Cluster:
    """A scheduler with the predicates, and what runs in it."""

    def __init__(self, seed: int, nodes: int) -> None:
        self.draw = Draw(seed)
        self.rm: Any = RM(configuration(predicates=NAMES))
        self.rm.app()
        self.hosts: dict[str, NodeSample] = {}
        self.waiting: dict[str, AskSample] = {}
        self.running: dict[str, tuple[AskSample, str]] = {}
        self.foreign: dict[str, tuple[AskSample, str]] = {}
        self.count = 0
        for number in range(nodes):
            self.add_node(f"n{number}")

    def add_node(self, name: str) -> None:
        self.hosts[name] = host_of(self.draw.node(name))
        self.rm.node(name, dict(self.hosts[name].attributes), vcore=ROOM)

    def submit(self) -> None:
        """Submit a pod, or a few equal ones."""
        found: Obj = self.draw.pod("pod", *self.draw.random.choice(KINDS))
        for _ in range(self.draw.random.choice((1, 1, 4))):
            self.count += 1
            key = f"pod-{self.count}"
            # A label that differs from pod to pod distinguishes no classes.
            found["metadata"] = {**found["metadata"], "name": key}
            found["metadata"]["labels"]["index"] = key
            asked = self.waiting[key] = ask_of(found)
            self.rm.ask("app", key, tags=dict(asked.tags), vcore=1)

    def schedule(self) -> None:
        """Decide; check each placement with what runs before it."""
        for _, key, name in self.rm.schedule():
            asked = self.waiting.pop(key)
            assert self.accepts(asked, name), (key, name)
            self.running[key] = asked, name
        for key, asked in self.waiting.items():
            free = [name for name in self.hosts if self.load(name) < ROOM and self.accepts(asked, name)]
            assert not free, (key, asked.tags, free)

    def load(self, name: str) -> int:
        return sum(at == name for _, at in [*self.running.values(), *self.foreign.values()])

    def accepts(self, asked: AskSample, name: str) -> bool:
        """Return True if the rules, computed from scratch, allow a pod on a node."""
        hosts, host = list(self.hosts.values()), self.hosts[name]
        pods = [(one.tags, self.hosts[at]) for one, at in (*self.running.values(), *self.foreign.values())]
        ports = NodePorts()
        for tags, at in pods:
            ports.placed(AskSample(tags=tags), at)
        return (
            not naive.spread_refuses(asked.tags, host, hosts, pods)
            and not naive.affinity_refuses(asked.tags, host, hosts, pods)
            and all(
                one.check(asked, host) is None
                for one in (NodeUnschedulable(), TaintToleration(), NodeAffinity(), ports)
            )
        )

    def end(self) -> None:
        """End a pod, running or waiting or foreign."""
        kind = self.draw.random.choice((self.running, self.running, self.waiting, self.foreign))
        if not kind:
            return
        key = self.draw.random.choice(sorted(kind))
        del kind[key]
        if kind is self.waiting:
            self.rm.release_ask("app", key)
        elif kind is self.foreign:
            self.rm.release("", key=key)
        else:
            self.rm.release("app", key=key)

    def start_foreign(self) -> None:
        self.count += 1
        asked = ask_of(self.draw.pod(f"foreign-{self.count}", "affinity"))
        name = self.draw.random.choice(sorted(self.hosts))
        if self.load(name) < ROOM:
            self.foreign[asked.key] = asked, name
            tags = {**asked.tags, "foreign": "default"}
            self.rm.update(
                allocations=[Allocation(asked.key, "", "", name, Resource(vcore=1), allocation_tags=tags)]
            )

    def relabel(self) -> None:
        """Change the labels of a node."""
        name = self.draw.random.choice(sorted(self.hosts))
        self.hosts[name] = host_of(self.draw.node(name))
        self.rm.change_node(name, attributes=dict(self.hosts[name].attributes))


@pytest.mark.parametrize("seed", range(6))
def test_random_histories(seed: int) -> None:
    cluster = Cluster(seed, 6)
    for _ in range(80):
        step = cluster.draw.random.random()
        if step < 0.45:
            cluster.submit()
        elif step < 0.8:
            cluster.end()
        elif step < 0.88:
            cluster.start_foreign()
        elif step < 0.96:
            cluster.relabel()
        elif len(cluster.hosts) < 9:
            cluster.add_node(f"m{len(cluster.hosts)}")
        if cluster.draw.often(0.7):
            cluster.schedule()
    cluster.schedule()
    assert cluster.running
    assert cluster.waiting
    assert not cluster.rm.failures()


def test_labels_that_differ_from_pod_to_pod_make_no_classes() -> None:
    rm: Any = RM(configuration(predicates=NAMES))
    rm.app()
    rm.node("n1", {"zone": "a"}, vcore=1000)
    for number in range(20):
        rm.ask("app", f"pod-{number}", tags=pod_tags(labels={"app": "web", "index": str(number)}), vcore=1)
    asks = rm.find_app().asks.values()
    assert len({ask.ask_class for ask in asks}) == 1
    avoid = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"index": "7"}}}
    rm.ask("app", "avoids", tags=pod_tags(podAntiAffinity=[avoid]), vcore=1)
    assert len(rm.schedule()) == 20, "the pod with index 7 and the one that avoids it do not both run"
