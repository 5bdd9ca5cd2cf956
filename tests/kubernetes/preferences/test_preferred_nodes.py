"""The policy `pod-preferences` in a scheduler: each pod runs on a node that it prefers at that moment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.core.kit import RM, configuration, queue
from tests.kubernetes.predicates.drawn import Draw, Obj, ask_of, host_of
from tests.kubernetes.predicates.pods import pod_tags
from tests.kubernetes.preferences.test_against_scoring_plugins import Wanted
from tests.service.recording.collecting_listener import CollectingListener
from yunikorn.clock import ManualClock
from yunikorn.errors import ConfigError
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import Allocation
from yunikorn.interface.scheduler import Scheduler
from yunikorn.resources import Resource
from yunikorn_kubernetes import names
from yunikorn_kubernetes.predicates.node_affinity import NodeAffinity
from yunikorn_kubernetes.predicates.taints import NodeUnschedulable, TaintToleration
from yunikorn_kubernetes.preferences.pod_preferences import PodPreferences
from yunikorn_kubernetes.translation.compact_json import compact_json
from yunikorn_lab.simulation.recorder import Recorder
from yunikorn_lab.simulation.run import simulate
from yunikorn_lab.simulation.scenario_reader import read_scenario
from yunikorn_service.recording.recording_reader import read_recording
from yunikorn_service.recording.recording_scheduler import RecordingScheduler
from yunikorn_service.recording.recording_writer import RecordingWriter
from yunikorn_service.recording.replayer import Replay
from yunikorn_testing import AskSample, NodeSample, NodeSortPolicyContract, allocation, ask

PREDICATES = ["node-unschedulable", "taint-toleration", "node-affinity"]
KINDS = [("soft_affinity",), ("soft_spread",), ("soft_node", "soft_taints"), ("images",), (), ("node",)]
ROOM = 3
ALONE = {"type": "pod-preferences"}
WEIGHTED = {"type": "weighted", "scores": [{"name": "pod-preferences", "weight": 10}, {"name": "fair"}]}
ZONE = "topology.kubernetes.io/zone"


class PreferringCluster:
    """A scheduler with the policy, and what runs in it."""

    def __init__(self, seed: int, scheduler: Scheduler | None = None, order: Any = None) -> None:
        self.draw = Draw(seed)
        config = configuration(predicates=PREDICATES, nodesortpolicy=order or ALONE)
        self.rm: Any = RM(config, scheduler=scheduler)
        self.rm.app()
        self.hosts: dict[str, NodeSample] = {}
        self.waiting: dict[str, AskSample] = {}
        self.running: dict[str, tuple[AskSample, str]] = {}
        self.foreign: dict[str, tuple[AskSample, str]] = {}
        self.count = 0
        for number in range(7):
            name = f"n{number}"
            self.hosts[name] = self.drawn_host(name)
            self.rm.node(name, dict(self.hosts[name].attributes), vcore=ROOM)

    def drawn_host(self, name: str) -> NodeSample:
        return host_of(self.draw.with_images(self.draw.node(name)))

    def drawn_pod(self, *kinds: str) -> AskSample:
        self.count += 1
        found: Obj = self.draw.pod(f"pod-{self.count}", *kinds)
        return ask_of(found)

    def submit(self) -> None:
        """Submit a pod."""
        asked = self.drawn_pod(*self.draw.random.choice(KINDS))
        self.waiting[asked.key] = asked
        self.rm.ask("app", asked.key, tags=dict(asked.tags), vcore=1)

    def schedule(self) -> None:
        """Decide one by one; check each node with scores that are computed from nothing."""
        while decided := self.rm.schedule(1):
            ((_, key, name),) = decided
            asked = self.waiting.pop(key)
            scores = self.scores(asked)
            free = [one for one in self.hosts if self.load(one) < ROOM and self.admits(asked, one)]
            assert name == min(free, key=lambda one: (scores[one], one)), (key, name, scores, asked.tags)
            self.running[key] = asked, name

    def scores(self, asked: AskSample) -> dict[str, float]:
        policy = PodPreferences()
        for host in self.hosts.values():
            policy.node_added(host)
        for one, name in (*self.running.values(), *self.foreign.values()):
            policy.placed(allocation(one, self.hosts[name]), self.hosts[name])
        wanted: Any = Wanted(policy.ask_class(asked))
        return {name: policy.score(host, wanted) for name, host in self.hosts.items()}

    def load(self, name: str) -> int:
        return sum(at == name for _, at in [*self.running.values(), *self.foreign.values()])

    def admits(self, asked: AskSample, name: str) -> bool:
        checks = (NodeUnschedulable(), TaintToleration(), NodeAffinity())
        return all(one.check(asked, self.hosts[name]) is None for one in checks)

    def end(self) -> None:
        """End a running pod."""
        if self.running:
            key = self.draw.random.choice(sorted(self.running))
            del self.running[key]
            self.rm.release("app", key=key)

    def start_foreign(self) -> None:
        asked = self.drawn_pod("soft_affinity", "affinity")
        name = self.draw.random.choice(sorted(self.hosts))
        if self.load(name) < ROOM:
            self.foreign[asked.key] = asked, name
            tags = {**asked.tags, "foreign": "default"}
            self.rm.update(
                allocations=[Allocation(asked.key, "", "", name, Resource(vcore=1), allocation_tags=tags)]
            )

    def relabel(self) -> None:
        """Change labels, taints and images of a node."""
        name = self.draw.random.choice(sorted(self.hosts))
        self.hosts[name] = self.drawn_host(name)
        self.rm.change_node(name, attributes=dict(self.hosts[name].attributes))

    def step(self) -> None:
        """Make one random change."""
        step = self.draw.random.random()
        if step < 0.6:
            self.submit()
        elif step < 0.85:
            self.end()
        elif step < 0.92:
            self.start_foreign()
        else:
            self.relabel()


@pytest.mark.parametrize("seed", range(4))
def test_each_pod_gets_the_node_that_it_prefers(seed: int) -> None:
    cluster = PreferringCluster(seed)
    for _ in range(60):
        cluster.step()
        if cluster.draw.often(0.6):
            cluster.schedule()
    cluster.schedule()
    assert cluster.running
    assert not cluster.rm.failures()


def test_a_replay_of_a_recording_repeats_the_choices(tmp_path: Path, registry: Registry) -> None:
    writer = RecordingWriter(tmp_path / "run.jsonl", pytest.fail)
    core: Any = RecordingScheduler(writer, registry, ManualClock())
    cluster = PreferringCluster(5, core, WEIGHTED)
    for _ in range(60):
        cluster.step()
        for _, key, name in cluster.rm.schedule():
            cluster.running[key] = cluster.waiting.pop(key), name
    writer.close()
    listener = CollectingListener()
    replay = Replay(read_recording(tmp_path / "run.jsonl").lines, registry, listener)
    replay.run()
    assert str(replay.comparison.first or "") == ""
    assert listener.of("rm") == cluster.rm.responses
    assert len({name for _, name in cluster.running.values()}) > 2


SPREADING = """
nodes:
  - {name: a, count: 3, resources: {vcore: 4}, attributes: {zone: a}}
  - {name: b, count: 3, resources: {vcore: 4}, attributes: {zone: b}}
