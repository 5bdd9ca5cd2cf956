"""Gangs whose members claim devices: one of eight of their node, as in dynamic resource allocation."""

from __future__ import annotations

import json
from typing import Any

import attrs

from benchmarks.workload import Workload, node_name
from yunikorn.interface.messages import AllocationAsk
from yunikorn.resources import Resource
from yunikorn_kubernetes.names import NODE_SLICES, TAG_CLAIMS

DEVICES = 8
"""Number of devices of a node, if that is enough for all tasks."""
DRIVER = "gpu.example.com"
SELECTOR = (
    f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].model == 'large'"
    f" && device.capacity['{DRIVER}'].memory.compareTo(quantity('40Gi')) >= 0"
)
"""Selector of a claim; every device meets it."""


@attrs.frozen
class DeviceGangs(Workload):
    """Workload of gangs; the devices of a node end before its resources do."""

    predicates: tuple[str, ...] = ("dynamic-resources",)
    selector: str = ""
    """Selector of each claim; empty for any device of the class."""

    @property
    def devices(self) -> int:
        """Number of devices of a node."""
        return max(DEVICES, 2 * self.tasks // self.nodes)

    @property
    def capacity(self) -> Resource:
        """Room on each node for twice as many tasks as it has devices."""
        return Resource({name: amount * 2 * self.devices for name, amount in self.asked[0].items()})

    def _attributes(self, number: int) -> dict[str, str]:
        return {**super()._attributes(number), NODE_SLICES: _slices(number, self.devices)}

    def ask(self, task: int, asked: list[Resource]) -> AllocationAsk:
        """Return a request for one device."""
        found = super().ask(task, asked)
        found.tags = {TAG_CLAIMS: self._claims}
        return found

    @property
    def _claims(self) -> str:
        wanted: dict[str, Any] = {"deviceClassName": "gpu", "count": 1}
        if self.selector:
            wanted["selectors"] = [{"cel": {"expression": self.selector}}]
        spec = {"devices": {"requests": [{"name": "one", "exactly": wanted}]}}
        of_class = {"selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]}
        return _text({"claims": [{"podClaim": "gpu", "spec": spec}], "classes": {"gpu": of_class}})


def _slices(number: int, count: int) -> str:
    devices = [
        {
            "name": f"gpu-{device}",
            "attributes": {
                "model": {"string": "large"},
                "index": {"int": device},
                "uuid": {"string": f"gpu-{number}-{device}"},
            },
            "capacity": {"memory": {"value": "80Gi"}},
        }
        for device in range(count)
    ]
    node = node_name(number)
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "pool": pool, "nodeName": node, "devices": devices}
    return _text([{"metadata": {"name": f"{node}-{DRIVER}"}, "spec": spec}])


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
