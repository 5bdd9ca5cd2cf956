"""Tags of a pod's volumes, and the reasons why its claims keep the pod from being scheduled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from yunikorn.errors import QuantityError
from yunikorn_kubernetes.names import TAG_VOLUME_CANDIDATES, TAG_VOLUMES
from yunikorn_kubernetes.objects import (
    Json,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
    Volume,
)
from yunikorn_kubernetes.predicates.volume_zone import TOPOLOGY_LABELS
from yunikorn_kubernetes.volumes.migration import (
    NO_PROVISIONER,
    ZONE_SEPARATOR,
    CSIHandle,
    driver_of_provisioner,
    handle_of_inline,
    handle_of_volume,
    node_affinity,
    plugin_of,
    translated_affinity,
)
from yunikorn_kubernetes.volumes.stores import VolumeObjects
from yunikorn_kubernetes.volumes.volume_json import (
    FILESYSTEM,
    class_of_claim,
    compact,
    is_bound,
    size_of_claim,
    suits_bound,
)

ONCE_POD = "ReadWriteOncePod"
LOST = "Lost"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"


@attrs.frozen
class VolumeTags:
    """Tags of a pod's volumes, and problems of its claims."""

    tags: Mapping[str, str] = attrs.field(factory=dict)
    """Tags of the ask or allocation."""
    problems: tuple[str, ...] = ()
    """Reasons why the pod cannot be scheduled before its claims change."""


def claim_names(pod: Pod) -> dict[str, bool]:
    """Return the claims of a pod as `NAMESPACE/NAME`, True for those that are made for the pod alone."""
    found: dict[str, bool] = {}
    for volume in pod.spec.volumes:
        name = _claim_name(pod, volume)
        if name is not None:
            found.setdefault(f"{pod.metadata.namespace}/{name}", volume.ephemeral is not None)
    return found


def _claim_name(pod: Pod, volume: Volume) -> str | None:
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.metadata.name}-{volume.name}" if volume.ephemeral is not None else None


