"""Objects of dynamic resource allocation (`resource.k8s.io/v1`) as the shim watches them.

Specifications and statuses stay JSON: `yunikorn_kubernetes.devices` reads them, and so they reach the core.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec import field

from yunikorn_kubernetes.api_server.access_reviews import Right
from yunikorn_kubernetes.api_server.api_resources import ApiResource
from yunikorn_kubernetes.objects import ApiStruct, Json, ObjectMeta, Pod

GROUP = "resource.k8s.io"
FINALIZER = "resource.kubernetes.io/delete-protection"
"""Finalizer of claims that have devices."""
ALLOCATED_BY_US = "yunikorn.apache.org/allocated"
"""Annotation of claims whose devices this scheduler has chosen: a later process gives back what is left."""
MOST_CONSUMERS = 256
"""Number of consumers that one claim can have."""


class ClaimMeta(ObjectMeta, frozen=True):
    """Metadata of a claim."""

    finalizers: tuple[str, ...] = ()


class DeviceClassObject(ApiStruct, frozen=True):
    """DeviceClass as the API has it."""

    metadata: ObjectMeta = ObjectMeta()
    spec: Json = field(default_factory=dict)


class ResourceSliceObject(ApiStruct, frozen=True):
    """ResourceSlice as the API has it."""

    metadata: ObjectMeta = ObjectMeta()
    spec: Json = field(default_factory=dict)


class DeviceTaintRuleObject(ApiStruct, frozen=True):
    """DeviceTaintRule as the API has it."""

    metadata: ObjectMeta = ObjectMeta()
    spec: Json = field(default_factory=dict)


class ResourceClaimObject(ApiStruct, frozen=True):
    """ResourceClaim as the API has it."""

    metadata: ClaimMeta = ClaimMeta()
    spec: Json = field(default_factory=dict)
    status: Json = field(default_factory=dict)

    @property
    def allocation(self) -> Json | None:
        """Devices of the claim; None before an allocation."""
        return self.status.get("allocation")

    @property
    def consumers(self) -> list[Json]:
        """Pods and groups of pods that may use the devices."""
        return list(self.status.get("reservedFor") or ())

    @property
    def owner_uid(self) -> str:
        """Uid of the controller of the claim; empty without one."""
        return next((one.uid for one in self.metadata.owner_references if one.controller), "")


DEVICE_CLASSES = ApiResource(GROUP, "v1", "deviceclasses", "DeviceClass", False, DeviceClassObject)
RESOURCE_SLICES = ApiResource(GROUP, "v1", "resourceslices", "ResourceSlice", False, ResourceSliceObject)
RESOURCE_CLAIMS = ApiResource(GROUP, "v1", "resourceclaims", "ResourceClaim", True, ResourceClaimObject)
DEVICE_TAINT_RULES = ApiResource(
    GROUP, "v1beta2", "devicetaintrules", "DeviceTaintRule", False, DeviceTaintRuleObject
)
"""Not among the others: Kubernetes 1.36 has it only if an administrator switches it on."""
DEVICE_RESOURCES: tuple[ApiResource[Any], ...] = (DEVICE_CLASSES, RESOURCE_SLICES, RESOURCE_CLAIMS)

CLAIM_RIGHTS = (
    *(Right(RESOURCE_CLAIMS, "patch", part) for part in ("", "status", "binding")),
    *(Right(RESOURCE_CLAIMS, verb) for verb in ("create", "delete")),
)
"""Rights without which no claim can get devices; `binding` is one that Kubernetes asks for since 1.36."""


class ClaimReference(NamedTuple):
    """A claim that a pod names."""

    pod_claim: str
    """Name in `spec.resourceClaims` of the pod."""
    key: str
    """`NAMESPACE/NAME` of the claim; empty for a claim that is still to be made from a template."""
    is_made: bool
    """True for a claim that is made from a template."""


EXTENDED_CLAIM = "extended resources"
"""The pod's name of the claim for its extended resources; no claim of `spec.resourceClaims` can have it."""


def consumer_of(pod: Pod) -> Json:
    """Return the entry of `reservedFor` for a pod."""
    return {"resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid}


def results_of(allocation: Json) -> list[Json]:
    """Return the devices of an allocation, one for each request or share."""
    return (allocation.get("devices") or {}).get("results") or []


def claims_of(pod: Pod) -> Iterator[ClaimReference]:
    """Yield the claims of a pod; a template may also make none.

    That of extended resources belongs to a pod with a node only: before, it is left over from an attempt.
    """
    extended = pod.status.extended_resource_claim_status
    if extended is not None and pod.spec.node_name:
        name = extended.get("resourceClaimName")
        yield ClaimReference(EXTENDED_CLAIM, f"{pod.metadata.namespace}/{name}", is_made=True)
    statuses = {one.name: one.resource_claim_name for one in pod.status.resource_claim_statuses}
    namespace = pod.metadata.namespace
    for entry in pod.spec.resource_claims:
        pod_claim = str(entry.get("name") or "")
        named = entry.get("resourceClaimName")
        if named:
            yield ClaimReference(pod_claim, f"{namespace}/{named}", is_made=False)
        elif pod_claim not in statuses:
            yield ClaimReference(pod_claim, "", is_made=True)
        elif statuses[pod_claim]:
            yield ClaimReference(pod_claim, f"{namespace}/{statuses[pod_claim]}", is_made=True)
