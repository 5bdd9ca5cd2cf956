"""A cluster that kube-scheduler runs: its snapshot, by rights that change nothing, and what it explains."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from tests.kubernetes.cluster import Cluster
from tests.kubernetes.cluster.kubectl import Obj
from tests.kubernetes.cluster.objects import (
    daemon_set,
    deployment,
    job,
    namespace,
    node_of,
    nodes,
    phase,
    priority_class,
)
from tests.kubernetes.deployment import NAMESPACE, apply, kubeconfig_of
from yunikorn.cli.main import main
from yunikorn.clock import ManualClock
from yunikorn.explain.explanations import Explanation
from yunikorn.framework.registry import Registry
from yunikorn_snapshots.restored_snapshot import read_header, restored_scheduler

PAGE = Path(__file__).parents[3] / "docs" / "other-clusters.md"
READER = "yunikorn-snapshot"
THEIRS = "default-scheduler"


def role() -> list[Obj]:
    """Return the role that the page shows, and its binding to the account."""
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    (text,) = [block for block in blocks if "kind: ClusterRole" in block]
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": READER},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": READER},
        "subjects": [{"kind": "ServiceAccount", "name": READER, "namespace": NAMESPACE}],
    }
    return [yaml.safe_load(text), binding]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Call the command line; return its status and what it printed."""
    status = main([*arguments])
    out, err = capsys.readouterr()
    return status, out, err


def test_snapshot_of_a_cluster_of_kube_scheduler(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kubectl = cluster.kubectl
    hard = {"requests.cpu": "10", "requests.memory": "64Gi"}
    quota: Obj = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "all", "namespace": "batch"},
        "spec": {"hard": hard},
    }
    spaces = [namespace(name) for name in ("batch", "web", NAMESPACE)]
    kubectl.create_all([*nodes(3, cpu="4"), *spaces, priority_class("high", 500)])
    kubectl.create(daemon_set("proxy", scheduler=THEIRS, cpu="500m"))
    cluster.start_scheduler()
    kubectl.wait("Pod", lambda pods: sum(phase(pod) == "Running" for pod in pods) == 3)
    kubectl.create_all(
        [
            quota,
            deployment("shop", "web", replicas=2, scheduler=THEIRS, cpu="1", priorityClassName="high"),
            job("import", "batch", pods=9, scheduler=THEIRS, cpu="1"),
        ]
    )

    def is_settled(pods: list[Obj]) -> bool:
        # Each node has room for three pods beside its daemon; the Job has nine, the shop two.
        running = [pod for pod in pods if phase(pod) == "Running"]
        return len(pods) == 14 and len(running) == 12

    kubectl.wait("Pod", is_settled)
    pods = kubectl.list("Pod")
    apply(kubectl, [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": READER}}])
    # Without a role, all rights that are missing are named.
    file = tmp_path / "snapshot"
    poor = kubeconfig_of(cluster, READER, tmp_path)
    status, _, err = run(capsys, "snapshot", "--kubeconfig", str(poor), "-o", str(file))
    assert status == 2
    for plural in ("pods", "nodes", "namespaces", "priorityclasses", "resourcequotas", "csinodes"):
        assert f'cannot list resource "{plural}"' in err
    apply(kubectl, role())
    reader = kubeconfig_of(cluster, READER, tmp_path)
    status, out, err = run(capsys, "snapshot", "--kubeconfig", str(reader), "-o", str(file), "--json")
    assert status == 0, err
    sizes = json.loads(out)["sizes"]
    assert (sizes["nodes"], sizes["allocations"], sizes["pending"]) == (3, 9, 2)

    registry = Registry.load(third_party=False)
    scheduler = restored_scheduler(file, registry, ManualClock(read_header(file).time))
    (at,) = scheduler.partitions("kubernetes")
    where = {
        one.key: one.node.id for app in at.partition.applications.values() for one in app.allocations.values()
    }
    owned = [pod for pod in pods if pod["metadata"]["ownerReferences"][0]["kind"] != "DaemonSet"]
    assert where == {pod["metadata"]["uid"]: node_of(pod) for pod in owned if node_of(pod)}
    assert {name for name, app in at.partition.applications.items() if app.queue is not None} == {
        "web.deployment.shop",
        "batch.job.import",
    }
    explained: dict[str, Explanation] = {}
    for name in at.partition.applications:
        explained |= scheduler.explain("kubernetes", "default", name)
    assert {*explained} == {pod["metadata"]["uid"] for pod in owned if not node_of(pod)}
    assert all("no node has room" in one.reasons[0].detail for one in explained.values())
    assert scheduler.schedule() == 0
