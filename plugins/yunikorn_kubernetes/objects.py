"""Objects of the Kubernetes API, reduced to the fields that the shim reads.

`msgspec` decodes them from the JSON of the API server and skips every other field, which costs a fraction of
the time and memory of complete types. Field names are those of the API in snake case. A field that the server
may leave out has a default; where the server may also send `null`, the type includes None. Structured values
that are only passed on as JSON, such as affinity terms, are left as dictionaries.

Structs are immutable and without cycles (`gc=False`), so the garbage collector does not visit them. Use
`msgspec.structs.replace` for a changed copy. Strings that repeat among pods are interned.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from sys import intern
from typing import Any

from msgspec import Struct, field
from msgspec.structs import force_setattr

Json = dict[str, Any]
"""A JSON object that is passed on without interpretation."""


class ApiStruct(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Base of all structs: camel case in JSON, and fields with their default are not encoded."""


class OwnerReference(ApiStruct, frozen=True):
    """Reference to the object that owns another."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(ApiStruct, frozen=True):
    """Metadata of an object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: datetime.datetime | None = None
    deletion_timestamp: datetime.datetime | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()


class LocalObjectReference(ApiStruct, frozen=True):
    """Name of an object in the same namespace."""

    name: str = ""


# -- pods ------------------------------------------------------------------------------------------------


class ResourceRequirements(ApiStruct, frozen=True):
    """Requested amounts by resource name, as Kubernetes quantities; limits do not count."""

    requests: dict[str, str] = {}


class ContainerPort(ApiStruct, frozen=True):
    """Port of a container; a `host_port` of 0 takes no port of the node."""

    host_port: int = 0
    host_ip: str = field(default="", name="hostIP")
    protocol: str = "TCP"


class Container(ApiStruct, frozen=True):
    """Container or init container; an init container that restarts `Always` is a sidecar."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements | None = None
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""


class ImageVolume(ApiStruct, frozen=True):
    """Volume with the files of an image."""

    reference: str = ""


class SchedulingGate(ApiStruct, frozen=True):
    """Reason to keep a pod from being scheduled."""

    name: str = ""


class Toleration(ApiStruct, frozen=True):
    """Taints that a pod tolerates."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class ClaimVolume(ApiStruct, frozen=True):
    """Use of a claim by a pod."""

    claim_name: str = ""
    read_only: bool = False


class EphemeralVolume(ApiStruct, frozen=True):
    """Claim that is made for one pod and deleted with the pod; its name is `POD-VOLUME`."""

    volume_claim_template: Json | None = None


class CSIVolume(ApiStruct, frozen=True):
    """Inline volume of a CSI driver."""

    driver: str = ""
    read_only: bool | None = None


class GCEDisk(ApiStruct, frozen=True):
    """Disk of Google Compute Engine."""

    pd_name: str = ""
    partition: int = 0
    read_only: bool = False


class AWSDisk(ApiStruct, frozen=True):
    """Volume of Amazon EBS."""

    volume_id: str = field(default="", name="volumeID")
    partition: int = 0
    read_only: bool = False


class AzureDisk(ApiStruct, frozen=True):
    """Disk of Azure."""

    disk_uri: str = field(default="", name="diskURI")
    read_only: bool | None = None


class CinderVolume(ApiStruct, frozen=True):
    """Volume of OpenStack Cinder."""

    volume_id: str = field(default="", name="volumeID")
    read_only: bool = False


class VsphereVolume(ApiStruct, frozen=True):
    """Disk of vSphere."""

    volume_path: str = ""


class PortworxVolume(ApiStruct, frozen=True):
    """Volume of Portworx."""

    volume_id: str = field(default="", name="volumeID")
    read_only: bool = False


class ISCSIVolume(ApiStruct, frozen=True):
    """Disk behind iSCSI."""

    iqn: str = ""
    read_only: bool = False


class RBDVolume(ApiStruct, frozen=True):
    """Ceph block device."""

    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = "rbd"
    read_only: bool = False


class Volume(ApiStruct, frozen=True):
    """Volume of a pod; at most one of the sources is set."""

    name: str = ""
    persistent_volume_claim: ClaimVolume | None = None
    ephemeral: EphemeralVolume | None = None
    csi: CSIVolume | None = None
    gce_persistent_disk: GCEDisk | None = None
    aws_elastic_block_store: AWSDisk | None = None
    azure_disk: AzureDisk | None = None
    cinder: CinderVolume | None = None
    vsphere_volume: VsphereVolume | None = None
    portworx_volume: PortworxVolume | None = None
    iscsi: ISCSIVolume | None = None
    rbd: RBDVolume | None = None
    image: ImageVolume | None = None

    @property
    def restricts(self) -> bool:
        """True if the volume has one of the sources above: all others are available on every node."""
        return any(getattr(self, source) is not None for source in _VOLUME_SOURCES)


_VOLUME_SOURCES = tuple(name for name in Volume.__struct_fields__ if name not in ("name", "image"))