class ClaimReader:
    """Reads the volumes of one pod."""

    def __init__(self, pod: Pod, objects: VolumeObjects, is_shared: Callable[[str], bool]) -> None:
        """Read a pod's volumes; `is_shared` says whether several pods use a claim."""
        self._pod = pod
        self._objects = objects
        self._is_shared = is_shared
        self._found: dict[str, list[Any]] = {}
        self._problems: list[str] = []
        self.classes: dict[str, None] = {}
        """Storage classes that the result depends on."""
        self._open_classes: dict[str, None] = {}

    def read(self, candidates: Callable[[tuple[str, ...]], str]) -> VolumeTags:
        """Return tags and problems; `candidates` gives the text of free volumes of storage classes."""
        for key, is_own in claim_names(self._pod).items():
            try:
                self._read_claim(key, is_own)
            except QuantityError as error:
                self._problems.append(f"claim {key}: {error}")
        for volume in self._pod.spec.volumes:
            self._read_inline(volume)
        if self._problems:
            self._found["problems"] = self._problems
        tags = {TAG_VOLUMES: compact(self._found)} if self._found else {}
        if self._open_classes:
            text = candidates(tuple(sorted(self._open_classes)))
            if text:
                tags[TAG_VOLUME_CANDIDATES] = text
        return VolumeTags(tags, tuple(self._problems))

    def _add(self, section: str, entry: Any) -> None:
        entries = self._found.setdefault(section, [])
        if entry not in entries:
            entries.append(entry)

    # -- claims -----------------------------------------------------------------------------------------

    def _read_claim(self, key: str, is_own: bool) -> None:
        claim = self._objects.claims.get(key)
        if claim is None:
            self._problems.append(
                f"waiting for Kubernetes to make the claim {key} of an ephemeral volume"
                if is_own
                else f"claim {key} does not exist"
            )
            return
        self._check_state(key, claim, is_own)
        if not is_own and ONCE_POD in claim.spec.access_modes:
            self._add("oncePod", key)
        volume = self._objects.volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
        if not is_bound(claim):
            self._read_unbound(key, claim, volume)
        elif volume is None:
            self._count_unmade(key, claim)
            if claim.status.phase != LOST:
                self._problems.append(f"volume {claim.spec.volume_name} of claim {key} does not exist")
        else:
            self._read_volume(volume, is_own)

    def _check_state(self, key: str, claim: PersistentVolumeClaim, is_own: bool) -> None:
        if claim.status.phase == LOST:
            self._problems.append(
                f"claim {key} is lost: its volume {claim.spec.volume_name} does not exist any more"
            )
        if claim.metadata.deletion_timestamp is not None:
            self._problems.append(f"claim {key} is being deleted")
        uid = self._pod.metadata.uid
        if is_own and not any(one.controller and one.uid == uid for one in claim.metadata.owner_references):
            self._problems.append(
                f"claim {key} was not made for the pod: delete the claim, or rename the pod or its volume"
            )

    def _read_volume(self, volume: PersistentVolume, is_own: bool) -> None:
        """Read the volume of a bound claim."""
        plugin, terms = plugin_of(volume.spec), node_affinity(volume)
        translated = terms if plugin is None else translated_affinity(volume, plugin)
        if terms is not None or translated is not None:
            entry: Json = {"volume": volume.metadata.name}
            if terms is not None:
                entry["terms"] = terms
            if plugin is not None and translated != terms:
                entry |= {"plugin": plugin.name, "translated": translated}
            self._add("affinity", entry)
        if not is_own:
            for label in TOPOLOGY_LABELS:
                values = [one.strip() for one in volume.metadata.labels.get(label, "").split(ZONE_SEPARATOR)]
                if all(values):
                    self._add("zones", [label, sorted(set(values))])
        self._count(handle_of_volume(volume))

    def _read_unbound(self, key: str, claim: PersistentVolumeClaim, volume: PersistentVolume | None) -> None:
        name = class_of_claim(claim)
        if name:
            self.classes[name] = None
        storage_class = self._objects.classes.get(name)
        if volume is not None:
            self._count(handle_of_volume(volume))
        else:
            self._count_unmade(key, claim)
        if claim.spec.volume_name:
            self._problems.append(f"claim {key} is not yet bound to volume {claim.spec.volume_name}")
        elif not name:
            self._problems.append(f"claim {key} has no storage class and is not yet bound to a volume")
        elif storage_class is None:
            self._problems.append(f"storage class {name} of claim {key} does not exist")
        elif storage_class.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER:
            self._problems.append(f"claim {key} is not yet bound to a volume of storage class {name}")
        else:
            self._add("claims", self._open_claim(key, claim, storage_class))

    def _open_claim(self, key: str, claim: PersistentVolumeClaim, storage_class: StorageClass) -> Json:
        """Return the description of a claim that is bound when the pod gets its node."""
        spec, name = claim.spec, storage_class.metadata.name
        found: Json = {"claim": key, "class": name, "size": size_of_claim(claim)}
        if spec.access_modes:
            found["modes"] = sorted(set(spec.access_modes))
        if spec.volume_mode != FILESYSTEM:
            found["volumeMode"] = spec.volume_mode
        if spec.volume_attributes_class_name:
            found["attributesClass"] = spec.volume_attributes_class_name
        if spec.selector is not None:
            found["selector"] = spec.selector
        if self._is_shared(key):
            found["shared"] = True
        node = self._objects.selected_node(claim)
        volume = next((one for one in self._objects.bound_to(claim) if suits_bound(claim, one)), None)
        if node:
            found["selectedNode"] = node
        elif volume is not None:
            found["volume"] = volume.metadata.name
            if (terms := node_affinity(volume)) is not None:
                found["terms"] = terms
        else:
            self._open_classes[name] = None
        if storage_class.provisioner not in ("", NO_PROVISIONER):
            found["provisioned"] = True
            if storage_class.allowed_topologies:
                found["topologies"] = storage_class.allowed_topologies
            driver = self._objects.drivers.get(storage_class.provisioner)
            if driver is not None and driver.spec.storage_capacity:
                found["watchesCapacity"] = True
        return found

    # -- limits and inline volumes ------------------------------------------------------------------------

    def _count(self, handle: CSIHandle | None) -> None:
        if handle is not None:
            self._add("attached", [handle.driver, handle.handle])

    def _count_unmade(self, key: str, claim: PersistentVolumeClaim) -> None:
        storage_class = self._objects.classes.get(class_of_claim(claim))
        driver = "" if storage_class is None else driver_of_provisioner(storage_class.provisioner)
        if driver:
            self._add("unmade", [driver, key, self._is_shared(key)])

    def _read_inline(self, volume: Volume) -> None:
        if (gce := volume.gce_persistent_disk) is not None:
            self._add_disk("gce", gce.pd_name, gce.read_only)
        if (ebs := volume.aws_elastic_block_store) is not None:
            self._add_disk("ebs", ebs.volume_id, ebs.read_only)
        if (iscsi := volume.iscsi) is not None:
            self._add_disk("iscsi", iscsi.iqn, iscsi.read_only)
        if (rbd := volume.rbd) is not None:
            self._add_disk("rbd", f"{rbd.pool}/{rbd.image}", rbd.read_only, sorted(rbd.monitors))
        self._count(handle_of_inline(volume))

    def _add_disk(self, kind: str, name: str, read_only: bool, monitors: list[str] | None = None) -> None:
        entry: Json = {"kind": kind, "id": name}
        if read_only:
            entry["readOnly"] = True
        if monitors:
            entry["monitors"] = monitors
        self._add("disks", entry)
