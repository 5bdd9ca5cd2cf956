"""Devices of nodes and tasks in a scenario, as the texts by which the predicate `dynamic-resources` decides.

The names of attribute and tag, and the forms of Kubernetes, are those of docs/kubernetes/predicates.md.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

SLICES = "yunikorn.apache.org/resource-slices"
"""Attribute of a node."""
CLAIMS = "yunikorn.apache.org/resource-claims"
"""Tag of an ask."""
KEPT = 1024
"""Number of texts that equal tasks share."""
Counts = tuple[tuple[str, int], ...]


def slices_text(node: str, devices: Counts) -> str:
    """Return one slice for each class of devices of a node; the class is also their driver."""
    return _compact(
        [
            {
                "metadata": {"name": f"{node}-{device_class}"},
                "spec": {
                    "driver": device_class,
                    "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                    "nodeName": node,
                    "devices": [{"name": f"{device_class}-{number}"} for number in range(count)],
                },
            }
            for device_class, count in devices
        ]
    )


@lru_cache(maxsize=KEPT)
def claims_text(claims: Counts) -> str:
    """Return one claim with a request for each class."""
    requests = [
        {"name": f"request-{number}", "exactly": {"deviceClassName": device_class, "count": count}}
        for number, (device_class, count) in enumerate(claims)
    ]
    classes = {
        device_class: {"selectors": [{"cel": {"expression": f"device.driver == {json.dumps(device_class)}"}}]}
        for device_class, _ in claims
    }
    claim = {"podClaim": "claims", "spec": {"devices": {"requests": requests}}}
    return _compact({"claims": [claim], "classes": classes})


def _compact(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
