"""Short ways to write slices, classes and claims as the API has them."""

from __future__ import annotations

from typing import Any

DRIVER = "gpu.example.com"
Json = dict[str, Any]


def value(found: bool | int | str) -> Json:
    """Return an attribute; a text that begins with `v` and a digit is a version."""
    if isinstance(found, bool):
        return {"bool": found}
    if isinstance(found, int):
        return {"int": found}
    if found[:1] == "v" and found[1:2].isdecimal():
        return {"version": found[1:]}
    return {"string": found}


def device(name: str, capacity: dict[str, str | Json] | None = None, **fields: Any) -> Json:
    """Return a device; fields that the API does not have are attributes."""
    known = {"taints", "consumesCounters", "bindsToNode", "bindingConditions", "allowMultipleAllocations"}
    known |= {"nodeName", "allNodes", "nodeSelector", "bindingFailureConditions"}
    found: Json = {"name": name}
    found |= {key: one for key, one in fields.items() if key in known}
    attributes = {key.replace("__", "/"): value(one) for key, one in fields.items() if key not in known}
    if attributes:
        found["attributes"] = attributes
    if capacity:
        found["capacity"] = {
            key: one if isinstance(one, dict) else {"value": one} for key, one in capacity.items()
        }
    return found


def resource_slice(name: str, *devices: Json, pool: str = "", node: str = "node", **spec: Any) -> Json:
    """Return a slice, of one node unless the specification says otherwise."""
    where = (
        {"nodeName": node} if not {"allNodes", "nodeSelector", "perDeviceNodeSelection"} & spec.keys() else {}
    )
    generation, count = spec.pop("generation", 1), spec.pop("count", 1)
    return {
        "metadata": {"name": name},
        "spec": {
            "driver": DRIVER,
            "pool": {"name": pool or node, "generation": generation, "resourceSliceCount": count},
            "devices": list(devices),
        }
        | where
        | spec,
    }


def device_class(name: str, *selectors: str, **spec: Any) -> Json:
    """Return a device class."""
    return {
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": one}} for one in selectors]} | spec,
    }


def wanted(name: str, *selectors: str, count: int = 1, **fields: Any) -> Json:
    """Return a request for exactly these devices."""
    return {"name": name, "exactly": alternative("", *selectors, count=count, **fields)}


def alternative(name: str, *selectors: str, count: int = 1, **fields: Any) -> Json:
    """Return one of the alternatives of a request; without a name, the devices of a plain request."""
    found: Json = {"name": name} if name else {}
    found |= {"deviceClassName": "gpu", "allocationMode": "ExactCount"}
    if fields.get("allocationMode") != "All":
        found["count"] = count
    if selectors:
        found["selectors"] = [{"cel": {"expression": one}} for one in selectors]
    return found | fields


def claim(name: str, *requests: Json, **devices: Any) -> Json:
    """Return a claim."""
    return {
        "metadata": {"namespace": "default", "name": name},
        "spec": {"devices": {"requests": list(requests)} | devices},
    }