applications:
  - id: web
    queue: root.a
    count: 6
    every: 10
    tasks:
      - resources: {vcore: 1}
        runtime: 100
        tags:
          kubernetes.io/label/app: web
          yunikorn.apache.org/pod-preferences: >-
            {"topologySpread":[{"labelSelector":{"matchLabels":{"app":"web"}},"maxSkew":1,
            "topologyKey":"zone","whenUnsatisfiable":"ScheduleAnyway"}]}
"""


class Places(Recorder):
    """Nodes of a simulation, in the order of the placements."""

    def __init__(self) -> None:
        self.nodes: list[str] = []

    def allocated(self, moment: int, allocation: Any) -> None:
        self.nodes.append(allocation.node_id)


def test_a_simulation_follows_the_preferences_and_repeats_itself(registry: Registry) -> None:
    config = configuration(queue("a"), nodesortpolicy=ALONE)
    found = []
    for _ in range(2):
        places = Places()
        simulate(config, read_scenario(SPREADING, "file", "name"), registry, recorder=places)
        found.append(places.nodes)
    assert found[0] == found[1]
    assert [node[0] for node in found[0]] == ["a", "b", "a", "b", "a", "b"]


# -- single preferences ---------------------------------------------------------------------------------


def preferring(**preferences: Any) -> dict[str, str]:
    """Return the tags of a pod with preferences."""
    labels = preferences.pop("labels", None)
    return {**pod_tags(labels=labels), names.TAG_PREFERENCES: compact_json(preferences)}


def zones(policy: dict[str, Any] = WEIGHTED) -> Any:
    """Return an RM with two nodes in each of two zones."""
    rm: Any = RM(configuration(nodesortpolicy=policy))
    for name in ("a1", "a2", "b1", "b2"):
        attributes = {ZONE: name[0], names.LABEL_HOSTNAME: name}
        rm.node(name, attributes, vcore=8)
    rm.app()
    return rm


def placed_on(rm: Any) -> list[str]:
    return [node for _, _, node in rm.schedule()]


WEB = {"labelSelector": {"matchLabels": {"app": "web"}}}


def test_pods_are_spread_over_zones_one_by_one() -> None:
    rm = zones()
    spread = [{"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", **WEB}]
    rm.ask(count=4, tags=preferring(labels={"app": "web"}, topologySpread=spread), vcore=1)
    assert placed_on(rm) == ["a1", "b1", "a2", "b2"]


def test_pods_gather_around_a_pod_with_the_preference_though_they_have_none() -> None:
    rm = zones()
    near = [{"weight": 100, "podAffinityTerm": {"topologyKey": ZONE, **WEB}}]
    rm.ask(key="plain", count=2, tags=pod_tags(labels={"app": "web"}), vcore=1)
    rm.ask(key="other", tags=pod_tags(labels={"app": "db"}), vcore=1)
    rm.ask(key="magnet", tags=preferring(podAffinity=near), vcore=4, priority=9)
    assert placed_on(rm) == ["a1", "a2", "a2", "b1"]


def test_nodes_without_soft_taints_go_first() -> None:
    rm = zones()
    slow = compact_json([{"key": "slow", "effect": "PreferNoSchedule"}])
    for name in ("a1", "a2", "b1"):
        rm.change_node(name, attributes={ZONE: name[0], names.NODE_SOFT_TAINTS: slow})
    rm.ask(key="plain", count=2, vcore=1)
    assert placed_on(rm) == ["b2", "b2"]
    rm.ask(key="tolerant", tags=preferring(tolerations=[{"key": "slow", "operator": "Exists"}]), vcore=1)
    assert placed_on(rm) == ["a1"]


def test_fair_decides_between_nodes_that_are_preferred_alike() -> None:
    rm = zones()
    in_b = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["b"]}]}
    rm.ask(count=4, tags=preferring(nodeAffinity=[{"weight": 1, "preference": in_b}]), vcore=1)
    assert placed_on(rm) == ["b1", "b2", "b1", "b2"]


def test_weights_leave_preferences_out() -> None:
    rm = zones({**ALONE, "weights": {"node-affinity": 0}})
    in_b = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["b"]}]}
    rm.ask(tags=preferring(nodeAffinity=[{"weight": 1, "preference": in_b}]), vcore=1)
    assert placed_on(rm) == ["a1"]


# -- bad input ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"affinity": 1}, "unknown: affinity; known: node-affinity, taint-toleration"),
        ({"image-locality": -1}, "the weight of image-locality is -1"),
        ({"image-locality": float("inf")}, "expected a number"),
        (dict.fromkeys(["node-affinity", "taint-toleration", "inter-pod-affinity"], 0), ""),
        (
            dict.fromkeys(
                [*PREDICATES[1:], "inter-pod-affinity", "pod-topology-spread", "image-locality"], 0
            ),
            "all weights are 0",
        ),
    ],
)
def test_weights_are_checked(weights: dict[str, float], message: str) -> None:
    if not message:
        zones({**ALONE, "weights": weights})
        return
    with pytest.raises(ConfigError, match=message):
        zones({**ALONE, "weights": weights})


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{", "invalid JSON"),
        ("[]", "instead of an object"),
        ('{"nodeAffinity":[{"weight":101}]}', "weight is 101"),
        ('{"nodeAffinity":[{"weight":1,"preference":{"matchFields":[{"key":"x"}]}}]}', "a field needs"),
        ('{"podAffinity":[{"weight":"1"}]}', "weight is '1'"),
        ('{"tolerations":{}}', "instead of a list"),
        ('{"topologySpread":[{"whenUnsatisfiable":"ScheduleAnyway","maxSkew":"1"}]}', "maxSkew"),
        ('{"images":[1]}', "instead of a text"),
        ("[" * 100_000, "recursion"),
    ],
)
def test_unreadable_preferences_are_reported_and_do_not_count(text: str, fault: str) -> None:
    rm = zones(ALONE)
    rm.ask(tags={**pod_tags(), names.TAG_PREFERENCES: text}, vcore=1)
    assert placed_on(rm) == ["a1"]
    (failure,) = rm.failures()
    assert fault in failure
    assert f"(tag {names.TAG_PREFERENCES})" in failure
    rm.ask(key="next", tags=pod_tags(), vcore=1)
    assert placed_on(rm) == ["a1"], "the books are still exact"


@pytest.mark.parametrize("text", ["{", '[{"key":1}]', '{"web:1":"big"}', '{"web:1":-5}'])
def test_unreadable_attributes_of_nodes_do_not_count(text: str) -> None:
    rm = zones(ALONE)
    for attribute in (names.NODE_SOFT_TAINTS, names.NODE_IMAGES):
        rm.change_node("a1", attributes={attribute: text})
        rm.ask(key=attribute, tags=preferring(images=["web:1"], containers=1), vcore=1)
        assert placed_on(rm) == ["a1"]
    assert rm.failures() == []


class TestPodPreferences(NodeSortPolicyContract):
    policy = PodPreferences()

    def samples(self) -> list[NodeSample]:
        """Return nodes in zones, with taints and images."""
        draw = Draw(7)
        return [*super().samples(), *(host_of(draw.with_images(draw.node(f"d{one}"))) for one in range(8))]

    def ask_classes(self) -> list[AskSample]:
        """Return pods with preferences."""
        draw = Draw(8)
        kinds = [kind for kinds in KINDS for kind in kinds]
        drawn = [ask_of(draw.pod(f"pod-{kind}", kind)) for kind in kinds]
        return [*super().ask_classes(), ask("plain", vcore=1), *drawn]
