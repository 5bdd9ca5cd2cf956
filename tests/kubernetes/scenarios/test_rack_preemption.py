"""A gang that needs a rack makes room in one: who ends for it, and what happens to the room meanwhile."""

from __future__ import annotations

from typing import Any

from tests.kubernetes.cluster import Obj
from tests.kubernetes.cluster.objects import node, node_of, pod
from tests.kubernetes.scheduling import Scheduled

STOPS_AFTER = "tests.yunikorn/stops-after"
QUEUES = """
partitions:
  - name: default
    topology: [rack]
    queues:
      - name: root
        submitacl: "*"
        properties: {preemption.delay: 1s}
        queues:
          - {name: batch}
          - {name: owner, resources: {guaranteed: {vcore: 4}}}
"""


def gang(name: str, least: int, queue: str, pods: int, **annotations: str) -> list[Obj]:
    """Return a PodGroup in one rack, and its pods of two CPUs."""
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "schedulingPolicy": {"gang": {"minCount": least}},
            "schedulingConstraints": {"topology": [{"key": "rack"}]},
        },
    }
    arguments: dict[str, Any] = {"schedulingGroup": {"podGroupName": name}, "queue": queue, "cpu": "2"}
    if annotations:
        arguments |= {"annotations": annotations, "terminationGracePeriodSeconds": 25}
    return [group, *(pod(f"{name}-{number}", **arguments) for number in range(pods))]


def test_a_gang_drains_the_rack_that_costs_least_and_small_pods_do_not_take_it(scheduled: Scheduled) -> None:
    with scheduled.queues(QUEUES):
        scheduled.make_nodes(
            *(node(f"{rack}{number}", cpu="4", labels={"rack": rack}) for rack in "ab" for number in "01")
        )
        # One rack has a gang that ends as a whole, the other one a gang that can do without two of its pods.
        stops = {STOPS_AFTER: "3s"}
        scheduled.create(*gang("mesh", 4, "root.batch", 4, **stops))
        mesh = {place[0] for place in scheduled.running(4).values()}
        scheduled.create(*gang("ring", 2, "root.batch", 4, **stops))
        placed = scheduled.running(8)
        [rack] = {place[0] for name, place in placed.items() if name.startswith("ring")}
        assert mesh == {"a", "b"} - {rack}
        version = scheduled.kubectl.request("GET", "/api/v1/pods", limit="1")["metadata"]["resourceVersion"]
        scheduled.create(*gang("first", 2, "root.owner", 2))
        ended: list[str] = []
        bound: list[str] = []
        for change, one in scheduled.kubectl.watch("Pod", "default", version):
            name = one["metadata"]["name"]
            if one["metadata"].get("deletionTimestamp") and name not in ended:
                ended.append(name)
                # Small pods come while the rack drains.
                scheduled.create(pod(f"small-{len(ended)}", cpu="1", queue="root.batch"))
            if change == "MODIFIED" and name.startswith(("first", "small")) and node_of(one):
                bound += [name] if name not in bound else []
            if len({*bound} & {"first-0", "first-1"}) == 2:
                break
        assert sorted(bound) == ["first-0", "first-1"]
        assert len(ended) == 2
        assert all(name.startswith("ring") for name in ended)
        assert {scheduled.node_of(name)[0] for name in ("first-0", "first-1")} == {rack}
        left = scheduled.running(8)
        assert sum(name.startswith("ring") for name in left) == 2
        assert sum(name.startswith("mesh") for name in left) == 4
