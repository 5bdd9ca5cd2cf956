"""Leader election with and without rights to leases, in a deployment with the least rights."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kubernetes.cluster import Cluster, Kubectl
from tests.kubernetes.cluster.kubectl import Obj
from tests.kubernetes.cluster.objects import node, pod
from tests.kubernetes.deployment import NAMESPACE, apply, kubeconfig_of, manifests
from tests.kubernetes.scheduler_process import SchedulerProcess

ACCOUNT = "yunikorn-admin"


def without_leases(one: Obj) -> Obj:
    """Return a role as in deployments made for Apache YuniKorn, without rules for leases."""
    rules = [rule for rule in one["rules"] if rule["resources"] != ["leases"]] if "rules" in one else None
    return one if rules is None else {**one, "rules": rules}


@pytest.fixture
def deployed(kubectl: Kubectl) -> Kubectl:
    """A cluster with the accounts of the deployment, and its roles but for leases."""
    apply(kubectl, [without_leases(one) for one in manifests() if one["kind"] not in ("Deployment", "Pod")])
    return kubectl


def scheduler(cluster: Cluster, folder: Path, *election: str) -> SchedulerProcess:
    """Start a scheduler with the rights of the deployment."""
    kubeconfig = kubeconfig_of(cluster, ACCOUNT, folder)
    return SchedulerProcess(
        cluster, "--kubeconfig", str(kubeconfig), "--namespace", NAMESPACE, *election, leader_election=None
    )


def test_without_rights_to_leases_one_process_schedules_with_a_warning(
    cluster: Cluster, deployed: Kubectl, tmp_path: Path
) -> None:
    deployed.create(node("node-1"))
    with scheduler(cluster, tmp_path) as running:
        running.wait_until_at_work()
        assert (
            "no leader election: the API server refuses the lease yunikorn/yunikorn-scheduler" in running.log
        )
        deployed.create(pod("one"))
        deployed.wait_for("Pod", "one", lambda found: found["spec"].get("nodeName"))
        assert running.stop() == 0


def test_a_demanded_election_fails_without_the_rights_and_all_that_are_missing_are_named(
    cluster: Cluster, deployed: Kubectl, tmp_path: Path
) -> None:
    role = deployed.get("ClusterRole", "yunikorn-scheduler")
    dropped = (["pods/binding"], ["nodes", "namespaces"])
    rules = [rule for rule in role["rules"] if rule["resources"] not in dropped]
    deployed.patch("ClusterRole", "yunikorn-scheduler", {"rules": rules})
    with scheduler(cluster, tmp_path, "--leader-election") as running:
        assert running.wait() == 2
        assert 'cannot get resource "leases"' in running.log
        assert 'cannot create resource "pods/binding"' in running.log
        assert 'cannot list resource "nodes"' in running.log
        assert "deploy/kubernetes/scheduler-access.yaml" in running.log
