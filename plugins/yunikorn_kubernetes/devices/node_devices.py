"""Devices of nodes, from the attributes with their slices."""

from __future__ import annotations

from yunikorn.api import Node
from yunikorn_kubernetes import names
from yunikorn_kubernetes.devices.device_objects import ResourceSlice
from yunikorn_kubernetes.devices.device_tags import AllocatedClaim, read_device_allocations
from yunikorn_kubernetes.devices.node_pools import SliceCatalog
from yunikorn_kubernetes.devices.slice_reading import SliceReader
from yunikorn_kubernetes.predicates.tag_reading import UnreadableText, load, tables_of

MOST_SHARED = 64
"""Number of texts with slices of several nodes whose slices are kept."""


class NodeDevices:
    """Slices of the nodes that were asked about, read once."""

    def __init__(self) -> None:
        """Create it without a node."""
        self._reader = SliceReader()
        self._catalogs: dict[str, SliceCatalog | UnreadableText] = {}
        self._shared: dict[str, tuple[ResourceSlice, ...]] = {}

    def of(self, node: Node) -> SliceCatalog:
        """Return the slices of a node. Raises `UnreadableText`."""
        found = self._catalogs.get(node.id)
        if found is None:
            try:
                found = SliceCatalog(self._read(node))
            except UnreadableText as error:
                found = error
            self._catalogs[node.id] = found
        if isinstance(found, UnreadableText):
            raise UnreadableText(str(found))
        return found

    def _read(self, node: Node) -> list[ResourceSlice]:
        own, shared = (node.attributes.get(one) for one in (names.NODE_SLICES, names.NODE_SHARED_SLICES))
        slices = self._slices(own) if own else []
        if shared:
            if shared not in self._shared:
                if len(self._shared) >= MOST_SHARED:
                    self._shared.clear()
                self._shared[shared] = tuple(self._slices(shared))
            slices += self._shared[shared]
        return slices

    def _slices(self, text: str) -> list[ResourceSlice]:
        return [self._reader.read(one) for one in tables_of(load(text), "the slices")]

    def forget(self, node: Node) -> None:
        """Forget a node that leaves, or whose attributes change."""
        self._catalogs.pop(node.id, None)


def has_shared_devices(node: Node) -> bool:
    """Return True if the node can use devices that other nodes can use as well."""
    return names.NODE_SHARED_SLICES in node.attributes


def claimed_devices(node: Node) -> tuple[AllocatedClaim, ...]:
    """Return the allocated claims to devices of a node that no pod consumes. Raises `UnreadableText`."""
    text = node.attributes.get(names.NODE_CLAIMED_DEVICES)
    return read_device_allocations(text) if text else ()
