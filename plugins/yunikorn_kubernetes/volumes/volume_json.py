"""JSON of volumes in tags and node attributes; the predicates read it (`predicates/volume_tags.py`)."""

from __future__ import annotations

import json
from typing import Any

from yunikorn.errors import QuantityError
from yunikorn_kubernetes.objects import Json, PersistentVolume, PersistentVolumeClaim
from yunikorn_kubernetes.translation import kubernetes_quantities
from yunikorn_kubernetes.volumes.migration import node_affinity

STORAGE = "storage"
CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
"""Annotation of volumes and claims that overrides the field with the storage class."""
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
"""Annotation of a claim whose binding is complete."""
SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""Annotation of a claim: node for which the provisioner makes the volume."""
AVAILABLE = "Available"
FILESYSTEM = "Filesystem"


def compact(value: Any) -> str:
    """Return compact JSON with sorted keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def class_of_claim(claim: PersistentVolumeClaim) -> str:
    """Return the storage class of a claim; empty for none."""
    return claim.metadata.annotations.get(CLASS_ANNOTATION, claim.spec.storage_class_name or "")


def class_of_volume(volume: PersistentVolume) -> str:
    """Return the storage class of a volume; empty for none."""
    return volume.metadata.annotations.get(CLASS_ANNOTATION, volume.spec.storage_class_name)


def size_of_claim(claim: PersistentVolumeClaim) -> int:
    """Return the requested bytes. Raises `QuantityError`."""
    requests = claim.spec.resources.requests if claim.spec.resources is not None else {}
    return kubernetes_quantities.parse(requests.get(STORAGE, "0"))


def size_of_volume(volume: PersistentVolume) -> int:
    """Return the capacity in bytes. Raises `QuantityError`."""
    return kubernetes_quantities.parse(volume.spec.capacity.get(STORAGE, "0"))


def is_bound(claim: PersistentVolumeClaim) -> bool:
    """Return True if the binding of a claim is complete."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def names_claim(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Return True if a volume is bound to a claim, or reserved for the claim by its name."""
    ref, meta = volume.spec.claim_ref, claim.metadata
    return (
        ref is not None
        and ref.namespace == meta.namespace
        and ref.name == meta.name
        and ref.uid in ("", meta.uid)
    )


def suits_bound(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    """Return True if a claim can use the volume that is bound to it. Raises `QuantityError`."""
    return (
        class_of_volume(volume) == class_of_claim(claim)
        and size_of_volume(volume) >= size_of_claim(claim)
        and volume.spec.volume_mode == claim.spec.volume_mode
        and (volume.spec.volume_attributes_class_name or "")
        == (claim.spec.volume_attributes_class_name or "")
        and volume.metadata.deletion_timestamp is None
    )


def free_volume(volume: PersistentVolume) -> Json | None:
    """Return the description of a free volume; None if claims cannot get it or its capacity is unreadable."""
    spec = volume.spec
    if volume.status.phase != AVAILABLE or spec.claim_ref is not None:
        return None
    if volume.metadata.deletion_timestamp is not None:
        return None
    try:
        size = size_of_volume(volume)
    except QuantityError:
        return None
    found: Json = {"name": volume.metadata.name, "size": size, "modes": sorted(set(spec.access_modes))}
    terms = node_affinity(volume)
    if terms is not None:
        found["terms"] = terms
    if spec.volume_mode != FILESYSTEM:
        found["volumeMode"] = spec.volume_mode
    if spec.volume_attributes_class_name:
        found["attributesClass"] = spec.volume_attributes_class_name
    if volume.metadata.labels:
        found["labels"] = volume.metadata.labels
    return found
