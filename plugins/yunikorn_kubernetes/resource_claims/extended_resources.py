"""Extended resources that device classes serve, such as `example.com/gpu: 2` in a container.

A node whose device plugin offers the resource serves it as ever; elsewhere the pod gets a claim for devices
of the class. So the request has both as alternatives. The device plugin of a node appears as a device that
any number of pods can use: how many it really has, the amounts of the node say.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from yunikorn.errors import QuantityError
from yunikorn_kubernetes.objects import Container, Json, Node, Pod
from yunikorn_kubernetes.resource_claims.claim_objects import DeviceClassObject
from yunikorn_kubernetes.translation.kubernetes_quantities import amount_of

PLUGINS = "device-plugins.yunikorn.apache.org"
"""Driver and class of the devices that stand for device plugins."""
IMPLICIT = "deviceclass.resource.kubernetes.io/"
"""Prefix of the extended resource that each class serves."""
PLUGIN, DEVICES = "plugin", "devices"
"""Names of the alternatives."""
EXTENDED_ANNOTATION = "resource.kubernetes.io/extended-resource-claim"
SIDECAR = "Always"


class ExtendedRequest(NamedTuple):
    """Amount of an extended resource that a container asks for."""

    name: str
    """Name of the request in the claim."""
    container: str
    resource: str
    device_class: str
    amount: int
    is_short: bool
    """True for an init container that ends before the others start."""


class ExtendedResources:
    """Device classes by the extended resources that they serve."""

    def __init__(self) -> None:
        self._classes: dict[str, DeviceClassObject] = {}

    def set_class(self, name: str, found: DeviceClassObject | None) -> None:
        """Add or replace a class, or remove it."""
        if found is None:
            self._classes.pop(name, None)
        else:
            self._classes[name] = found

    @property
    def resources(self) -> list[str]:
        """Names of all resources that classes name."""
        return [*dict.fromkeys(filter(None, map(_explicit, self._classes.values())))]

    def class_of(self, resource: str) -> str:
        """Return the class that serves a resource, the youngest of several; empty if none does."""
        if resource.startswith(IMPLICIT):
            name = resource.removeprefix(IMPLICIT)
            return name if name in self._classes else ""
        serving = [one for one in self._classes.values() if _explicit(one) == resource]
        return min(serving, key=_youngest_first).metadata.name if serving else ""

    def resource_of(self, device_class: str) -> str:
        """Return the extended resource that a class names; empty without one."""
        found = self._classes.get(device_class)
        return "" if found is None else _explicit(found)

    def requests_of(self, pod: Pod) -> list[ExtendedRequest]:
        """Return what the containers of a pod ask for of resources that classes serve."""
        found = []
        long = 0
        for number, (container, is_short) in enumerate(_containers(pod)):
            wanted = container.resources.requests if container.resources is not None else {}
            for resource in sorted(wanted):
                device_class = self.class_of(resource) if "/" in resource else ""
                amount = _count(resource, wanted[resource]) if device_class else 0
                if amount:
                    name = f"container-{number}-request-{long}"
                    long += 1
                    found.append(
                        ExtendedRequest(name, container.name, resource, device_class, amount, is_short)
                    )
        return found

    def spec_of(self, pod: Pod) -> Json:
        """Return the specification of the claim with both alternatives; empty if nothing is asked for.

        Devices of init containers that end before the others start would have to be shared with these. So
        such pods run only where a device plugin serves them.
        """
        requests = self.requests_of(pod)
        if not requests:
            return {}
        has_short = any(one.is_short for one in requests)
        return {"devices": {"requests": [_request(one, by_plugin_only=has_short) for one in requests]}}

    def plugins_of(self, node: Node) -> Json | None:
        """Return the slice that stands for the device plugins of a node; None if it has none of a class."""
        served = [
            resource
            for resource, amount in sorted(node.status.allocatable.items())
            if "/" in resource and self.class_of(resource) and _count(resource, amount)
        ]
        if not served:
            return None
        name = node.metadata.name
        devices = [
            {
                "name": f"plugin-{number}",
                "attributes": {"resource": {"string": resource}},
                "allowMultipleAllocations": True,
            }
            for number, resource in enumerate(served)
        ]
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        return {
            "metadata": {"name": plugin_slice(name)},
            "spec": {"driver": PLUGINS, "pool": pool, "nodeName": name, "devices": devices},
        }


PLUGIN_CLASS: Json = {
    "metadata": {"name": PLUGINS},
    "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{PLUGINS}"'}}]},
}
"""Class of the devices that stand for device plugins."""


def plugin_slice(node: str) -> str:
    """Return the name of the slice that stands for the device plugins of a node; no other can have it."""
    return f"{PLUGINS}/{node}"


def may_be_extended(pod: Pod) -> bool:
    """Return True if a container asks for a resource that is none of Kubernetes itself."""
    return any(
        "/" in resource
        for container, _ in _containers(pod)
        if container.resources is not None
        for resource in container.resources.requests
    )


def device_allocation(allocation: Json) -> Json | None:
    """Return the devices of the claim without those that stand for device plugins; None without any."""
    devices = allocation.get("devices") or {}
    results = [
        {**one, "request": _plain(one["request"])}
        for one in devices.get("results") or ()
        if one.get("driver") != PLUGINS
    ]
    if not results:
        return None
    kept = {one["request"] for one in results}
    config = []
    for one in devices.get("config") or ():
        names = [_plain(name) for name in one.get("requests") or () if _plain(name) in kept]
        if names:
            config.append({**one, "requests": names})
    found: Json = {**allocation, "devices": {"results": results}}
    if config:
        found["devices"]["config"] = config
    return found


def claim_body(pod: Pod, requests: Iterable[ExtendedRequest], name: str, mark: str) -> Json:
    """Return the claim for these requests, with the annotation `mark`."""
    meta = pod.metadata
    owner = {"apiVersion": "v1", "kind": "Pod", "name": meta.name, "uid": meta.uid, "controller": True}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": name,
            "namespace": meta.namespace,
            "annotations": {EXTENDED_ANNOTATION: "true", mark: "true"},
            "ownerReferences": [owner],
        },
        "spec": {"devices": {"requests": [{"name": one.name, "exactly": _devices(one)} for one in requests]}},
    }


def pod_status(requests: Iterable[ExtendedRequest], claim: str) -> Json:
    """Return the fields of a pod's status that name the claim and its requests."""
    mappings = [
        {"containerName": one.container, "resourceName": one.resource, "requestName": one.name}
        for one in requests
    ]
    return {"extendedResourceClaimStatus": {"resourceClaimName": claim, "requestMappings": mappings}}