class SchedulingGroup(ApiStruct, frozen=True):
    """Gang that a pod names."""

    pod_group_name: str | None = None


class PodSpec(ApiStruct, frozen=True):
    """Desired state of a pod."""

    node_name: str = ""
    scheduler_name: str = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resources: ResourceRequirements | None = None
    overhead: dict[str, str] | None = None
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str = ""
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    volumes: tuple[Volume, ...] = ()
    image_volumes: tuple[str, ...] = ()
    """References of the image volumes, which are not among `volumes`."""
    tolerations: tuple[Toleration, ...] = ()
    node_selector: dict[str, str] | None = None
    affinity: Json | None = None
    topology_spread_constraints: tuple[Json, ...] = ()
    resource_claims: tuple[Json, ...] = ()
    image_pull_secrets: tuple[LocalObjectReference, ...] = ()
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    scheduling_group: SchedulingGroup | None = None


class ContainerStatus(ApiStruct, frozen=True):
    """Observed state of a container: amounts that the node has set aside, and that are in force."""

    name: str = ""
    allocated_resources: dict[str, str] | None = None
    resources: ResourceRequirements | None = None


class Condition(ApiStruct, frozen=True):
    """Condition of a pod, node or claim."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class PodClaimStatus(ApiStruct, frozen=True):
    """Claim that was made for an entry of `spec.resourceClaims`; no name if none is needed."""

    name: str = ""
    resource_claim_name: str | None = None


class PodStatus(ApiStruct, frozen=True):
    """Observed state of a pod."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resize: str = ""
    resource_claim_statuses: tuple[PodClaimStatus, ...] = ()
    extended_resource_claim_status: Json | None = None


CONDITIONS = frozenset(("PodScheduled", "PodResizePending", "PodResizeInProgress", "DisruptionTarget"))
"""Conditions of pods that are read."""


class Pod(ApiStruct, frozen=True):
    """Pod, reduced to what this package reads, since there are many.

    Left out are annotations of others, volumes that every node has, conditions besides `CONDITIONS`, and the
    statuses of containers whose amounts are those of the specification.
    """

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    def __post_init__(self) -> None:
        _trim_metadata(self.metadata)
        _trim_spec(self.spec)
        _trim_status(self.status, self.spec)


def _trim_metadata(meta: ObjectMeta) -> None:
    """Intern what repeats among pods; drop annotations of others, which may be many kilobytes."""
    if meta.namespace:
        force_setattr(meta, "namespace", intern(meta.namespace))
    if meta.labels:
        force_setattr(meta, "labels", _interned(meta.labels))
    if meta.annotations:
        ours = {key: value for key, value in meta.annotations.items() if "yunikorn.apache.org/" in key}
        force_setattr(meta, "annotations", _interned(ours))
    for owner in meta.owner_references:
        _intern_fields(owner, ("api_version", "kind", "name", "uid"))


def _trim_spec(spec: PodSpec) -> None:
    if spec.volumes:
        images = tuple(intern(volume.image.reference) for volume in spec.volumes if volume.image is not None)
        force_setattr(spec, "image_volumes", images)
        force_setattr(spec, "volumes", tuple(volume for volume in spec.volumes if volume.restricts))
    _intern_fields(spec, ("node_name", "scheduler_name", "priority_class_name"))
    for container in spec.containers:
        _intern_fields(container, ("name", "image"))
        if container.resources is not None and container.resources.requests:
            force_setattr(container.resources, "requests", _interned(container.resources.requests))
    for toleration in spec.tolerations:
        _intern_fields(toleration, ("key", "operator", "value", "effect"))


def _trim_status(status: PodStatus, spec: PodSpec) -> None:
    if status.conditions:
        kept = tuple(condition for condition in status.conditions if condition.type in CONDITIONS)
        for condition in kept:
            _intern_fields(condition, ("type", "status", "reason"))
        force_setattr(status, "conditions", kept)
    if status.container_statuses:
        changed = _changed(status.container_statuses, spec.containers)
        force_setattr(status, "container_statuses", changed)
    if status.init_container_statuses:
        changed = _changed(status.init_container_statuses, spec.init_containers)
        force_setattr(status, "init_container_statuses", changed)


def _changed(
    statuses: tuple[ContainerStatus, ...], containers: tuple[Container, ...]
) -> tuple[ContainerStatus, ...]:
    """Return the statuses with amounts that differ from the requests, as during a resize in place."""
    requests = {each.name: each.resources.requests for each in containers if each.resources is not None}
    found = []
    for status in statuses:
        requested = requests.get(status.name, {})
        in_force = status.resources.requests if status.resources is not None else None
        if (status.allocated_resources or requested) != requested or (in_force or requested) != requested:
            found.append(status)
    return tuple(found)


def _intern_fields(struct: Struct, names: tuple[str, ...]) -> None:
    for name in names:
        text = getattr(struct, name)
        if text:
            force_setattr(struct, name, intern(text))


def _interned(texts: Mapping[str, str]) -> dict[str, str]:
    return {intern(key): intern(value) for key, value in texts.items()}


