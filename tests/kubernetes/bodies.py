"""Objects of the Kubernetes API for tests, from bodies as a user writes them."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from yunikorn_kubernetes.objects import ApiStruct, Namespace, Node, Pod

T = TypeVar("T", bound=ApiStruct)
UID = "0a1b2c3d-0000-4000-8000-000000000001"
CREATED = "2026-01-02T03:04:05Z"
CREATED_SECOND = "1767323045"


def read(struct: type[T], body: dict[str, Any]) -> T:
    """Return an object, decoded from the JSON of its body."""
    return msgspec.json.decode(msgspec.json.encode(body), type=struct)


def pod_of(
    *,
    name: str = "web-1",
    namespace: str = "shop",
    uid: str = UID,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    owners: list[dict[str, Any]] | None = None,
    status: dict[str, Any] | None = None,
    deleted: str | None = None,
    **spec: Any,
) -> Pod:
    """Return a pod for this scheduler; further arguments are fields of its specification."""
    meta = {
        "name": name,
        "namespace": namespace,
        "uid": uid,
        "creationTimestamp": CREATED,
        "deletionTimestamp": deleted,
        "labels": labels or {},
        "annotations": annotations or {},
        "ownerReferences": owners or [],
    }
    whole = {"schedulerName": "yunikorn", "containers": [{"name": "web"}], **spec}
    return read(Pod, {"metadata": meta, "spec": whole, "status": status or {}})


def container(name: str = "web", **requests: str) -> dict[str, Any]:
    """Return a container; use `gpu` for `nvidia.com/gpu`."""
    named = {{"gpu": "nvidia.com/gpu"}.get(key, key): value for key, value in requests.items()}
    return {"name": name, "resources": {"requests": named}}


def node_of(name: str = "node-1", labels: dict[str, str] | None = None, **fields: Any) -> Node:
    """Return a node; further arguments are `spec` and `status`."""
    return read(Node, {"metadata": {"name": name, "labels": labels or {}}, **fields})


def namespace_of(
    annotations: dict[str, str] | None = None, labels: dict[str, str] | None = None
) -> Namespace:
    """Return the namespace `shop`."""
    meta = {"name": "shop", "annotations": annotations or {}, "labels": labels or {}}
    return read(Namespace, {"metadata": meta})
