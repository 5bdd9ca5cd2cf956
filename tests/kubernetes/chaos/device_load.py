"""Devices of a cluster under chaos, and work that asks for them by claims, of groups too, and by amounts."""

from __future__ import annotations

from typing import Any

from tests.kubernetes.chaos.invariants import DEVICES
from tests.kubernetes.cluster import Obj
from tests.kubernetes.cluster.objects import container
from tests.kubernetes.scenarios.fake_driver import GPU, gpu_class, gpus, template

CARDS = 5
"""Devices of a node."""
PLUGGED = "node-0"
"""Node whose devices a device plugin offers."""
TEMPLATES = {1: "one", 2: "two"}
"""Templates of claims by their number of devices."""
POD_GROUPS = "scheduling.k8s.io/v1alpha2"


def driver_objects(nodes: list[str]) -> list[Obj]:
    """Return class, slices and templates of claims."""
    slices = [gpus(name, CARDS) for name in nodes if name != PLUGGED]
    return [
        gpu_class(extendedResourceName=GPU),
        *slices,
        *(template(t, count=n) for n, t in TEMPLATES.items()),
    ]


def claims(count: int) -> Obj:
    """Return the arguments of a pod with a claim of its own to this number of devices."""
    return _claiming(TEMPLATES[count]) | {"annotations": {DEVICES: str(count)}}


def amounts(count: int) -> Obj:
    """Return the arguments of a pod that asks for this amount of the extended resource."""
    return {"containers": [container(cpu="500m", memory="1Gi", requests={GPU: str(count)})]}


def member(group: str, count: int) -> Obj:
    """Return the arguments of a pod of a PodGroup that shares a claim to this number of devices."""
    return _claiming(TEMPLATES[count]) | {"schedulingGroup": {"podGroupName": group}}


def _claiming(name: str) -> Obj:
    main = container(cpu="500m", memory="1Gi")
    main["resources"]["claims"] = [{"name": "gpu"}]
    entry = {"name": "gpu", "resourceClaimTemplateName": name}
    return {"containers": [main], "resourceClaims": [entry]}


def pod_group(name: str, least: int, count: int) -> Obj:
    """Return a PodGroup of which this many pods start together, with a claim of all to `count` devices."""
    spec: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": least}}}
    spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": TEMPLATES[count]}]
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": POD_GROUPS, "kind": "PodGroup", "metadata": meta, "spec": spec}
