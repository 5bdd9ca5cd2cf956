"""Attributes of a node that concern volumes."""

from __future__ import annotations

from collections.abc import Mapping

from yunikorn.errors import QuantityError
from yunikorn_kubernetes.names import (
    NODE_FREE_VOLUMES,
    NODE_MIGRATED_PLUGINS,
    NODE_STORAGE_CAPACITY,
    NODE_VOLUME_ATTACHMENTS,
    NODE_VOLUME_LIMITS,
)
from yunikorn_kubernetes.objects import CSIStorageCapacity, Json
from yunikorn_kubernetes.predicates.tag_reading import UnreadableText
from yunikorn_kubernetes.predicates.volume_terms import read_selector
from yunikorn_kubernetes.translation import kubernetes_quantities
from yunikorn_kubernetes.volumes.migration import MIGRATED_PLUGINS
from yunikorn_kubernetes.volumes.stores import VolumeObjects, host_of
from yunikorn_kubernetes.volumes.volume_json import compact


def volume_attributes(name: str, labels: Mapping[str, str], objects: VolumeObjects) -> dict[str, str]:
    """Return the attributes of a node that concern volumes; absent where empty."""
    found: dict[str, str] = {}
    free = objects.free_on(host_of(name, labels))
    if free:
        found[NODE_FREE_VOLUMES] = compact(free)
    capacity = _capacity(labels, objects)
    if capacity:
        found[NODE_STORAGE_CAPACITY] = compact(capacity)
    csi_node = objects.csi_nodes.get(name)
    if csi_node is None:
        return found
    limits = {
        driver.name: driver.allocatable.count
        for driver in csi_node.spec.drivers or ()
        if driver.allocatable is not None and driver.allocatable.count is not None
    }
    if limits:
        found[NODE_VOLUME_LIMITS] = compact(limits)
        attached = _attachments(name, objects, limits)
        if attached:
            found[NODE_VOLUME_ATTACHMENTS] = compact(attached)
    migrated = csi_node.metadata.annotations.get(MIGRATED_PLUGINS)
    if migrated:
        found[NODE_MIGRATED_PLUGINS] = migrated
    return found


def _attachments(name: str, objects: VolumeObjects, limits: Mapping[str, int]) -> dict[str, list[str]]:
    """Return the handles of attached CSI volumes by driver, for drivers with a limit."""
    found: dict[str, set[str]] = {}
    for key in objects.attachments_of_node[name]:
        spec = objects.attachments[key].spec
        volume = objects.volumes.get(spec.source.persistent_volume_name or "")
        if spec.attacher in limits and volume is not None and volume.spec.csi is not None:
            found.setdefault(spec.attacher, set()).add(volume.spec.csi.volume_handle)
    return {driver: sorted(handles) for driver, handles in found.items()}


def _capacity(labels: Mapping[str, str], objects: VolumeObjects) -> dict[str, int]:
    """Return the size of the largest volume that can be made for a node, by storage class."""
    found: dict[str, int] = {}
    for capacity in objects.capacities_for(labels):
        if capacity.node_topology is None or not is_in_topology(labels, capacity.node_topology):
            continue
        size = _largest(capacity)
        if size is not None and size >= found.get(capacity.storage_class_name, 0):
            found[capacity.storage_class_name] = size
    return found


def is_in_topology(labels: Mapping[str, str], topology: Json) -> bool:
    """Return True if a node with these labels is in the topology of a capacity."""
    try:
        selector = read_selector(topology)
    except UnreadableText:
        return False
    return selector is not None and selector.matches(labels)


def _largest(capacity: CSIStorageCapacity) -> int | None:
    """Return the size of the largest volume; None if it is unknown."""
    text = capacity.maximum_volume_size or capacity.capacity
    try:
        return None if text is None else kubernetes_quantities.parse(text)
    except QuantityError:
        return None
