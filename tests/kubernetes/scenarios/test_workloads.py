"""Gangs of workloads without annotations, made by the controllers of a real cluster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes.cluster import Cluster, Obj
from tests.kubernetes.cluster.objects import job, namespace, node, node_of, phase, pod
from tests.kubernetes.deployment import NAMESPACE
from tests.kubernetes.scenarios.gangs import bound, unique
from tests.kubernetes.scheduling import QUEUES, Scheduled, scheduling
from yunikorn_kubernetes.config_maps import CONFIGS

KINDS = "yunikorn.apache.org/namespace.workloadKinds"
INDEXED = {"completionMode": "Indexed"}
RACKS = QUEUES.replace("    queues:", "    topology: [rack]\n    queues:")
APPROVED = {"api-approved.kubernetes.io": "unapproved, a test"}
"""Annotation without which the API server refuses groups below k8s.io."""
WAYS = pytest.mark.parametrize("way", ["PodGroup", "Job"])
"""Kinds of objects that tell the size of the gang: the controller makes a PodGroup for the Job."""


def place_for(scheduled: Scheduled, way: str) -> str:
    """Return a new namespace in which only this kind is recognised."""
    made = scheduled.kubectl.create(namespace(unique("kinds"), annotations={KINDS: way}))
    return str(made["metadata"]["name"])


def indexed(name: str, place: str, pods: int, **fields: Any) -> Obj:
    """Return an Indexed Job whose pods name no application."""
    return job(name, place, pods=pods, job_fields={**INDEXED, **fields}, application="")


def custom(scheduled: Scheduled, place: str, group: str, kind: str, spec: Obj) -> Obj:
    """Make an object `work` of a kind without a controller; return the reference to it as a controller."""
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    scheduled.create(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}", "annotations": APPROVED},
            "spec": {
                "group": group,
                "names": {"kind": kind, "plural": plural},
                "scope": "Namespaced",
                "versions": [version],
            },
        }
    )

    def served(found: Obj) -> bool:
        conditions = found.get("status", {}).get("conditions", ())
        return any((one["type"], one["status"]) == ("Established", "True") for one in conditions or ())

    scheduled.kubectl.wait_for("CustomResourceDefinition", f"{plural}.{group}", served, "")
    body = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": "work"}, "spec": spec}
    made = scheduled.kubectl.request("POST", f"/apis/{group}/v1/namespaces/{place}/{plural}", body)
    return {
        "apiVersion": f"{group}/v1",
        "kind": kind,
        "name": "work",
        "uid": made["metadata"]["uid"],
        "controller": True,
    }


def owned(one: Obj, owner: Obj) -> Obj:
    """Return an object with an owner."""
    one["metadata"]["ownerReferences"] = [owner]
    return one


def group_condition(scheduled: Scheduled, place: str, wanted: str) -> Obj:
    """Wait until the only PodGroup of a namespace is scheduled, or not; return the condition."""

    def there(groups: list[Obj]) -> list[Obj] | None:
        assert len(groups) <= 1
        conditions = [one for group in groups for one in group.get("status", {}).get("conditions", ())]
        return [one for one in conditions if (one["type"], one["status"]) == ("PodGroupScheduled", wanted)]

    return scheduled.kubectl.wait("PodGroup", there, place)[0]


def test_a_job_makes_a_pod_group_that_is_scheduled(scheduled: Scheduled) -> None:
    place = place_for(scheduled, "all")
    scheduled.make_nodes(node("small", cpu="2"))
    scheduled.create(indexed("train", place, 3))
    found = group_condition(scheduled, place, "False")
    assert found["reason"] == "Unschedulable"
    assert "no room for its whole gang at once" in found["message"]
    scheduled.make_nodes(node("large", cpu="3"))
    scheduled.running(3, place)
    assert group_condition(scheduled, place, "True")["reason"] == "Scheduled"
    # The finalizer of the group goes when its pods are gone.
    scheduled.kubectl.delete("Job", "train", place)
    scheduled.kubectl.wait("PodGroup", lambda groups: None if groups else [True], place)


@WAYS
def test_pods_of_an_indexed_job_start_together(scheduled: Scheduled, way: str) -> None:
    place = place_for(scheduled, way)
    scheduled.make_nodes(node("small", cpu="2"))
    scheduled.create(indexed("train", place, 3))
    pods = scheduled.wait_pods(lambda pods: len(pods) == 3, place)
    for name in pods:
        text = scheduled.pending(name, "no room for its whole gang at once", place)
        assert text.startswith(f"gang of 3 pods of {way} {place}/train")
        assert (" of Workload train-" in text) == (way == "PodGroup")
    [app] = scheduled.rest(f"/ws/v1/partition/default/queue/root.{place}/applications")
    found = scheduled.rest(f"/ws/v1/partition/default/application/{app['applicationID']}/explain")
    assert found["workload"].startswith(f"gang of 3 pods of {way} {place}/train")
    # The room that does not suffice remains free for others.
    scheduled.create(pod("other", cpu="2"))
    assert scheduled.node_of("other") == "small"
    scheduled.make_nodes(node("large", cpu="3"))
    assert {*scheduled.running(3, place).values()} == {"large"}


@pytest.mark.slow
def test_pods_of_an_indexed_job_start_together_where_no_pod_groups_exist(
    plain_cluster: Cluster, tmp_path: Path
) -> None:
    with scheduling(plain_cluster, tmp_path) as scheduled:
        scheduled.make_nodes(node("small", cpu="2"))
        scheduled.create(indexed("train", "default", 3))
        pods = scheduled.wait_pods(lambda pods: len(pods) == 3)
        for name, one in pods.items():
            assert "schedulingGroup" not in one["spec"]
            text = scheduled.pending(name, "no room for its whole gang at once")
            assert text.startswith("gang of 3 pods of Job default/train")
        scheduled.make_nodes(node("large", cpu="1"))
        assert {*scheduled.running(3).values()} == {"small", "large"}


def test_pods_of_a_plain_job_start_one_by_one(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("small", cpu="2"))
    scheduled.create(job("work", pods=3, application=""))
    scheduled.running(2)


@WAYS
def test_a_member_that_fails_is_replaced_although_another_has_succeeded(
    scheduled: Scheduled, way: str
) -> None:
    place = place_for(scheduled, way)
    scheduled.make_nodes(node("only", cpu="3"))
    scheduled.create(indexed("train", place, 3, backoffLimit=6))
    scheduled.running(3, place)
    pods = sorted(one["metadata"]["name"] for one in scheduled.kubectl.list("Pod", place))
    for name, end in zip(pods, ("Succeeded", "Failed"), strict=False):
        scheduled.kubectl.patch("Pod", name, {"status": {"phase": end}}, place, subresource="status")

    def replaced(found: list[Obj]) -> bool:
        running = {one["metadata"]["name"] for one in found if phase(one) == "Running"}
        return len(running) == 2 and bool(running - {*pods})

    found = scheduled.wait_pods(replaced, place)
    assert bound(found.values()) == 4
    assert {node_of(one) for one in found.values()} == {"only"}


@WAYS
def test_a_gang_that_waits_is_whole_after_a_restart(cluster: Cluster, tmp_path: Path, way: str) -> None:
    with scheduling(cluster, tmp_path) as scheduled:
        place = place_for(scheduled, way)
        scheduled.make_nodes(node("small", cpu="2"))
        scheduled.create(indexed("train", place, 3))
        pods = scheduled.wait_pods(lambda pods: len(pods) == 3, place)
        scheduled.pending(min(pods), "no room for its whole gang at once", place)
        scheduled.scheduler.kill()
    with scheduling(cluster, tmp_path) as scheduled:
        scheduled.make_nodes(node("more", cpu="1"))
        scheduled.running(3, place)


def test_jobs_of_a_jobset_in_order_are_gangs_one_after_the_other(scheduled: Scheduled) -> None:
    place = place_for(scheduled, "JobSet")
    parts = [("driver", 2), ("workers", 3)]
    spec = {"replicatedJobs": [{"name": name, "template": {"spec": {"parallelism": n}}} for name, n in parts]}
    owner = custom(scheduled, place, "jobset.x-k8s.io", "JobSet", spec)
    scheduled.make_nodes(node("first", cpu="4"))
    for name, size in parts:
        label = "jobset.sigs.k8s.io/"
        labels = {f"{label}jobset-name": "work", f"{label}replicatedjob-name": name}
        made = job(f"work-{name}", place, pods=size, job_fields=INDEXED, application="", labels=labels)
        scheduled.create(owned(made, owner))
        if name == "driver":
            scheduled.running(2, place)
    pods = scheduled.wait_pods(lambda pods: len(pods) == 5, place)
    waiting = [name for name, one in pods.items() if not node_of(one)]
    assert len(waiting) == 3
    text = scheduled.pending(waiting[0], "no room for its whole gang at once", place)
    assert text.startswith(f"gang of 3 pods of JobSet {place}/work (replicated Job workers")
    scheduled.make_nodes(node("second", cpu="1"))
    scheduled.running(5, place)


def test_a_ray_cluster_starts_whole_and_its_submitter_by_itself(scheduled: Scheduled) -> None:
    place = place_for(scheduled, "RayCluster, Job")
    spec = {"workerGroupSpecs": [{"groupName": "gpu", "replicas": 2}]}
    owner = custom(scheduled, place, "ray.io", "RayCluster", spec)
    scheduled.make_nodes(node("first", cpu="2"))
    kinds = ["head", "worker", "worker"]
    for number, kind in enumerate(kinds):
        labels = {"ray.io/cluster": "work", "ray.io/node-type": kind, "ray.io/group": "gpu"}
        made = pod(f"ray-{number}", place, application="", labels=labels)
        scheduled.create(owned(made, owner))
    scheduled.pending("ray-0", "no room for its whole gang at once", place)
    scheduled.make_nodes(node("second", cpu="2"))
    scheduled.running(3, place)
    scheduled.create(job("submit", place, application=""))
    scheduled.running(4, place)


def test_queues_and_kinds_can_be_left_out_by_settings(cluster: Cluster, tmp_path: Path) -> None:
    settings = {"service.workloadKinds": "PodGroup, Job", "service.workloadBypassQueues": "^root.plain"}
    with scheduling(cluster, tmp_path, settings=settings) as scheduled:
        scheduled.make_nodes(node("small", cpu="2"))
        one = job("plain", pods=3, job_fields=INDEXED, application="", queue="root.plain")
        scheduled.create(one)
        scheduled.running(2)
        scheduled.create(indexed("train", "default", 3))
        pods = scheduled.wait_pods(lambda pods: len(pods) == 6)
        waiting = next(name for name in pods if name.startswith("train"))
        assert scheduled.pending(waiting, "no room").startswith("gang of 3 pods")


def test_pods_wait_for_a_pod_group_and_for_its_number(scheduled: Scheduled) -> None:
    with scheduled.queues(RACKS):
        place = place_for(scheduled, "all")
        scheduled.make_nodes(node("only", cpu="9"))
        ring = {"podGroupName": "ring"}
        for number in range(2):
            scheduled.create(pod(f"ring-{number}", place, application="", schedulingGroup=ring))
        scheduled.pending("ring-0", f"its PodGroup {place}/ring does not exist", place)
        scheduled.create(
            {
                "apiVersion": "scheduling.k8s.io/v1alpha2",
                "kind": "PodGroup",
                "metadata": {"name": "ring", "namespace": place},
                "spec": {
                    "schedulingPolicy": {"gang": {"minCount": 3}},
                    "schedulingConstraints": {"topology": [{"key": "rack"}]},
                },
            }
        )
        scheduled.pending("ring-0", "2 of 3 pods exist", place)
        assert "2 of 3 pods exist" in group_condition(scheduled, place, "False")["message"]
        scheduled.create(
            pod("ring-2", place, application="", schedulingGroup=ring, nodeSelector={"rack": "a"})
        )
        # No node has the label yet.
        scheduled.pending("ring-2", "gang of 3 pods", place)
        scheduled.make_nodes(node("there", cpu="9", labels={"rack": "a"}))
        scheduled.running(3, place)
        group_condition(scheduled, place, "True")


def test_pod_group_with_a_topology_is_in_one_rack_and_so_are_replacements(scheduled: Scheduled) -> None:
    place = place_for(scheduled, "all")
    with scheduled.queues(RACKS):
        for rack in ("a", "b", "c"):
            names = [f"{rack}{number}" for number in range(4)]
            scheduled.make_nodes(*(node(name, cpu="2", labels={"rack": rack}) for name in names))
        for rack in ("a", "b"):
            for number in range(4):
                filler = pod(f"filler-{rack}{number}", place, cpu="1", nodeName=f"{rack}{number}")
                scheduled.create(filler)
        group = {
            "apiVersion": "scheduling.k8s.io/v1alpha2",
            "kind": "PodGroup",
            "metadata": {"name": "ring", "namespace": place},
            "spec": {
                "schedulingPolicy": {"gang": {"minCount": 6}},
                "schedulingConstraints": {"topology": [{"key": "rack"}]},
            },
        }
        scheduled.create(group)

        def member(name: str) -> Obj:
            return pod(name, place, cpu="1", application="", schedulingGroup={"podGroupName": "ring"})

        scheduled.create(*(member(f"ring-{number}") for number in range(6)))
        # Half a rack is too small.
        assert {scheduled.node_of(f"ring-{number}", place)[0] for number in range(6)} == {"c"}
        scheduled.kubectl.delete("Pod", "ring-0", place)
        scheduled.create(*(member(f"more-{number}") for number in range(3)))
        assert {scheduled.node_of(f"more-{number}", place)[0] for number in range(3)} == {"c"}
        # The rack is full: the next one waits, though other racks have room.
        scheduled.create(member("last"))
        assert "outside rack c" in scheduled.pending("last", "outside rack", place)
        # One member has succeeded and another fails: both leave room, and the group is not waited for again.
        for name, end in (("ring-1", "Succeeded"), ("ring-2", "Failed")):
            scheduled.kubectl.patch("Pod", name, {"status": {"phase": end}}, place, subresource="status")
        scheduled.create(member("again"))
        assert {scheduled.node_of(name, place)[0] for name in ("last", "again")} == {"c"}


def test_workers_of_a_leader_that_must_be_ready_start_together_after_it(scheduled: Scheduled) -> None:
    place = place_for(scheduled, "LeaderWorkerSet")
    spec = {"leaderWorkerTemplate": {"size": 4}, "startupPolicy": "LeaderReady"}
    owner = custom(scheduled, place, "leaderworkerset.x-k8s.io", "LeaderWorkerSet", spec)
    label = "leaderworkerset.sigs.k8s.io/"
    scheduled.make_nodes(node("first", cpu="3"))

    def member(index: int, above: Obj) -> Obj:
        """Return a pod; the controller names StatefulSets and leaders as owners, which lead to the set."""
        labels = {f"{label}name": "work", f"{label}group-index": "0", f"{label}worker-index": str(index)}
        return owned(pod(f"work-0-{index}", place, application="", labels=labels), above)

    leader = scheduled.kubectl.create(member(0, owner))
    assert scheduled.node_of("work-0-0", place) == "first"
    uid = leader["metadata"]["uid"]
    above = {"apiVersion": "v1", "kind": "Pod", "name": "work-0-0", "uid": uid, "controller": True}
    scheduled.create(*(member(index, above) for index in (1, 2, 3)))
    text = scheduled.pending("work-0-2", "no room for its whole gang at once", place)
    assert text.startswith(f"gang of 3 pods of LeaderWorkerSet {place}/work (size is 4, and the leader")
    scheduled.make_nodes(node("second", cpu="1"))
    scheduled.running(4, place)


def test_the_driver_of_spark_starts_first_and_executors_one_by_one(scheduled: Scheduled) -> None:
    place = place_for(scheduled, "all")
    spec = {"executor": {"instances": 3}}
    owner = custom(scheduled, place, "sparkoperator.k8s.io", "SparkApplication", spec)
    scheduled.make_nodes(node("first", cpu="2"))

    def member(name: str, role: str, above: Obj) -> Obj:
        labels = {"spark-app-selector": "spark-1", "spark-role": role}
        return owned(pod(name, place, labels=labels), above)

    driver = scheduled.kubectl.create(member("pi-driver", "driver", owner))
    scheduled.node_of("pi-driver", place)
    uid = driver["metadata"]["uid"]
    above = {"apiVersion": "v1", "kind": "Pod", "name": "pi-driver", "uid": uid, "controller": True}
    scheduled.create(*(member(f"pi-exec-{number}", "executor", above) for number in range(3)))
    scheduled.running(2, place)
    [app] = scheduled.rest(f"/ws/v1/partition/default/queue/root.{place}/applications")
    assert app["applicationID"] == "spark-1"
    scheduled.make_nodes(node("second", cpu="2"))
    scheduled.running(4, place)


def test_a_gang_keeps_its_size_though_its_owner_is_gone(scheduled: Scheduled) -> None:
    place = place_for(scheduled, "RayCluster")
    spec = {"workerGroupSpecs": [{"groupName": "gpu", "replicas": 2}]}
    owner = custom(scheduled, place, "ray.io", "RayCluster", spec)
    scheduled.make_nodes(node("first", cpu="2"))
    for number, kind in enumerate(["head", "worker", "worker"]):
        labels = {"ray.io/cluster": "work", "ray.io/node-type": kind, "ray.io/group": "gpu"}
        made = pod(f"ray-{number}", place, application="", labels=labels)
        # The garbage collector deletes pods only some time after their owner: a finalizer keeps them.
        made["metadata"]["finalizers"] = ["tests.yunikorn/kept"]
        scheduled.create(owned(made, owner))
    scheduled.pending("ray-0", "no room for its whole gang at once", place)
    path = f"/apis/ray.io/v1/namespaces/{place}/rayclusters/work"
    orphans = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Orphan"}
    scheduled.kubectl.request("DELETE", path, orphans)
    scheduled.kubectl.wait(
        "Pod", lambda found: all(not one["metadata"].get("ownerReferences") for one in found), place
    )
    scheduled.make_nodes(node("second", cpu="1"))
    scheduled.running(3, place)
    for number in range(3):
        scheduled.kubectl.patch("Pod", f"ray-{number}", {"metadata": {"finalizers": None}}, place)


FAULTY = '''
"""A reader of Jobs in place of the default one, with a defect."""

from yunikorn.api import hookimpl
from yunikorn_kubernetes.workloads.job_readers import JobReader


class FaultyJob(JobReader):
    """Job, read wrongly."""

    def gang(self, owner, pod):
        raise ValueError(f"no page for {owner['metadata']['name']}")


@hookimpl
def yunikorn_workload_readers():
    return [FaultyJob]
'''
PROJECT = """
[build-system]
requires = ["setuptools>=68"]
build-backend = "setuptools.build_meta"