def _containers(pod: Pod) -> Iterator[tuple[Container, bool]]:
    for container in pod.spec.init_containers:
        yield container, container.restart_policy != SIDECAR
    for container in pod.spec.containers:
        yield container, False


def _request(one: ExtendedRequest, *, by_plugin_only: bool) -> Json:
    selector = f'device.attributes["{PLUGINS}"].resource == "{one.resource}"'
    plugin = {
        "name": PLUGIN,
        "deviceClassName": PLUGINS,
        "allocationMode": "ExactCount",
        "count": 1,
        "selectors": [{"cel": {"expression": selector}}],
    }
    devices = [] if by_plugin_only else [{"name": DEVICES} | _devices(one)]
    return {"name": one.name, "firstAvailable": [plugin, *devices]}


def _devices(one: ExtendedRequest) -> Json:
    return {"deviceClassName": one.device_class, "allocationMode": "ExactCount", "count": one.amount}


def _plain(name: str) -> str:
    """Return the name of a request without its alternative."""
    return name.partition("/")[0]


def _explicit(found: DeviceClassObject) -> str:
    return str(found.spec.get("extendedResourceName") or "")


def _youngest_first(found: DeviceClassObject) -> tuple[float, str]:
    created: datetime.datetime | None = found.metadata.creation_timestamp
    return (-created.timestamp() if created is not None else 0.0, found.metadata.name)


def _count(resource: str, text: str) -> int:
    try:
        return amount_of(resource, text)
    except QuantityError:
        return 0
