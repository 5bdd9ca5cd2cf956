"""Preferences of pods decide between nodes where the ConfigMap names the policy `pod-preferences`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from tests.kubernetes.cluster import Cluster, Obj
from tests.kubernetes.cluster.objects import node, pod
from tests.kubernetes.scheduling import QUEUES, Scheduled, scheduling

ZONE = "topology.kubernetes.io/zone"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
SCORES = "[{name: pod-preferences, weight: 10}, {name: fair}]"
PREFERRING = QUEUES.replace(
    "    queues:", f"    nodesortpolicy: {{type: weighted, scores: {SCORES}}}\n    queues:", 1
)
WEB = {"matchLabels": {"app": "web"}}


def zone_nodes() -> list[Obj]:
    """Return two nodes in each of two zones; `b-2` has a soft taint, and `a-2` an image."""
    slow = [{"key": "slow", "effect": "PreferNoSchedule"}]
    made = [
        node(name, labels={ZONE: name[0], "disk": "ssd" if name == "a-1" else "hdd"})
        for name in ("a-1", "a-2", "b-1")
    ]
    made.append(node("b-2", labels={ZONE: "b"}, taints=slow))
    return made


def near(kind: str, topology: str) -> Obj:
    """Return a preferred affinity, or anti-affinity, to pods of `web`."""
    term = {"labelSelector": WEB, "topologyKey": topology}
    return {kind: {PREFERRED: [{"weight": 100, "podAffinityTerm": term}]}}


def run(scheduled: Scheduled, name: str, **fields: Any) -> str:
    """Run a pod; return its node."""
    scheduled.create(pod(name, **fields))
    return scheduled.node_of(name)


def test_each_preference_decides(cluster: Cluster, tmp_path: Path) -> None:
    with scheduling(cluster, tmp_path, queues=PREFERRING) as scheduled:
        scheduled.make_nodes(*zone_nodes())
        on_ssd = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
        affinity = {"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": on_ssd}]}}
        assert run(scheduled, "wants-ssd", affinity=affinity) == "a-1"
        spread = {
            "maxSkew": 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": WEB,
        }
        places = [
            run(scheduled, f"web-{number}", labels={"app": "web"}, topologySpreadConstraints=[spread])
            for number in range(4)
        ]
        assert Counter(name[0] for name in places) == {"a": 2, "b": 2}
        assert "b-2" not in places, "b-2 has a taint that pods avoid"
        tolerations = [{"key": "slow", "operator": "Exists", "effect": "PreferNoSchedule"}]
        apart = near("podAntiAffinity", "kubernetes.io/hostname")
        assert run(scheduled, "apart", affinity=apart, tolerations=tolerations) == "b-2"
        # A pod of `web` without preferences is drawn to the pod that wants such pods near.
        magnet = run(scheduled, "magnet", affinity=near("podAffinity", "kubernetes.io/hostname"))
        assert run(scheduled, "drawn", labels={"app": "web"}) == magnet


def test_images_of_nodes_decide(cluster: Cluster, tmp_path: Path) -> None:
    with scheduling(cluster, tmp_path, queues=PREFERRING) as scheduled:
        scheduled.make_nodes(*zone_nodes())
        image = {"names": ["registry.example/model:1"], "sizeBytes": 8 << 30}
        scheduled.change_node(
            "a-2",
            lambda seen: "images" in str(seen["attributes"]),
            {"status": {"images": [image]}},
            subresource="status",
        )
        scheduled.create(
            pod("heavy", containers=[{"name": "main", "image": "registry.example/model:1"}]),
        )
        assert scheduled.node_of("heavy") == "a-2"


def test_first_use_after_the_start_warns_about_images(scheduled: Scheduled) -> None:
    with scheduled.queues(PREFERRING):
        scheduled.make_nodes(*zone_nodes())
        scheduled.create(pod("p"))
        scheduled.node_of("p")
        assert "it counts the images of nodes after a restart" in scheduled.scheduler.log
