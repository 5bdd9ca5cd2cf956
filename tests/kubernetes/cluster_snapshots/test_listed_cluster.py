"""A cluster without a scheduler of ours, from lists of its objects, and what a snapshot of it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.kubernetes.cluster.objects import container, namespace, node, pod, priority_class
from yunikorn.clock import SECOND, ManualClock
from yunikorn.framework.registry import Registry
from yunikorn.interface.scheduler import Scheduler
from yunikorn_kubernetes.cluster_snapshots.listed_cluster import ListedObjects, cluster_of_objects
from yunikorn_kubernetes.cluster_snapshots.namespace_queues import ResourceQuota
from yunikorn_kubernetes.objects import Namespace, Node, Pod, PriorityClass
from yunikorn_snapshots.other_clusters import scheduler_of, snapshot_of
from yunikorn_snapshots.restored_snapshot import read_header, restored_scheduler
from yunikorn_snapshots.snapshots import take_snapshot

Obj = dict[str, Any]
NOON = 1_764_331_200 * SECOND


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry.load(third_party=False)


def made(
    name: str, kind: str = "", owner: str = "", on: str = "", phase: str = "Running", **arguments: Any
) -> Obj:
    """Return a pod of kube-scheduler: of an owner, on a node, if these are given."""
    found = pod(name, scheduler="default-scheduler", **arguments)
    meta = found["metadata"]
    meta |= {"uid": f"uid-{name}", "creationTimestamp": "2025-11-28T11:00:00Z"}
    if kind:
        meta["ownerReferences"] = [
            {"apiVersion": "v1", "kind": kind, "name": owner, "uid": f"uid-{owner}", "controller": True}
        ]
    if on:
        found["spec"]["nodeName"] = on
    found["status"] = {"phase": phase if on else "Pending"}
    return found


def quota(name: str, space: str, hard: dict[str, str], **spec: Any) -> Obj:
    return {"metadata": {"name": name, "namespace": space}, "spec": {"hard": hard, **spec}}


def listed(pods: list[Obj], nodes: list[Obj], quotas: list[Obj] | None = None) -> ListedObjects:
    spaces = [namespace("default"), namespace("team")]
    return ListedObjects(
        msgspec.convert(nodes, list[Node]),
        msgspec.convert(pods, list[Pod]),
        msgspec.convert(spaces, list[Namespace]),
        msgspec.convert([priority_class("high", 100)], list[PriorityClass]),
        msgspec.convert(quotas or [], list[ResourceQuota]),
    )


def scheduled(found: ListedObjects, registry: Registry, **options: str) -> tuple[Scheduler, list[str]]:
    return scheduler_of(cluster_of_objects(found, NOON, **options), registry)


def test_pods_of_all_schedulers_are_applications_of_their_namespace(
    registry: Registry, tmp_path: Path
) -> None:
    hashed = {"pod-template-hash": "5d9f"}
    found = listed(
        [
            made("web-5d9f-a", "ReplicaSet", "web-5d9f", "n1", namespace="team", labels=hashed, cpu="2"),
            made("web-5d9f-b", "ReplicaSet", "web-5d9f", "n1", namespace="team", labels=hashed, cpu="2"),
            made("import-0", "Job", "import", namespace="team", cpu="4", priority=100),
            made("alone", on="n2", cpu="1"),
            made("named", namespace="team", application="mine", cpu="1"),
            made("proxy-n1", "DaemonSet", "proxy", "n1", cpu="1"),
            made("apiserver", "Node", "n2", "n2", cpu="1"),
            made("done", on="n1", phase="Succeeded", cpu="8"),
        ],
        [node("n1", cpu="8"), node("n2", cpu="4", unschedulable=True)],
        [
            quota(
                "q",
                "team",
                {"requests.cpu": "6", "memory": "20Gi", "limits.cpu": "9", "requests.storage": "1Gi"},
            )
        ],
    )
    path = tmp_path / "snapshot"
    header = snapshot_of(cluster_of_objects(found, NOON), registry, path)
    assert header.sizes == {"partitions": 1, "nodes": 2, "applications": 4, "allocations": 3, "pending": 2}
    scheduler = restored_scheduler(path, registry, ManualClock(header.time))
    (at,) = scheduler.partitions("kubernetes")
    apps = at.partition.applications
    assert {name: app.queue.path for name, app in apps.items() if app.queue is not None} == {
        "team.deployment.web": "root.team",
        "team.job.import": "root.team",
        "default.pod.alone": "root.default",
        "mine": "root.team",
    }
    nodes = at.partition.nodes
    assert nodes["n1"].available["vcore"] == 8000 - 2 * 2000 - 1000
    assert nodes["n2"].available["vcore"] == 4000 - 1000 - 1000
    assert nodes["n2"].state == "Draining"
    (ask,) = apps["team.job.import"].asks.values()
    assert (ask.priority, ask.created, ask.key) == (100, NOON - 3600 * SECOND, "uid-import-0")
    # Two web pods use 4 of the 6 vcores of the namespace's quota, and 2 Gi of its memory.
    reason = scheduler.explain("kubernetes", "default", "team.job.import")["uid-import-0"].reasons[0]
    assert reason.check == "quota"
    assert "root.team" in reason.detail
    assert "vcore" in reason.detail


def test_what_is_left_out_is_named(registry: Registry) -> None:
    gated = made("gated", cpu="1", schedulingGates=[{"name": "wait"}])
    odd = made("odd", containers=[container(cpu="many")])
    _, lacks = scheduled(
        listed(
            [
                gated,
                odd,
                made("lost", on="gone", cpu="1"),
                made("daemon", "DaemonSet", "proxy", cpu="1"),
            ],
            [node("n1")],
            [
                quota("scoped", "team", {"pods": "3"}, scopes=["Terminating"]),
                quota("none", "team", {"pods": "0"}),
                quota("bad", "team", {"cpu": "many"}),
            ],
        ),
        registry,
    )
    kept = [one for one in lacks if one.startswith(("1 pod", "quota"))]
    assert [one.partition(":")[0] for one in kept] == [
        "1 pod that belongs to a node or another scheduler, and waits",
        "1 pod that waits for scheduling gates",
        "1 pod on a node that is not there",
        "1 pod that cannot be scheduled as it is written",
        "quota team/scoped",
        "quota team/none",
        "quota team/bad",
    ]


def test_pods_of_one_scheduler_and_another_configuration(registry: Registry) -> None:
    mine = made("mine", on="n1", cpu="2", application="batch")
    mine["spec"]["schedulerName"] = "yunikorn"
    found = listed([mine, made("other", on="n1", cpu="3"), made("waits", cpu="1")], [node("n1", cpu="8")])
    scheduler, lacks = scheduled(found, registry, scheduler="yunikorn")
    (at,) = scheduler.partitions("kubernetes")
    assert [*at.partition.applications] == ["batch"]
    assert at.partition.nodes["n1"].available["vcore"] == 3000
    assert "1 pod that belongs to a node or another scheduler, and waits" in lacks
    config = "partitions: [{name: default, placementrules: [{name: provided}], queues: [{name: root}]}]"
    scheduler, lacks = scheduled(found, registry, config=config)
    (at,) = scheduler.partitions("kubernetes")
    # What the rules reject still uses its room.
    assert not at.partition.applications
    assert at.partition.nodes["n1"].available["vcore"] == 3000
    assert any(one.startswith("3 applications that its configuration rejects") for one in lacks)


def test_what_restricts_the_nodes_of_pods_is_kept(registry: Registry, tmp_path: Path) -> None:
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    port = container(cpu="1", ports=[{"containerPort": 80, "hostPort": 80}])
    pods = [
        made("spread", labels={"app": "web"}, cpu="1", topologySpreadConstraints=[spread]),
        made("spread-1", on="n1", labels={"app": "web"}, cpu="1", topologySpreadConstraints=[spread]),
        made("apart", labels={"app": "web"}, cpu="1", affinity=affinity),
        made("port", on="n1", containers=[port]),
        made("port-2", containers=[port]),
        made("selects", cpu="1", nodeSelector={"disk": "ssd"}),
        made("tolerates", cpu="1", tolerations=[{"key": "gpu", "operator": "Exists"}]),
        made("claims", cpu="1", volumes=[claim]),
    ]
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    found = listed(pods, [node("n1", cpu="8"), node("n2", cpu="8"), node("n3", cpu="8", taints=[taint])])
    path = tmp_path / "snapshot"
    header = snapshot_of(cluster_of_objects(found, NOON), registry, path)
    first, _ = scheduler_of(cluster_of_objects(found, NOON), registry)
    copy = restored_scheduler(path, registry, ManualClock(NOON))
    assert first.schedule() == copy.schedule() == 3
    again = tmp_path / "again"
    take_snapshot(copy, again)
    assert read_header(again).sizes == {**header.sizes, "allocations": 5, "pending": 2}
    places = [
        {
            one.key: one.node.id
            for app in at.partition.applications.values()
            for one in app.allocations.values()
        }
        for at in (*first.partitions("kubernetes"), *copy.partitions("kubernetes"))
    ]
    assert places[0] == places[1]
    assert places[0]["uid-apart"] == "n2", "n1 has a pod of the same label, and n3 a taint"
    assert places[0]["uid-port-2"] != "n1", "the port is in use there"
    assert not {"uid-spread", "uid-selects", "uid-claims"} & places[0].keys()
