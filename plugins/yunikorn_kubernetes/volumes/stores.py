"""Storage objects of the cluster, with indexes, and what has changed since the last look.

Reservations lie on top of the objects: volumes chosen for claims, and nodes selected for claims, which have
not been written to the API server yet or have not come back. They hold for any version of the object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, TypeVar

import attrs

from yunikorn_kubernetes.api_server.api_resources import key_of
from yunikorn_kubernetes.names import LABEL_HOSTNAME
from yunikorn_kubernetes.objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    Json,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from yunikorn_kubernetes.predicates.volume_terms import only_host, read_terms
from yunikorn_kubernetes.volumes.migration import node_affinity
from yunikorn_kubernetes.volumes.volume_json import SELECTED_NODE, class_of_volume, free_volume, names_claim

VolumeObject = (
    PersistentVolume
    | PersistentVolumeClaim
    | StorageClass
    | CSINode
    | CSIDriver
    | CSIStorageCapacity
    | VolumeAttachment
)
"""Objects that volumes of pods depend on."""
K = TypeVar("K")
T = TypeVar("T")


class Index(Generic[K]):
    """Names by a key that several objects share; keeps no empty entries."""

    def __init__(self) -> None:
        self._names: dict[K, dict[str, None]] = {}

    def __getitem__(self, key: K) -> Iterable[str]:
        return self._names.get(key, ())

    def add(self, key: K, name: str) -> None:
        """Add a name."""
        self._names.setdefault(key, {})[name] = None

    def discard(self, key: K, name: str) -> None:
        """Remove a name, if there."""
        names = self._names.get(key)
        if names is not None:
            names.pop(name, None)
            if not names:
                del self._names[key]

    def count(self, key: K) -> int:
        """Return the number of names."""
        return len(self._names.get(key, ()))


@attrs.define
class Touched:
    """Keys of what may have changed."""

    claims: dict[str, None] = attrs.field(factory=dict)
    classes: dict[str, None] = attrs.field(factory=dict)
    hosts: dict[str, None] = attrs.field(factory=dict)
    nodes: dict[str, None] = attrs.field(factory=dict)
    topologies: list[Json] = attrs.field(factory=list)
    """Topologies of capacities, as label selectors."""


@attrs.frozen
class Free:
    """Free volume: its storage class, its only host (empty if it has several), and its description."""

    storage_class: str
    host: str
    description: Json


class VolumeObjects:
    """The storage objects of a cluster."""

    def __init__(self) -> None:
        self.volumes: dict[str, PersistentVolume] = {}
        self.claims: dict[str, PersistentVolumeClaim] = {}
        self.classes: dict[str, StorageClass] = {}
        self.csi_nodes: dict[str, CSINode] = {}
        self.drivers: dict[str, CSIDriver] = {}
        self.capacities: dict[str, CSIStorageCapacity] = {}
        self.attachments: dict[str, VolumeAttachment] = {}
        self.touched = Touched()
        self.attachments_of_node: Index[str] = Index()
        self._attachments_of_volume: Index[str] = Index()
        self._volumes_of_claim: Index[str] = Index()
        """Volumes by the claim that they are bound to or reserved for."""
        self._claims_of_volume: Index[str] = Index()
        """Claims by the volume that they name."""
        self._classes_of_driver: Index[str] = Index()
        self._free: dict[str, Free] = {}
        self._free_by_host: Index[str] = Index()
        self._free_by_class: Index[str] = Index()
        """Free volumes of more than one host."""
        self._capacities_by_label: Index[tuple[str, str]] = Index()
        self._other_capacities: dict[str, None] = {}
        self._reserved: dict[str, str] = {}
        """Claim by reserved volume."""
        self._reserved_for: Index[str] = Index()
        self._selected: dict[str, str] = {}
        """Selected node by claim."""

    # -- changes from the API server ------------------------------------------------------------------

    def update(self, thing: VolumeObject, *, exists: bool = True) -> None:
        """Add an object, or replace its earlier version; remove it if it does not exist any more."""
        key = key_of(thing.metadata)
        match thing:
            case PersistentVolume():
                self._set_volume(key, thing if exists else None)
            case PersistentVolumeClaim():
                self._set_claim(key, thing if exists else None)
            case StorageClass():
                self._set_class(key, thing if exists else None)
            case CSINode():
                _set(self.csi_nodes, key, thing if exists else None)
                self.touched.nodes[key] = None
            case CSIDriver():
                _set(self.drivers, key, thing if exists else None)
                for storage_class in self._classes_of_driver[key]:
                    self.touched.classes[storage_class] = None
            case CSIStorageCapacity():
                self._set_capacity(key, thing if exists else None)
            case VolumeAttachment():
                self._set_attachment(key, thing if exists else None)

    def _set_volume(self, name: str, new: PersistentVolume | None) -> None:
        old = self.volumes.pop(name, None)
        for volume, change in ((old, self._volumes_of_claim.discard), (new, self._volumes_of_claim.add)):
            if volume is not None and (claim := _referred(volume)):
                change(claim, name)
                self.touched.claims[claim] = None
        if new is not None:
            self.volumes[name] = new
        for claim in self._claims_of_volume[name]:
            self.touched.claims[claim] = None
        if name in self._reserved:
            self.touched.claims[self._reserved[name]] = None
        for attachment in self._attachments_of_volume[name]:
            self.touched.nodes[self.attachments[attachment].spec.node_name] = None
        self._refresh_free(name)

    def _refresh_free(self, name: str) -> None:
        volume, old = self.volumes.get(name), self._free.pop(name, None)
        new: Free | None = None
        if volume is not None and name not in self._reserved:
            description, storage_class = free_volume(volume), class_of_volume(volume)
            if description is not None and storage_class:
                host = only_host(read_terms(node_affinity(volume))) or ""
                new = Free(storage_class, host, description)
        if new is not None:
            self._free[name] = new
        if new == old:
            return
        for free, by_host, by_class in (
            (old, self._free_by_host.discard, self._free_by_class.discard),
            (new, self._free_by_host.add, self._free_by_class.add),
        ):
            if free is not None and free.host:
                by_host(free.host, name)
                self.touched.hosts[free.host] = None
            elif free is not None:
                by_class(free.storage_class, name)
                self.touched.classes[free.storage_class] = None

    def _set_claim(self, key: str, new: PersistentVolumeClaim | None) -> None:
        old = self.claims.pop(key, None)
        if old is not None and old.spec.volume_name:
            self._claims_of_volume.discard(old.spec.volume_name, key)
        if new is not None:
            self.claims[key] = new
            if new.spec.volume_name:
                self._claims_of_volume.add(new.spec.volume_name, key)
        self.touched.claims[key] = None

    def _set_class(self, name: str, new: StorageClass | None) -> None:
        old = self.classes.pop(name, None)
        if old is not None:
            self._classes_of_driver.discard(old.provisioner, name)
        if new is not None:
            self.classes[name] = new
            self._classes_of_driver.add(new.provisioner, name)
        self.touched.classes[name] = None

    def _set_capacity(self, key: str, new: CSIStorageCapacity | None) -> None:
        old = self.capacities.pop(key, None)
        if old is not None:
            label = _first_label(old)
            if label is None:
                self._other_capacities.pop(key, None)
            else:
                self._capacities_by_label.discard(label, key)
        if new is not None:
            self.capacities[key] = new
            label = _first_label(new)
            if label is None:
                self._other_capacities[key] = None
            else:
                self._capacities_by_label.add(label, key)
        for capacity in (old, new):
            if capacity is not None and capacity.node_topology is not None:
                self.touched.topologies.append(capacity.node_topology)

    def _set_attachment(self, name: str, new: VolumeAttachment | None) -> None:
        old = self.attachments.pop(name, None)
        if old is not None:
            self.attachments_of_node.discard(old.spec.node_name, name)
            self._attachments_of_volume.discard(_attached(old), name)
            self.touched.nodes[old.spec.node_name] = None
        if new is not None:
            self.attachments[name] = new
            self.attachments_of_node.add(new.spec.node_name, name)
            self._attachments_of_volume.add(_attached(new), name)
            self.touched.nodes[new.spec.node_name] = None

    # -- reservations -----------------------------------------------------------------------------------

    def reserve(self, volume: str, claim: str) -> None:
        """Reserve a volume for a claim."""
        self._reserved[volume] = claim
        self._reserved_for.add(claim, volume)
        self.touched.claims[claim] = None
        self._refresh_free(volume)

    def free(self, volume: str) -> None:
        """Cancel the reservation of a volume, if there."""
        claim = self._reserved.pop(volume, None)
        if claim is not None:
            self._reserved_for.discard(claim, volume)
            self.touched.claims[claim] = None
            self._refresh_free(volume)

    def select(self, claim: str, node: str) -> None:
        """Select the node for which the volume of a claim is made."""
        self._selected[claim] = node
        self.touched.claims[claim] = None

    def deselect(self, claim: str) -> None:
        """Cancel the selection of a node, if there."""
        if self._selected.pop(claim, None) is not None:
            self.touched.claims[claim] = None

    # -- questions ------------------------------------------------------------------------------------

    def selected_node(self, claim: PersistentVolumeClaim) -> str:
        """Return the node for which the volume of a claim is made; empty if none has been selected."""
        return self._selected.get(key_of(claim.metadata)) or claim.metadata.annotations.get(SELECTED_NODE, "")

    def bound_to(self, claim: PersistentVolumeClaim) -> list[PersistentVolume]:
        """Return the volumes that are bound to a claim or reserved for it, in order of their names."""
        key = key_of(claim.metadata)
        found = {name for name in self._reserved_for[key] if name in self.volumes}
        found.update(name for name in self._volumes_of_claim[key] if names_claim(self.volumes[name], claim))
        return [self.volumes[name] for name in sorted(found)]

    def free_on(self, host: str) -> dict[str, list[Json]]:
        """Return the descriptions of the free volumes of one host only, by storage class."""
        return self._by_class(self._free_by_host[host])

    def free_of(self, classes: Iterable[str]) -> dict[str, list[Json]]:
        """Return the descriptions of the free volumes of several hosts, by storage class."""
        return self._by_class(name for one in classes for name in self._free_by_class[one])

    def _by_class(self, names: Iterable[str]) -> dict[str, list[Json]]:
        found: dict[str, list[Json]] = {}
        for name in sorted(names):
            free = self._free[name]
            found.setdefault(free.storage_class, []).append(free.description)
        return found

    def capacities_for(self, labels: Mapping[str, str]) -> Iterator[CSIStorageCapacity]:
        """Yield the capacities that may concern a node with these labels."""
        for pair in labels.items():
            for key in self._capacities_by_label[pair]:
                yield self.capacities[key]
        for key in self._other_capacities:
            yield self.capacities[key]


def _set(objects: dict[str, T], key: str, new: T | None) -> None:
    if new is None:
        objects.pop(key, None)
    else:
        objects[key] = new


def host_of(name: str, labels: Mapping[str, str]) -> str:
    """Return the host name of a node."""
    return labels.get(LABEL_HOSTNAME, name)


def _referred(volume: PersistentVolume) -> str:
    """Return the claim that a volume refers to; empty if none."""
    ref = volume.spec.claim_ref
    return f"{ref.namespace}/{ref.name}" if ref is not None else ""


def _attached(attachment: VolumeAttachment) -> str:
    return attachment.spec.source.persistent_volume_name or ""


def _first_label(capacity: CSIStorageCapacity) -> tuple[str, str] | None:
    """Return a label that every node of a capacity has, to find capacities by; None if there is none."""
    exact = (capacity.node_topology or {}).get("matchLabels") or {}
    return min(exact.items()) if exact else None
