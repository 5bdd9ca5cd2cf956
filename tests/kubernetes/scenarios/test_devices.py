"""Pods with claims to devices of a driver, in a real cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes.cluster import Cluster, Obj
from tests.kubernetes.cluster.objects import container, job, node, node_of, nodes, phase, pod
from tests.kubernetes.devices.objects import alternative, wanted
from tests.kubernetes.scenarios.fake_driver import (
    FINALIZER,
    GPU,
    check_devices,
    claiming,
    given,
    gpu_class,
    gpus,
    named_claim,
    partitioned,
    template,
    until_free,
)
from tests.kubernetes.scheduling import QUEUES, Scheduled, scheduling

MANY = 300
"""Pods of a group with one claim: more than could be named as users of the claim one by one."""
LIMITED = QUEUES.replace('"*"}', '"*", queues: [{name: gpus, resources: {max: {deviceclass/gpu: 10}}}]}')


def test_no_device_is_given_twice(scheduled: Scheduled) -> None:
    scheduled.make_nodes(*nodes(5, cpu="16"))
    scheduled.create(gpu_class(), *(gpus(f"node-{number}", 8) for number in range(5)))
    scheduled.create(*(template(f"t{count}", count=count) for count in range(1, 5)))
    scheduled.create(*(claiming(f"p{number}", f"t{number % 4 + 1}") for number in range(20)))
    # 50 devices are asked for, and there are 40: some pods wait.
    scheduled.wait_pods(lambda pods: sum(map(bool, map(node_of, pods))) >= 14)
    check_devices(scheduled.kubectl, scheduled.kubectl.list("Pod", "default"))
    placed = [one["metadata"]["name"] for one in scheduled.kubectl.list("Pod", "default") if node_of(one)]
    for name in placed:
        scheduled.kubectl.delete("Pod", name)
    scheduled.bound(20 - len(placed))
    check_devices(scheduled.kubectl, scheduled.kubectl.list("Pod", "default"))
    scheduled.kubectl.delete_all("Pod", "default", grace=0)
    until_free(scheduled.kubectl)


def test_devices_count_in_the_quota_of_a_queue(scheduled: Scheduled) -> None:
    scheduled.make_nodes(*nodes(2, cpu="16"))
    with scheduled.queues(LIMITED):
        scheduled.create(gpu_class(), gpus("node-0", 8), gpus("node-1", 8), template("two", count=2))
        scheduled.create(
            *(claiming(f"p{number}", "two", application="gpus", queue="root.gpus") for number in range(8))
        )
        scheduled.running(5)
        scheduled.until(
            "/ws/v1/partition/default/queue/root.gpus",
            lambda queue: queue.get("allocatedResource", {}).get("deviceclass/gpu") == 10,
        )
        [name] = [*scheduled.running(5)][:1]
        scheduled.kubectl.delete("Pod", name)
        scheduled.running(5)
        scheduled.kubectl.delete_all("Pod", "default", grace=0)


def pod_group(count: int, **spec: Any) -> Obj:
    """Return a PodGroup of which this many pods start together."""
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "gang", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": count}}, **spec},
    }


def gang(count: int) -> list[Obj]:
    """Return a PodGroup with a claim, and its pods in another order than that of their names."""
    group = pod_group(count, resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "t"}])
    named = {"podGroupName": "gang"}
    numbers = sorted(range(count), key=lambda number: number * 7 % count)
    return [group, *(claiming(f"p{number}", "t", schedulingGroup=named) for number in numbers)]


@pytest.mark.slow
def test_a_group_has_a_claim_together(cluster: Cluster, tmp_path: Path) -> None:
    kubectl = cluster.kubectl

    def consumers() -> list[tuple[str, str]]:
        [claim] = kubectl.list("ResourceClaim", "default")
        return [(one["resource"], one["name"]) for one in claim["status"].get("reservedFor", ())]

    with scheduling(cluster, tmp_path) as first:
        first.make_nodes(*nodes(2, cpu="400", memory="400Gi", pods=400))
        first.create(gpu_class(), gpus("node-0", 2), template("t"), *gang(MANY))
        # The pods are not bound yet.
        kubectl.wait("ResourceClaim", lambda claims: [True] if given(kubectl) else None)
        first.scheduler.kill()
    with scheduling(cluster, tmp_path) as second:
        assert {*second.running(MANY).values()} == {"node-0"}
        assert consumers() == [("podgroups", "gang")]
        check_devices(kubectl, kubectl.list("Pod", "default"))
        second.scheduler.kill()
    with scheduling(cluster, tmp_path) as third:
        # One more pod of the group has the devices, too.
        third.create(claiming("late", "t", schedulingGroup={"podGroupName": "gang"}))
        third.running(MANY + 1)
        assert consumers() == [("podgroups", "gang")]
        kubectl.delete_all("Pod", "default", grace=0)
        kubectl.delete("PodGroup", "gang")
        until_free(kubectl)


def test_a_named_claim_is_shared(scheduled: Scheduled) -> None:
    scheduled.make_nodes(*nodes(2, cpu="16"))
    scheduled.create(gpu_class(), gpus("node-1", 1), named_claim("c"))
    scheduled.create(*(claiming(f"p{number}", claim="c") for number in range(4)))
    assert {*scheduled.running(4).values()} == {"node-1"}
    claim = scheduled.kubectl.get("ResourceClaim", "c")
    assert {one["name"] for one in claim["status"]["reservedFor"]} == {f"p{number}" for number in range(4)}
    scheduled.kubectl.delete_all("Pod", "default", grace=0)
    until_free(scheduled.kubectl)


def test_a_gang_that_prefers_whole_devices_gets_the_halves_of_one(scheduled: Scheduled) -> None:
    """kube-scheduler 1.36 gives the first pod the whole device, and the gang waits."""
    scheduled.make_nodes(node("only", cpu="16"))
    scheduled.create(gpu_class(), *partitioned("only"))
    size = 'device.attributes["gpu.example.com"].size == "{}"'
    choice = [alternative(name, size.format(name)) for name in ("whole", "half")]
    scheduled.create(template("t", {"name": "gpu", "firstAvailable": choice}), pod_group(2))
    named = {"podGroupName": "gang"}
    scheduled.create(claiming("p0", "t", schedulingGroup=named), claiming("p1", "t", schedulingGroup=named))
    scheduled.running(2)
    devices = [one for each in given(scheduled.kubectl).values() for one in each]
    assert sorted(devices) == ["only/half-0", "only/half-1"]
    scheduled.kubectl.delete_all("Pod", "default", grace=0)
    scheduled.kubectl.delete("PodGroup", "gang")
    until_free(scheduled.kubectl)
    # A single pod gets what it prefers.
    scheduled.create(claiming("alone", "t"))
    scheduled.running(1)
    assert [*given(scheduled.kubectl).values()] == [["only/whole"]]


def test_extended_resources_are_served_by_plugins_and_by_devices(scheduled: Scheduled) -> None:
    scheduled.create(gpu_class(extendedResourceName=GPU))
    scheduled.make_nodes(node("plugged", cpu="16", resources={GPU: "4"}), node("devices", cpu="16"))
    scheduled.create(gpus("devices", 4))

    def asking(name: str) -> Obj:
        return pod(name, containers=[container(cpu="1", requests={GPU: "2"})])

    scheduled.create(*(asking(f"p{number}") for number in range(4)))
    placed = scheduled.running(4)
    assert sorted(placed.values()) == ["devices", "devices", "plugged", "plugged"]
    scheduled.create(asking("late"))
    scheduled.pending("late")
    assert sorted(one for devices in given(scheduled.kubectl).values() for one in devices) == [
        f"devices/gpu-{number}" for number in range(4)
    ]
    queue = scheduled.rest("/ws/v1/partition/default/queue/root.default")
    assert queue["allocatedResource"][GPU] == 8
    named = {
        one["status"]["extendedResourceClaimStatus"]["resourceClaimName"]
        for one in scheduled.kubectl.list("Pod", "default")
        if node_of(one) == "devices"
    }
    assert named == {*given(scheduled.kubectl)}
    [first, *_] = [name for name, where in placed.items() if where == "devices"]
    scheduled.kubectl.delete("Pod", first)
    assert scheduled.node_of("late") == "devices"


def test_a_tainted_device_is_avoided(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only", cpu="16"))
    scheduled.create(gpu_class(), gpus("only", 2), template("t"))
    work = job("work", pods=1, application="app", job_fields={"backoffLimit": 6})
    spec = work["spec"]["template"]["spec"]
    spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "t"}]
    scheduled.create(work)
    [first] = scheduled.running(1)
    assert [*given(scheduled.kubectl).values()] == [["only/gpu-0"]]
    made = scheduled.kubectl.get("ResourceSlice", "only-gpus")
    made["spec"]["devices"][0]["taints"] = [{"key": "broken", "effect": "NoExecute"}]
    made["spec"]["pool"]["generation"] = 2
    scheduled.kubectl.replace(made)

    def replaced(pods: list[Obj]) -> bool:
        running = [one["metadata"]["name"] for one in pods if phase(one) == "Running"]
        return len(running) == 1 and running != [first]

    scheduled.wait_pods(replaced)
    scheduled.kubectl.wait(
        "ResourceClaim",
        lambda _: [True] if [*given(scheduled.kubectl).values()] == [["only/gpu-1"]] else None,
    )


def test_a_rule_taints_devices(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only", cpu="16"))
    scheduled.create(gpu_class(), gpus("only", 2), template("t"), claiming("first", "t"))
    scheduled.running(1)
    taint = {"key": "broken", "effect": "NoExecute"}
    spec = {"deviceSelector": {"driver": "gpu.example.com", "device": "gpu-0"}, "taint": taint}
    rule = {"apiVersion": "resource.k8s.io/v1beta2", "kind": "DeviceTaintRule", "metadata": {"name": "rule"}}
    scheduled.create({**rule, "spec": spec})
    # The controller manager ends the pod that has the device.
    scheduled.kubectl.wait_gone("Pod", "first")
    scheduled.create(claiming("second", "t"))
    assert scheduled.node_of("second") == "only"
    assert [*given(scheduled.kubectl).values()] == [["only/gpu-1"]]
    scheduled.create(claiming("third", "t"))
    scheduled.pending("third")
    scheduled.kubectl.delete("DeviceTaintRule", "rule")
    assert scheduled.node_of("third") == "only"


def test_a_pod_waits_for_a_device_that_another_has(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only", cpu="16"))
    scheduled.create(gpu_class(), gpus("only", 1), template("t"), claiming("first", "t"))
    scheduled.running(1)
    scheduled.create(claiming("second", "t"))
    scheduled.pending("second")
    scheduled.kubectl.delete("Pod", "first")
    assert scheduled.node_of("second") == "only"


def test_a_scheduler_that_is_killed_between_writes_leaves_no_device_behind(
    cluster: Cluster, tmp_path: Path
) -> None:
    def is_protected(claims: list[Obj]) -> list[bool]:
        return [True for one in claims if FINALIZER in one["metadata"].get("finalizers", ())]

    def has_new(claims: list[Obj]) -> list[bool] | None:
        return [True] if len([one for one in claims if one["status"].get("allocation")]) > known else None

    kubectl, known = cluster.kubectl, 0
    with scheduling(cluster, tmp_path) as first:
        first.make_nodes(*nodes(4, cpu="32"))
        first.create(gpu_class(), *(gpus(f"node-{number}", 8) for number in range(4)))
        first.create(template("t"), template("two", count=2))
        first.create(*(claiming(f"p{number}", ("t", "two")[number % 2]) for number in range(12)))
        kubectl.wait("ResourceClaim", lambda claims: is_protected(claims) or None)
        first.scheduler.kill()
    for round_ in range(3):
        before = {one["metadata"]["name"]: node_of(one) for one in kubectl.list("Pod", "default")}
        known = len(given(kubectl))
        with scheduling(cluster, tmp_path) as next_:
            number = 100 * (round_ + 1)
            next_.create(*(claiming(f"p{number + one}", ("t", "two")[one % 2]) for one in range(4)))
            kubectl.wait("ResourceClaim", has_new)
            next_.scheduler.kill()
        for one in kubectl.list("Pod", "default"):
            assert before.get(one["metadata"]["name"], "") in ("", node_of(one))
    with scheduling(cluster, tmp_path) as last:
        # 36 devices are asked for, and there are 32: 20 pods of one or two.
        pods = last.wait_pods(lambda pods: sum(map(bool, map(node_of, pods))) >= 21)
        check_devices(kubectl, pods.values())
        kubectl.delete_all("Pod", "default", grace=0)
        until_free(kubectl)


def test_pods_share_a_device_by_its_capacity(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only", cpu="16"))
    part = wanted("gpu", capacity={"requests": {"memory": "40Gi"}})
    made = gpus("only", 1, capacity={"memory": "80Gi"}, allowMultipleAllocations=True)
    scheduled.create(gpu_class(), made, template("t", part))
    scheduled.create(*(claiming(f"p{number}", "t") for number in range(3)))
    scheduled.running(2)
    claims = [one for one in scheduled.kubectl.list("ResourceClaim", "default") if one["status"]]
    results = [one["status"]["allocation"]["devices"]["results"][0] for one in claims]
    assert [one["consumedCapacity"] for one in results] == [{"memory": "40Gi"}] * 2
    assert len({one["shareID"] for one in results}) == 2


def test_a_pod_is_bound_when_its_device_is_ready(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only", cpu="16"))
    made = gpus("only", 1, bindingConditions=["Ready"], bindingFailureConditions=["Broken"])
    scheduled.create(gpu_class(), made, template("t"), claiming("p", "t"))
    [claim] = scheduled.kubectl.wait(
        "ResourceClaim", lambda found: [one for one in found if one["status"].get("allocation")]
    )
    assert not node_of(scheduled.kubectl.get("Pod", "p"))
    [result] = claim["status"]["allocation"]["devices"]["results"]
    ready = {"type": "Ready", "status": "True", "reason": "Attached", "message": ""}
    ready["lastTransitionTime"] = "2026-01-02T03:04:05Z"
    device = {key: result[key] for key in ("driver", "pool", "device")} | {"conditions": [ready]}
    name = claim["metadata"]["name"]
    scheduled.kubectl.patch(
        "ResourceClaim", name, {"status": {"devices": [device]}}, "default", subresource="status"
    )
    assert scheduled.node_of("p") == "only"
