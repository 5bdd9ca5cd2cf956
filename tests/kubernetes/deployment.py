"""The manifests of `deploy/kubernetes`, for tests: read, applied, and used with the rights that they give."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import yaml

from tests.kubernetes.cluster import Cluster, Kubectl
from tests.kubernetes.cluster.kubectl import ApiFault, Obj

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


def kubeconfig_of(cluster: Cluster, account: str, folder: Path) -> Path:
    """Return a new kubeconfig with the rights of a service account of the deployment."""
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
