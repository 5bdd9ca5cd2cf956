"""A driver of devices for scenarios: classes, slices and claims, and what of them the cluster shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from tests.kubernetes.cluster import Kubectl, Obj
from tests.kubernetes.cluster.objects import container, node_of, pod
from tests.kubernetes.devices.objects import device, device_class, resource_slice, wanted

API = "resource.k8s.io/v1"
GPU = "example.com/gpu"
FINALIZER = "resource.kubernetes.io/delete-protection"


def gpu_class(**spec: Any) -> Obj:
    """Return the class of all devices of the driver."""
    made = device_class("gpu", 'device.driver == "gpu.example.com"', **spec)
    return {"apiVersion": API, "kind": "DeviceClass", **made}


def gpus(node: str, count: int, **fields: Any) -> Obj:
    """Return the slice of a node with `count` devices; `fields` are of all of them."""
    made = resource_slice(
        f"{node}-gpus", *(device(f"gpu-{one}", **fields) for one in range(count)), node=node
    )
    return {"apiVersion": API, "kind": "ResourceSlice", **made}


def partitioned(node: str) -> list[Obj]:
    """Return the slices of a node with one device, which can be used whole or as two halves."""

    def part(name: str, units: int, size: str) -> Obj:
        used = {"counterSet": "card", "counters": {"units": {"value": str(units)}}}
        return device(name, consumesCounters=[used], size=size)

    parts = part("whole", 2, "whole"), part("half-0", 1, "half"), part("half-1", 1, "half")
    counters = [{"name": "card", "counters": {"units": {"value": "2"}}}]
    made = resource_slice(f"{node}-parts", *parts, node=node, count=2)
    shared = resource_slice(f"{node}-counters", node=node, count=2, sharedCounters=counters)
    del shared["spec"]["devices"]
    return [{"apiVersion": API, "kind": "ResourceSlice", **one} for one in (shared, made)]


def template(name: str, *requests: Obj, count: int = 1) -> Obj:
    """Return a template of claims, to `count` devices unless it has other requests."""
    spec = {"devices": {"requests": [*(requests or (wanted("gpu", count=count),))]}}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": API, "kind": "ResourceClaimTemplate", "metadata": meta, "spec": {"spec": spec}}


def named_claim(name: str, *requests: Obj) -> Obj:
    """Return a claim to one device, unless it has other requests."""
    spec = {"devices": {"requests": [*(requests or (wanted("gpu"),))]}}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": API, "kind": "ResourceClaim", "metadata": meta, "spec": spec}


def claiming(name: str, from_template: str = "", claim: str = "", **arguments: Any) -> Obj:
    """Return a pod with a claim that is made from a template, or with a named one."""
    source = {"resourceClaimName": claim} if claim else {"resourceClaimTemplateName": from_template}
    main = container(cpu="1")
    main["resources"]["claims"] = [{"name": "gpu"}]
    return pod(name, containers=[main], resourceClaims=[{"name": "gpu", **source}], **arguments)


def given(kubectl: Kubectl) -> dict[str, list[str]]:
    """Return the devices, `POOL/DEVICE`, of every claim that has some."""
    found = {}
    for claim in kubectl.list("ResourceClaim", "default"):
        allocation = claim.get("status", {}).get("allocation")
        if allocation is not None:
            results = allocation["devices"]["results"]
            found[claim["metadata"]["name"]] = [f"{one['pool']}/{one['device']}" for one in results]
    return found


def check_devices(kubectl: Kubectl, pods: Iterable[Obj]) -> None:
    """Check that no device is given twice, and that bound pods have theirs on their nodes."""
    claims = {one["metadata"]["name"]: one for one in kubectl.list("ResourceClaim", "default")}
    counts = Counter(device for devices in given(kubectl).values() for device in devices)
    assert [device for device, count in counts.items() if count > 1] == []
    for one in pods:
        for name in claim_names(one) if node_of(one) else ():
            claim = claims[name]
            results = claim["status"]["allocation"]["devices"]["results"]
            assert {each["pool"] for each in results} == {node_of(one)}, name
            users = [each["uid"] for each in claim["status"]["reservedFor"]]
            group = [each for each in claim["status"]["reservedFor"] if each["resource"] == "podgroups"]
            assert one["metadata"]["uid"] in users or group, name
            assert FINALIZER in claim["metadata"]["finalizers"]


def claim_names(one: Obj) -> list[str]:
    """Return the claims of a pod."""
    made = {
        each["name"]: each.get("resourceClaimName") for each in one["status"].get("resourceClaimStatuses", ())
    }
    found = [
        each.get("resourceClaimName") or made.get(each["name"]) for each in one["spec"]["resourceClaims"]
    ]
    return [name for name in found if name]


def until_free(kubectl: Kubectl) -> None:
    """Wait until no claim has devices or a finalizer."""

    def is_free(claim: Obj) -> bool:
        is_protected = FINALIZER in claim["metadata"].get("finalizers", ())
        return not (is_protected or claim.get("status", {}).get("allocation"))

    kubectl.wait("ResourceClaim", lambda found: [True] if all(map(is_free, found)) else None)
