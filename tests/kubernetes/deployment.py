"""The manifests of `deploy/kubernetes`, for tests: read, applied, and used with the rights that they give."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import yaml

from tests.kubernetes.cluster import Cluster, Kubectl
from tests.kubernetes.cluster.kubectl import PATIENCE, ApiFault, Obj

DEPLOY = Path(__file__).parents[2] / "deploy"
NAMESPACE = "yunikorn"
CLUSTER_WIDE = ("Namespace", "ClusterRole", "ClusterRoleBinding")


def manifests() -> list[Obj]:
    """Return the objects of all manifests in the order of `kustomization.yaml`, with its namespace."""
    folder = DEPLOY / "kubernetes"
    listed = yaml.safe_load((folder / "kustomization.yaml").read_text("utf-8"))
    found: list[Obj] = []
    for name in listed["resources"]:
        found += [one for one in yaml.safe_load_all((folder / name).read_text("utf-8")) if one]
    for one in found:
        if one["kind"] not in CLUSTER_WIDE:
            one["metadata"]["namespace"] = listed["namespace"]
    return found


def apply(kubectl: Kubectl, objects: Sequence[Obj]) -> None:
    """Create objects; those that exist stay as they are."""
    for one in objects:
        if one["kind"] not in CLUSTER_WIDE:
            one["metadata"].setdefault("namespace", NAMESPACE)
        try:
            kubectl.create(one)
        except ApiFault as fault:
            if fault.status != 409:
                raise


def _rules_of(account: str, kubectl: Kubectl) -> list[Obj]:
    """Return the rules of all roles that an account has in its namespace."""
    bindings = kubectl.list("ClusterRoleBinding") + kubectl.list("RoleBinding", NAMESPACE)
    subject = {"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}
    roles = [one["roleRef"] for one in bindings if subject in one.get("subjects", [])]
    return [rule for one in roles for rule in kubectl.get(one["kind"], one["name"], NAMESPACE)["rules"]]


def _texts(rules: Iterable[Obj]) -> list[str]:
    """Return comparable texts of rules, without those that every account has."""
    kept = (one for one in rules if not any(name.startswith("selfsubject") for name in one["resources"]))
    return sorted(json.dumps(one, sort_keys=True) for one in kept)


def wait_for_rights(kubectl: Kubectl, account: str) -> None:
    """Wait until an account has the rights of its roles, which the API server reads with a delay."""
    user = kubectl.as_user(kubectl.service_account_token(account, NAMESPACE))
    asked = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": NAMESPACE},
    }
    wanted = _texts(_rules_of(account, kubectl))
    deadline, pause = time.monotonic() + PATIENCE, threading.Event()
    while True:
        status, answer = user.call("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", asked)
        # An account of the name of a deleted one is refused for a moment.
        found = _texts(json.loads(answer)["status"]["resourceRules"]) if status == 201 else []
        if found == wanted:
            return
        assert time.monotonic() < deadline, f"{account} has\n{found}\ninstead of\n{wanted}"
        pause.wait(0.05)


def kubeconfig_of(cluster: Cluster, account: str, folder: Path) -> Path:
    """Return a new kubeconfig with the rights of a service account of the deployment, once it has them."""
    wait_for_rights(cluster.kubectl, account)
    token = cluster.kubectl.service_account_token(account, NAMESPACE)
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "test", "cluster": {"server": cluster.url, "certificate-authority": str(cluster.ca)}}
        ],
        "users": [{"name": account, "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": account}}],
        "current-context": "test",
    }
    path = folder / f"{account}.kubeconfig"
    path.write_text(json.dumps(content), "utf-8")
    return path
