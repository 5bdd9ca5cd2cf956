"""Storage objects and pods for tests, written like manifests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from yunikorn_kubernetes.objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
    VolumeAttachment,
)

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
WAIT = "WaitForFirstConsumer"
ONCE, MANY = "ReadWriteOnce", "ReadWriteMany"
Manifest = dict[str, Any]


def on_label(key: str, *values: str) -> Manifest:
    """Node affinity for the values of a label."""
    expression = {"key": key, "operator": "In", "values": list(values)}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


def volume(
    name: str,
    size: str = "10Gi",
    *,
    host: str = "",
    storage_class: str = "local",
    modes: Sequence[str] = (ONCE,),
    phase: str = "Available",
    claim: str = "",
    labels: Mapping[str, str] | None = None,
    version: int = 1,
    **spec: Any,
) -> PersistentVolume:
    """A persistent volume; `claim` is the NAMESPACE/NAME or NAMESPACE/NAME/UID that it refers to."""
    spec = {
        "capacity": {"storage": size},
        "accessModes": list(modes),
        "storageClassName": storage_class,
    } | spec
    if host:
        spec["nodeAffinity"] = on_label(HOST, host)
    if claim:
        namespace, _, rest = claim.partition("/")
        claim_name, _, uid = rest.partition("/")
        spec["claimRef"] = {"namespace": namespace, "name": claim_name, "uid": uid}
    meta = {"name": name, "labels": labels or {}, "resourceVersion": str(version), "uid": f"uid-{name}"}
    return msgspec.convert({"metadata": meta, "spec": spec, "status": {"phase": phase}}, PersistentVolume)


def claim(
    name: str,
    size: str = "5Gi",
    *,
    storage_class: str | None = "local",
    bound: str = "",
    modes: Sequence[str] = (ONCE,),
    annotations: Mapping[str, str] | None = None,
    owner: str = "",
    phase: str = "",
    version: int = 1,
    deleting: bool = False,
    **spec: Any,
) -> PersistentVolumeClaim:
    """A claim in the namespace `lab`; `bound` is the volume to which its binding is complete."""
    spec = {"resources": {"requests": {"storage": size}}, "accessModes": list(modes)} | spec
    marks = dict(annotations or {})
    if storage_class is not None:
        spec["storageClassName"] = storage_class
    if bound:
        spec["volumeName"] = bound
        marks["pv.kubernetes.io/bind-completed"] = "yes"
    meta: Manifest = {
        "name": name,
        "namespace": "lab",
        "uid": f"uid-{name}",
        "annotations": marks,
        "resourceVersion": str(version),
    }
    if owner:
        meta["ownerReferences"] = [{"kind": "Pod", "name": owner, "uid": owner, "controller": True}]
    if deleting:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    status = {"phase": phase or ("Bound" if bound else "Pending")}
    return msgspec.convert({"metadata": meta, "spec": spec, "status": status}, PersistentVolumeClaim)


def storage_class(
    name: str = "local", provisioner: str = "", *, mode: str = WAIT, **more: Any
) -> StorageClass:
    """A storage class; without a provisioner it makes no volumes."""
    given = {
        "metadata": {"name": name},
        "provisioner": provisioner or "kubernetes.io/no-provisioner",
        "volumeBindingMode": mode,
    }
    return msgspec.convert(given | more, StorageClass)


def pod(name: str, *claims: str, ephemeral: Sequence[str] = (), volumes: Sequence[Manifest] = ()) -> Pod:
    """A pod of the namespace `lab` with claims, ephemeral volumes and others; its uid is its name."""
    found: list[Manifest] = [
        {"name": f"v{number}", "persistentVolumeClaim": {"claimName": one}}
        for number, one in enumerate(claims)
    ]
    found += [{"name": one, "ephemeral": {"volumeClaimTemplate": {}}} for one in ephemeral]
    found += [{"name": f"i{number}"} | one for number, one in enumerate(volumes)]
    given = {"metadata": {"name": name, "namespace": "lab", "uid": name}, "spec": {"volumes": found}}
    return msgspec.convert(given, Pod)


def host(name: str, **labels: str) -> Node:
    """A node whose host name is its name; `zone` is the zone."""
    found = {HOST: name} | {ZONE if key == "zone" else key: value for key, value in labels.items()}
    return msgspec.convert({"metadata": {"name": name, "labels": found}}, Node)


def csi_node(name: str, *, migrated: str = "", **limits: int | None) -> CSINode:
    """The drivers of a node with their limits, None for one without; `_` in a name is a dot."""
    marks = {"storage.alpha.kubernetes.io/migrated-plugins": migrated} if migrated else {}
    drivers = [
        {"name": driver.replace("_", "."), "nodeID": name, "allocatable": {"count": count}}
        for driver, count in limits.items()
    ]
    return msgspec.convert(
        {"metadata": {"name": name, "annotations": marks}, "spec": {"drivers": drivers}}, CSINode
    )


def driver(name: str, *, capacity: bool = False) -> CSIDriver:
    """A CSI driver, with or without storage capacities."""
    return msgspec.convert({"metadata": {"name": name}, "spec": {"storageCapacity": capacity}}, CSIDriver)


def capacity(name: str, size: str, *, storage_class: str = "fast", largest: str = "", **labels: str) -> Any:
    """The capacity of a storage class on the nodes with some labels; without labels on no node."""
    given: Manifest = {
        "metadata": {"name": name, "namespace": "kube-system"},
        "storageClassName": storage_class,
        "capacity": size,
    }
    if largest:
        given["maximumVolumeSize"] = largest
    if labels:
        found = {{"host": HOST, "zone": ZONE}.get(key, key): value for key, value in labels.items()}
        given["nodeTopology"] = {"matchLabels": found}
    return msgspec.convert(given, CSIStorageCapacity)


def attachment(name: str, node: str, volume: str, attacher: str = "disk.csi") -> VolumeAttachment:
    """The attachment of a volume to a node."""
    spec = {"attacher": attacher, "nodeName": node, "source": {"persistentVolumeName": volume}}
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, VolumeAttachment)