[project]
name = "faulty-jobs"
version = "1.2"

[project.entry-points.yunikorn]
faulty-jobs = "faulty_jobs"

[tool.setuptools]
py-modules = ["faulty_jobs"]
"""


def test_a_reader_of_a_package_replaces_a_default_one_only_by_name_and_fails_alone(
    cluster: Cluster, tmp_path: Path, install_packages: Callable[..., Path]
) -> None:
    source = tmp_path / "faulty-jobs"
    source.mkdir()
    (source / "pyproject.toml").write_text(PROJECT, "utf-8")
    (source / "faulty_jobs.py").write_text(FAULTY, "utf-8")
    package = install_packages(source)
    # The Job controller makes a PodGroup, which would go before any reader.
    settings = {"service.workloadKinds": "all, -PodGroup"}
    with scheduling(cluster, tmp_path, installed=package, settings=settings) as scheduled:
        scheduled.make_nodes(node("small", cpu="2"))
        scheduled.create(indexed("train", "default", 3))
        waiting = next(iter(scheduled.wait_pods(lambda pods: len(pods) == 3)))
        assert scheduled.pending(waiting, "no room").startswith("gang of 3 pods of Job")
        change = {"data": {"service.workloadKinds": "all, -PodGroup, Job@faulty-jobs"}}
        scheduled.kubectl.patch("ConfigMap", CONFIGS, change, NAMESPACE)
        scheduled.scheduler.wait_for("needs a restart")
    with scheduling(cluster, tmp_path, installed=package) as scheduled:
        # Each pod starts by itself.
        scheduled.running(2)
        scheduled.scheduler.wait_for(
            "plugin Job of faulty-jobs (faulty-jobs 1.2): calling gang: ValueError: no page for train"
        )


def test_a_setting_with_an_unknown_reader_ends_the_scheduler(cluster: Cluster, tmp_path: Path) -> None:
    settings = {"service.workloadKinds": "Jbo"}
    ended = pytest.raises(AssertionError, match=r"service\.workloadKinds: no workload reader is called 'Jbo'")
    with ended, scheduling(cluster, tmp_path, settings=settings):
        pass
