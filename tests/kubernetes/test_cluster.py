"""The test cluster: its controllers and kubelets act, its parts fail and return, its reset is complete."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.kubernetes.cluster import ApiFault, Cluster, Kubectl, Obj
from tests.kubernetes.cluster.objects import (
    APPLICATION,
    SUCCEEDS_AFTER,
    config_map,
    daemon_set,
    deployment,
    job,
    namespace,
    node,
    node_is_ready,
    nodes,
    phase,
    pod,
    stateful_set,
)
from tests.kubernetes.cluster.volumes import Provisioner, claim, storage_class
from tests.kubernetes.conftest import demand

CHECKOUT = Path(__file__).parent.parent.parent


def ready_nodes(kubectl: Kubectl, count: int) -> list[Obj]:
    """Make nodes and wait until they are ready."""
    kubectl.create_all(nodes(count))
    return kubectl.wait("Node", lambda found: found if all(map(node_is_ready, found)) else None)


def test_nodes_become_ready_and_keep_their_resources(kubectl: Kubectl) -> None:
    kubectl.create(
        node("big", cpu="64", memory="1Ti", resources={"nvidia.com/gpu": "8"}, labels={"zone": "a"})
    )
    found = kubectl.wait_for("Node", "big", lambda obj: obj if node_is_ready(obj) else None)
    assert found["status"]["allocatable"] == {
        "cpu": "64",
        "memory": "1Ti",
        "nvidia.com/gpu": "8",
        "pods": "110",
    }
    assert found["metadata"]["labels"]["zone"] == "a"


def test_a_pod_bound_by_hand_runs_and_succeeds(kubectl: Kubectl) -> None:
    ready_nodes(kubectl, 1)
    made = kubectl.create(pod("first", application="app-1"))
    assert made["metadata"]["labels"] == {APPLICATION: "app-1"}
    assert phase(made) == "Pending"
    kubectl.bind(made, "node-0")
    kubectl.wait_for("Pod", "first", lambda obj: phase(obj) == "Running")
    kubectl.patch("Pod", "first", {"metadata": {"annotations": {SUCCEEDS_AFTER: "0s"}}})
    kubectl.wait_for("Pod", "first", lambda obj: phase(obj) == "Succeeded")
    with pytest.raises(ApiFault) as refused:
        kubectl.bind(made, "node-0")
    assert refused.value.status == 409


def test_a_job_makes_pods_and_completes_with_them(kubectl: Kubectl) -> None:
    ready_nodes(kubectl, 1)
    kubectl.create(job("batch", pods=3, runs="10ms", application="app-1"))
    made = kubectl.wait("Pod", lambda pods: pods if len(pods) == 3 else None)
    for one in made:
        assert one["spec"]["schedulerName"] == "yunikorn"
        assert one["metadata"]["ownerReferences"][0]["kind"] == "Job"
        kubectl.bind(one, "node-0")
    kubectl.wait_for("Job", "batch", lambda obj: obj["status"].get("succeeded") == 3)


def test_workloads_make_pods(kubectl: Kubectl) -> None:
    ready_nodes(kubectl, 2)
    kubectl.create_all(
        [deployment("web", replicas=2), stateful_set("store", replicas=2), daemon_set("agent", cpu="100m")]
    )
    kubectl.wait("Pod", lambda pods: len(pods) == 6)
    kubectl.delete("Deployment", "web")
    kubectl.wait("Pod", lambda pods: len(pods) == 4)


def test_a_deleted_pod_is_gone_when_its_kubelet_has_stopped_it(kubectl: Kubectl) -> None:
    ready_nodes(kubectl, 1)
    stops = {"tests.yunikorn/stops-after": "200ms"}
    made = kubectl.create(pod("held", annotations=stops, terminationGracePeriodSeconds=30))
    kubectl.bind(made, "node-0")
    kubectl.wait_for("Pod", "held", lambda obj: phase(obj) == "Running")
    assert "deletionTimestamp" in kubectl.delete("Pod", "held")["metadata"]
    kubectl.wait_gone("Pod", "held")


def test_resized_containers_get_their_new_resources(kubectl: Kubectl) -> None:
    ready_nodes(kubectl, 1)
    kubectl.bind(kubectl.create(pod("grows", cpu="1")), "node-0")
    kubectl.wait_for("Pod", "grows", lambda obj: phase(obj) == "Running")
    assert actual_cpu(kubectl.get("Pod", "grows")) == "1"
    larger = {"name": "main", "resources": {"requests": {"cpu": "2"}}}
    kubectl.patch("Pod", "grows", {"spec": {"containers": [larger]}}, subresource="resize", style="strategic")
    kubectl.wait_for("Pod", "grows", lambda obj: actual_cpu(obj) == "2")


def actual_cpu(obj: Obj) -> str:
    """Return the CPU that the first container of a running pod has."""
    return str(obj["status"]["containerStatuses"][0]["resources"]["requests"]["cpu"])


def test_volumes_are_provisioned_for_their_first_consumer(kubectl: Kubectl) -> None:
    kubectl.create_all([storage_class("late"), claim("data", "late")])
    with Provisioner(kubectl):
        wanted = "volume.kubernetes.io/selected-node"
        kubectl.wait_for("PersistentVolumeClaim", "data", lambda obj: phase(obj) == "Pending")
        kubectl.patch("PersistentVolumeClaim", "data", {"metadata": {"annotations": {wanted: "node-0"}}})
        bound = kubectl.wait_for(
            "PersistentVolumeClaim", "data", lambda obj: obj if phase(obj) == "Bound" else None
        )
    made = kubectl.get("PersistentVolume", bound["spec"]["volumeName"])
    [term] = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["node-0"]


def test_volumes_of_an_immediate_class_are_provisioned_at_once(kubectl: Kubectl) -> None:
    with Provisioner(kubectl):
        kubectl.create_all([storage_class("now", late=False), claim("data", "now")])
        kubectl.wait_for("PersistentVolumeClaim", "data", lambda obj: phase(obj) == "Bound")


def test_a_failed_provisioner_gives_the_node_back(kubectl: Kubectl) -> None:
    selected = "volume.kubernetes.io/selected-node"
    kubectl.create_all([storage_class("late"), claim("data", "late")])
    with Provisioner(kubectl, full=["node-0"]):
        kubectl.patch("PersistentVolumeClaim", "data", {"metadata": {"annotations": {selected: "node-0"}}})
        kubectl.wait_for(
            "PersistentVolumeClaim", "data", lambda obj: selected not in obj["metadata"]["annotations"]
        )


def test_static_volumes_are_bound_by_the_controller(kubectl: Kubectl) -> None:
    size = {"storage": "1Gi"}
    kubectl.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "disk"},
            "spec": {
                "capacity": size,
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "manual",
                "hostPath": {"path": "/disk"},
            },
        }
    )
    kubectl.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "claim"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "manual",
                "resources": {"requests": size},
            },
        }
    )
    kubectl.wait_for("PersistentVolumeClaim", "claim", lambda obj: phase(obj) == "Bound")


def test_reset_leaves_nothing_of_a_test(cluster: Cluster) -> None:
    kubectl = cluster.kubectl
    ready_nodes(kubectl, 3)
    kubectl.create(namespace("team-a"))
    kubectl.wait_for("ServiceAccount", "default", lambda obj: True, "team-a")
    kubectl.create_all([job("batch", "team-a", pods=4), deployment("web", replicas=2)])
    for one in kubectl.wait("Pod", lambda pods: pods if len(pods) == 6 else None):
        kubectl.bind(one, "node-1")
    held = pod("held")
    held["metadata"]["finalizers"] = ["tests.yunikorn/held"]
    kubectl.create_all([held, config_map("yunikorn-configs", {"queues.yaml": ""})])
    cluster.reset()
    for kind in ("Pod", "Job", "Deployment", "ReplicaSet", "Node", "Event"):
        assert kubectl.list(kind) == []
    assert kubectl.find("Namespace", "team-a") is None
    assert kubectl.find("ConfigMap", "yunikorn-configs") is None
    assert kubectl.find("ServiceAccount", "default") is not None


def test_watches_expire_after_compaction(cluster: Cluster) -> None:
    kubectl = cluster.kubectl
    old = kubectl.create(node("before"))["metadata"]["resourceVersion"]
    kubectl.create_all(nodes(3))
    revision = cluster.expire_watches()
    assert revision > int(old)
    [(event, status)] = kubectl.watch("Node", version=old, timeout=5)
    assert (event, status["code"], status["reason"]) == ("ERROR", 410, "Expired")
    assert len(kubectl.list("Node")) == 4


@pytest.mark.parametrize("kill", [False, True])
def test_the_api_server_restarts_with_its_objects(kill: bool, cluster: Cluster) -> None:
    kubectl = cluster.kubectl
    ready_nodes(kubectl, 1)
    if kill:
        cluster.kill("kube-apiserver")
    else:
        cluster.stop_api_server()
    with pytest.raises(OSError, match="refused"):
        kubectl.list("Node")
    cluster.start_api_server()
    assert [obj["metadata"]["name"] for obj in kubectl.list("Node")] == ["node-0"]
    # The controllers and kubelets find their way back, or are replaced.
    if kill:
        cluster.kill("kwok")
        cluster.start()
    kubectl.create(job("batch"))
    [made] = kubectl.wait("Pod", lambda pods: pods)
    kubectl.bind(made, "node-0")
    kubectl.wait("Pod", lambda pods: [phase(one) for one in pods] == ["Running"])


def test_waits_survive_a_restart_of_the_api_server(cluster: Cluster) -> None:
    found: list[str] = []
    waiting = threading.Thread(
        target=lambda: found.append(cluster.kubectl.wait_for("Node", "late", lambda obj: "seen"))
    )
    waiting.start()
    cluster.restart_api_server(kill=True)
    cluster.kubectl.create(node("late"))
    waiting.join(60)
    assert found == ["seen"]


def test_a_frozen_api_server_answers_later(cluster: Cluster) -> None:
    cluster.kubectl.create(node("before"))
    cluster.freeze("kube-apiserver")
    found: list[list[Obj]] = []
    asking = threading.Thread(target=lambda: found.append(cluster.kubectl.list("Node")))
    asking.start()
    asking.join(0.2)
    assert asking.is_alive()
    cluster.thaw("kube-apiserver")
    asking.join(60)
    assert len(found[0]) == 1


def test_very_many_objects_are_dropped_with_the_store(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.kubernetes.cluster.reset._MANY", 3)
    kubectl = cluster.kubectl
    ready_nodes(kubectl, 4)
    cluster.reset()
    assert kubectl.list("Node") == []
    ready_nodes(kubectl, 1)
    kubectl.create(job("batch"))
    kubectl.wait("Pod", lambda pods: len(pods) == 1)


def test_kube_scheduler_schedules_pods(cluster: Cluster) -> None:
    demand(["kube-scheduler"])
    ready_nodes(cluster.kubectl, 2)
    cluster.start_scheduler()
    cluster.kubectl.create(pod("first", scheduler="default-scheduler"))
    cluster.kubectl.wait_for("Pod", "first", lambda obj: phase(obj) == "Running")


def test_killed_parts_are_started_again_by_the_reset(cluster: Cluster) -> None:
    for part in ("kwok", "kube-controller-manager", "kube-apiserver", "etcd"):
        cluster.kill(part)
    cluster.reset()
    ready_nodes(cluster.kubectl, 1)


def test_a_process_started_by_a_thread_outlives_the_thread(cluster: Cluster) -> None:
    restart = threading.Thread(target=lambda: cluster.restart_api_server(kill=True))
    restart.start()
    restart.join()
    assert cluster.kubectl.call("GET", "/readyz") == (200, b"ok")


def test_access_is_by_role(kubectl: Kubectl) -> None:
    kubectl.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}})
    reader = kubectl.as_user(kubectl.service_account_token("reader"))
    with pytest.raises(ApiFault) as refused:
        reader.list("Node")
    assert refused.value.status == 403
    group = "rbac.authorization.k8s.io"
    kubectl.create(
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "reads-nodes"},
            "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}],
        }
    )
    kubectl.create(
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "reads-nodes"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "reads-nodes"},
            "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}],
        }
    )
    kubectl.wait("ClusterRoleBinding", lambda found: found)
    allowed = threading.Event()
    for _ in range(1200):
        if reader.call("GET", "/api/v1/nodes")[0] == 200:
            break
        allowed.wait(0.05)
    assert reader.list("Node") == []


def test_no_process_outlives_a_killed_parent(shared_cluster: Cluster, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "tests.kubernetes.cluster",
        "up",
        "--nodes",
        "1",
        "--folder",
        str(tmp_path),
    ]
    with subprocess.Popen(
        command,
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), "PYTHONDONTWRITEBYTECODE": "1"},
        text=True,
    ) as parent:
        assert parent.stdout is not None
        printed = []
        for line in parent.stdout:
            printed.append(line)
            if "Ctrl-C" in line:
                break
        assert any("KUBECONFIG=" in line for line in printed)
        children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").parent.parent
        pids = [int(pid) for task in children.iterdir() for pid in (task / "children").read_text().split()]
        assert len(pids) == 4
        os.kill(parent.pid, signal.SIGKILL)
    pause = threading.Event()
    for _ in range(1200):
        if not any(Path(f"/proc/{pid}/exe").exists() for pid in pids):
            break
        pause.wait(0.05)
    assert not [pid for pid in pids if Path(f"/proc/{pid}/exe").exists()]
