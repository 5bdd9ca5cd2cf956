"""Volumes of in-tree plugins as volumes of the CSI drivers that replaced the plugins.

Such volumes count against the limits of the driver. Where the annotation
`storage.alpha.kubernetes.io/migrated-plugins` of the CSINode object names the plugin, the topology labels of
the volume become those of the driver, too. The names are those of the project
kubernetes/csi-translation-lib.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from yunikorn_kubernetes.names import LABEL_REGION, LABEL_REGION_OLD, LABEL_ZONE, LABEL_ZONE_OLD
from yunikorn_kubernetes.objects import Json, PersistentVolume, PersistentVolumeSpec, Volume

MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
"""Annotation of CSINode objects: comma-separated names of in-tree plugins."""
ZONE_SEPARATOR = "__"
UNSPECIFIED = "UNSPECIFIED"
_AWS_VOLUME = re.compile(r"vol-[^/]*\Z")


class CSIHandle(NamedTuple):
    """Volume of a CSI driver."""

    driver: str
    handle: str


class MigratedPlugin(NamedTuple):
    """In-tree plugin, and the CSI driver that replaced it."""

    name: str
    driver: str
    topology: str
    """Label of the driver for the zone; empty if the driver has none."""
    source: str
    """Field of the volume's description."""
    handle: Callable[[PersistentVolumeSpec | Volume, str], str]
    """Returns the driver's handle of a volume, given the zones in its labels; empty if there is none."""


def _aws(volume: PersistentVolumeSpec | Volume, zones: str) -> str:
    disk = volume.aws_elastic_block_store
    name = disk.volume_id if disk is not None else ""
    if not name.startswith("aws://"):
        return name
    name = name.removeprefix("aws://").partition("/")[2].strip("/")
    return name if _AWS_VOLUME.match(name) else ""


def _gce(volume: PersistentVolumeSpec | Volume, zones: str) -> str:
    disk = volume.gce_persistent_disk
    name = disk.pd_name if disk is not None else ""
    found = zones.split(ZONE_SEPARATOR)
    if len(found) > 1:
        regions = {zone.rpartition("-")[0] for zone in found}
        if len(regions) != 1:
            return ""
        return f"projects/{UNSPECIFIED}/regions/{regions.pop()}/disks/{name}"
    return f"projects/{UNSPECIFIED}/zones/{zones or UNSPECIFIED}/disks/{name}"


def _azure(volume: PersistentVolumeSpec | Volume, zones: str) -> str:
    return volume.azure_disk.disk_uri if volume.azure_disk is not None else ""


def _cinder(volume: PersistentVolumeSpec | Volume, zones: str) -> str:
    return volume.cinder.volume_id if volume.cinder is not None else ""


def _portworx(volume: PersistentVolumeSpec | Volume, zones: str) -> str:
    return volume.portworx_volume.volume_id if volume.portworx_volume is not None else ""


PLUGINS = (
    MigratedPlugin(
        "kubernetes.io/aws-ebs",
        "ebs.csi.aws.com",
        "topology.ebs.csi.aws.com/zone",
        "aws_elastic_block_store",
        _aws,
    ),
    MigratedPlugin(
        "kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "topology.gke.io/zone", "gce_persistent_disk", _gce
    ),
    MigratedPlugin("kubernetes.io/azure-disk", "disk.csi.azure.com", "", "azure_disk", _azure),
    MigratedPlugin(
        "kubernetes.io/cinder",
        "cinder.csi.openstack.org",
        "topology.cinder.csi.openstack.org/zone",
        "cinder",
        _cinder,
    ),
    MigratedPlugin("kubernetes.io/portworx-volume", "pxd.portworx.com", "", "portworx_volume", _portworx),
)
"""In-tree plugins whose migration kube-scheduler takes into account."""
_BY_NAME = {plugin.name: plugin for plugin in PLUGINS}
NO_PROVISIONER = "kubernetes.io/no-provisioner"
"""Provisioner of storage classes that make no volumes."""
_UNLIMITED = frozenset([NO_PROVISIONER, "kubernetes.io/azure-file", "kubernetes.io/vsphere-volume"])
"""Provisioners whose volumes have no limits per node."""


def plugin_of(volume: PersistentVolumeSpec | Volume) -> MigratedPlugin | None:
    """Return the in-tree plugin of a volume, or None."""
    for plugin in PLUGINS:
        if getattr(volume, plugin.source) is not None:
            return plugin
    return None


def handle_of_volume(volume: PersistentVolume) -> CSIHandle | None:
    """Return the CSI volume behind a persistent volume; None if there is none."""
    spec = volume.spec
    if spec.csi is not None:
        driver, handle = spec.csi.driver, spec.csi.volume_handle
        return CSIHandle(driver, handle) if driver and handle else None
    labels = volume.metadata.labels
    return _translated(spec, labels.get(LABEL_ZONE_OLD) or labels.get(LABEL_ZONE, ""))


def handle_of_inline(volume: Volume) -> CSIHandle | None:
    """Return the CSI volume behind an inline volume of a pod; None if there is none."""
    return _translated(volume, "")


def _translated(volume: PersistentVolumeSpec | Volume, zones: str) -> CSIHandle | None:
    plugin = plugin_of(volume)
    if plugin is None:
        return None
    handle = plugin.handle(volume, zones)
    return CSIHandle(plugin.driver, handle) if handle else None


def driver_of_provisioner(provisioner: str) -> str:
    """Return the CSI driver of a provisioner; empty if the volumes of the provisioner have no limits."""
    plugin = _BY_NAME.get(provisioner)
    if plugin is not None:
        return plugin.driver
    return "" if provisioner in _UNLIMITED else provisioner


def node_affinity(volume: PersistentVolume) -> Sequence[Json] | None:
    """Return the terms of the required node affinity of a volume; None for no restriction."""
    required = (volume.spec.node_affinity or {}).get("required")
    return None if required is None else required.get("nodeSelectorTerms") or ()


def translated_affinity(volume: PersistentVolume, plugin: MigratedPlugin) -> Sequence[Json] | None:
    """Return the terms on nodes where the plugin of a volume is migrated: with labels of the driver."""
    terms = node_affinity(volume)
    if not plugin.topology:
        return terms
    labels = volume.metadata.labels
    keys = {one["key"] for term in terms or () for one in term.get("matchExpressions") or ()}
    old = LABEL_ZONE not in keys and (
        LABEL_ZONE_OLD in keys or (LABEL_ZONE not in labels and LABEL_ZONE_OLD in labels)
    )
    zone = LABEL_ZONE_OLD if old else LABEL_ZONE
    renamed = {LABEL_REGION_OLD: LABEL_REGION} if old else {}
    if zone in keys:
        return _renamed(terms or (), {**renamed, zone: plugin.topology})
    zones = sorted({part.strip() for part in labels.get(zone, "").split(ZONE_SEPARATOR)} - {""})
    if terms is not None:
        terms = _renamed(terms, renamed)
    if not zones:
        return terms
    more = {"key": plugin.topology, "operator": "In", "values": zones}
    return [
        {**term, "matchExpressions": [*(term.get("matchExpressions") or ()), more]} for term in terms or [{}]
    ]


def _renamed(terms: Sequence[Json], names: Mapping[str, str]) -> list[Json]:
    return [
        {
            **term,
            "matchExpressions": [
                {**one, "key": names.get(one["key"], one["key"])}
                for one in term.get("matchExpressions") or ()
            ],
        }
        for term in terms
    ]
