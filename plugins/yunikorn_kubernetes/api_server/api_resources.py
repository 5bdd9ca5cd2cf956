"""Resources of the API that the shim reads or writes: where they are, and the struct of their objects."""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeVar
from urllib.parse import quote

import attrs

from yunikorn_kubernetes.objects import (
    ConfigMap,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    Json,
    Namespace,
    Node,
    ObjectMeta,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PriorityClass,
    StorageClass,
    VolumeAttachment,
)


class ApiObject(Protocol):
    """Object of the API: all have metadata."""

    @property
    def metadata(self) -> ObjectMeta:
        """Metadata of the object."""
        ...


T_co = TypeVar("T_co", covariant=True)


@attrs.frozen
class ApiResource(Generic[T_co]):
    """Resource of the API; `struct` is the type into which its objects are decoded."""

    group: str
    """API group; empty for the core group."""
    version: str
    plural: str
    kind: str
    namespaced: bool
    struct: type[T_co]

    @property
    def api_version(self) -> str:
        """Value of `apiVersion` in objects of this resource."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the path of an object, or without `name` of the collection, of all namespaces if empty."""
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part]
        return "/" + "/".join(quote(part, safe="") for part in parts)


def key_of(metadata: ObjectMeta) -> str:
    """Return the key of an object in its resource: `namespace/name`, or `name` without namespace."""
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name


PODS = ApiResource("", "v1", "pods", "Pod", True, Pod)
NODES = ApiResource("", "v1", "nodes", "Node", False, Node)
NAMESPACES = ApiResource("", "v1", "namespaces", "Namespace", False, Namespace)
CONFIG_MAPS = ApiResource("", "v1", "configmaps", "ConfigMap", True, ConfigMap)
PERSISTENT_VOLUMES = ApiResource("", "v1", "persistentvolumes", "PersistentVolume", False, PersistentVolume)
PERSISTENT_VOLUME_CLAIMS = ApiResource(
    "", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", True, PersistentVolumeClaim
)
PRIORITY_CLASSES = ApiResource(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False, PriorityClass
)
STORAGE_CLASSES = ApiResource("storage.k8s.io", "v1", "storageclasses", "StorageClass", False, StorageClass)
CSI_NODES = ApiResource("storage.k8s.io", "v1", "csinodes", "CSINode", False, CSINode)
CSI_DRIVERS = ApiResource("storage.k8s.io", "v1", "csidrivers", "CSIDriver", False, CSIDriver)
CSI_STORAGE_CAPACITIES = ApiResource(
    "storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity", True, CSIStorageCapacity
)
VOLUME_ATTACHMENTS = ApiResource(
    "storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", False, VolumeAttachment
)

STORAGE: tuple[ApiResource[Any], ...] = (
    PERSISTENT_VOLUMES,
    PERSISTENT_VOLUME_CLAIMS,
    STORAGE_CLASSES,
    CSI_NODES,
    CSI_DRIVERS,
    CSI_STORAGE_CAPACITIES,
    VOLUME_ATTACHMENTS,
)
WATCHED: tuple[ApiResource[Any], ...] = (PODS, NODES, NAMESPACES, PRIORITY_CLASSES, *STORAGE)
"""Resources of the whole cluster that are watched."""

# Objects that are read, changed and replaced as a whole keep all their fields, so these have no structs.
LEASES: ApiResource[Json] = ApiResource("coordination.k8s.io", "v1", "leases", "Lease", True, dict[str, Any])
EVENTS: ApiResource[Json] = ApiResource("events.k8s.io", "v1", "events", "Event", True, dict[str, Any])
ACCESS_REVIEWS: ApiResource[Json] = ApiResource(
    "authorization.k8s.io",
    "v1",
    "selfsubjectaccessreviews",
    "SelfSubjectAccessReview",
    False,
    dict[str, Any],
)
"""Questions of a process about its own rights, which every account may ask."""
