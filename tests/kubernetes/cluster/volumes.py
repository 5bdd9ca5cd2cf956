"""Volumes of tests: builders, and a provisioner that makes volumes as a CSI driver's sidecar does."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Container
from types import TracebackType

from tests.kubernetes.cluster.kubectl import ApiFault, Kubectl, Obj

DRIVER = "disks.tests.yunikorn"
"""Provisioner and CSI driver of classes and volumes made here."""
SELECTED = "volume.kubernetes.io/selected-node"
"""Annotation of a claim: the node that the scheduler has chosen for its first consumer."""
_PROVISIONER = "volume.kubernetes.io/storage-provisioner"


def storage_class(name: str, *, late: bool = True, provisioner: str = DRIVER, **fields: object) -> Obj:
    """Return a StorageClass; a `late` one waits for the first consumer. `fields` are further fields."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer" if late else "Immediate",
        **fields,
    }


def claim(
    name: str,
    storage_class: str,
    namespace: str = "default",
    *,
    size: str = "1Gi",
    mode: str = "ReadWriteOnce",
    **fields: object,
) -> Obj:
    """Return a PersistentVolumeClaim; `fields` are further fields of its spec."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "accessModes": [mode],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": size}},
            **fields,
        },
    }


def local_volume(name: str, storage_class: str, node: str, *, size: str = "1Gi") -> Obj:
    """Return a PersistentVolume on the disk of a node."""
    source = {"local": {"path": f"/disks/{name}"}}
    return _volume(name, storage_class, size, ["ReadWriteOnce"], node, source)


def with_claims(*names: str) -> list[Obj]:
    """Return the field `volumes` of a pod that uses claims."""
    return [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]


def _volume(name: str, storage_class: str, size: str, modes: list[str], node: str, source: Obj) -> Obj:
    spec: Obj = {
        "capacity": {"storage": size},
        "accessModes": modes,
        "storageClassName": storage_class,
        "persistentVolumeReclaimPolicy": "Delete" if "csi" in source else "Retain",
        **source,
    }
    if node:
        on_node = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [on_node]}]}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


class Provisioner:
    """Makes the volumes of claims that ask `DRIVER` for one; a context manager that runs it in a thread.

    The controller manager asks by an annotation of the claim: at once, or after a scheduler has selected a
    node. A volume is reachable from the selected node only. On nodes that are `full`, no volume is made, and
    the claim is given back to the scheduler by removing its node.
    """

    def __init__(self, kubectl: Kubectl, *, full: Container[str] = ()) -> None:
        """Create it for a cluster."""
        self._kubectl = kubectl
        self._full = full
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="provisioner", daemon=True)

    def __enter__(self) -> Provisioner:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                for wanted in self._kubectl.list("PersistentVolumeClaim"):
                    self._provide(wanted)
            except (OSError, http.client.HTTPException, ApiFault):
                pass  # Tests restart the API server and delete claims; the next look finds what is left.
            self._ended.wait(0.05)

    def _provide(self, wanted: Obj) -> None:
        meta, spec = wanted["metadata"], wanted["spec"]
        annotations = meta.get("annotations") or {}
        if spec.get("volumeName") or annotations.get(_PROVISIONER) != DRIVER or "deletionTimestamp" in meta:
            return
        node = annotations.get(SELECTED, "")
        if node and node in self._full:
            change = {
                "metadata": {"annotations": {SELECTED: None}, "resourceVersion": meta["resourceVersion"]}
            }
            self._kubectl.patch("PersistentVolumeClaim", meta["name"], change, meta["namespace"])
            return
        name = f"pvc-{meta['uid']}"
        if self._kubectl.find("PersistentVolume", name) is not None:
            return  # The controller manager has yet to bind it.
        size, modes = spec["resources"]["requests"]["storage"], spec["accessModes"]
        source = {"csi": {"driver": DRIVER, "volumeHandle": name}}
        made = _volume(name, spec["storageClassName"], size, modes, node, source)
        made["metadata"]["annotations"] = {"pv.kubernetes.io/provisioned-by": DRIVER}
        made["spec"]["claimRef"] = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            **{key: meta[key] for key in ("namespace", "name", "uid")},
        }
        self._kubectl.create(made)