# -- nodes and what concerns the whole cluster -----------------------------------------------------------


class Taint(ApiStruct, frozen=True):
    """Taint of a node."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(ApiStruct, frozen=True):
    """Desired state of a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeStatus(ApiStruct, frozen=True):
    """Observed state of a node."""

    allocatable: dict[str, str] = {}
    conditions: tuple[Condition, ...] = ()


class Node(ApiStruct, frozen=True):
    """Node of the cluster."""

    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Namespace(ApiStruct, frozen=True):
    """Namespace, of which only the metadata are read."""

    metadata: ObjectMeta = ObjectMeta()


class PriorityClass(ApiStruct, frozen=True):
    """Priority of the pods that name it."""

    metadata: ObjectMeta = ObjectMeta()
    value: int = 0
    preemption_policy: str = ""


class ConfigMap(ApiStruct, frozen=True):
    """ConfigMap; `binary_data` is decoded from base64."""

    metadata: ObjectMeta = ObjectMeta()
    data: dict[str, str] | None = None
    binary_data: dict[str, bytes] | None = None


# -- storage ---------------------------------------------------------------------------------------------


class ObjectReference(ApiStruct, frozen=True):
    """Reference to an object of any namespace."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class CSIVolumeSource(ApiStruct, frozen=True):
    """Volume of a CSI driver behind a persistent volume."""

    driver: str = ""
    volume_handle: str = ""
    read_only: bool = False


class PersistentVolumeSpec(ApiStruct, frozen=True):
    """Desired state of a persistent volume."""

    capacity: dict[str, str] = {}
    access_modes: tuple[str, ...] = ()
    claim_ref: ObjectReference | None = None
    storage_class_name: str = ""
    volume_mode: str = "Filesystem"
    volume_attributes_class_name: str | None = None
    node_affinity: Json | None = None
    csi: CSIVolumeSource | None = None
    gce_persistent_disk: GCEDisk | None = None
    aws_elastic_block_store: AWSDisk | None = None
    azure_disk: AzureDisk | None = None
    cinder: CinderVolume | None = None
    vsphere_volume: VsphereVolume | None = None
    portworx_volume: PortworxVolume | None = None
    local: Json | None = None


class PhaseStatus(ApiStruct, frozen=True):
    """Observed phase of a persistent volume."""

    phase: str = ""


class PersistentVolume(ApiStruct, frozen=True):
    """Volume of the cluster."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PhaseStatus = PhaseStatus()


class PersistentVolumeClaimSpec(ApiStruct, frozen=True):
    """Desired state of a claim; a class name of None means the default class, an empty one no class."""

    access_modes: tuple[str, ...] = ()
    resources: ResourceRequirements | None = None
    storage_class_name: str | None = None
    volume_name: str = ""
    volume_mode: str = "Filesystem"
    volume_attributes_class_name: str | None = None
    selector: Json | None = None


class PersistentVolumeClaimStatus(ApiStruct, frozen=True):
    """Observed state of a claim."""

    phase: str = ""
    capacity: dict[str, str] | None = None


class PersistentVolumeClaim(ApiStruct, frozen=True):
    """Claim of a volume by pods of a namespace."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class StorageClass(ApiStruct, frozen=True):
    """Class of volumes; `allowed_topologies` has topology selector terms."""

    metadata: ObjectMeta = ObjectMeta()
    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: tuple[Json, ...] = ()
    parameters: dict[str, str] | None = None


class VolumeNodeResources(ApiStruct, frozen=True):
    """Number of volumes that a node can attach; None is unlimited."""

    count: int | None = None


class CSINodeDriver(ApiStruct, frozen=True):
    """CSI driver on a node."""

    name: str = ""
    node_id: str = field(default="", name="nodeID")
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(ApiStruct, frozen=True):
    """Drivers of a node; the server sends null for none."""

    drivers: tuple[CSINodeDriver, ...] | None = None


class CSINode(ApiStruct, frozen=True):
    """CSI drivers of the node of the same name."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(ApiStruct, frozen=True):
    """Properties of a CSI driver."""

    storage_capacity: bool | None = None


class CSIDriver(ApiStruct, frozen=True):
    """CSI driver of the cluster."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(ApiStruct, frozen=True):
    """Capacity of a storage class in a part of the cluster; `node_topology` is a label selector."""

    metadata: ObjectMeta = ObjectMeta()
    storage_class_name: str = ""
    node_topology: Json | None = None
    capacity: str | None = None
    maximum_volume_size: str | None = None


class VolumeAttachmentSource(ApiStruct, frozen=True):
    """Volume of an attachment."""

    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(ApiStruct, frozen=True):
    """Desired state of an attachment."""

    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachmentStatus(ApiStruct, frozen=True):
    """Observed state of an attachment."""

    attached: bool = False


class VolumeAttachment(ApiStruct, frozen=True):
    """Attachment of a volume to a node."""

    metadata: ObjectMeta = ObjectMeta()
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
    status: VolumeAttachmentStatus = VolumeAttachmentStatus()
