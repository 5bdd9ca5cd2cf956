"""Devices as amounts of resources, which count in the quotas of queues.

Each device of a class is one unit of a resource: a name that the settings give the class, so that several
classes can share a quota, else the extended resource that the class serves, else `deviceclass/CLASS`.
Before the devices are chosen, the worst case counts. Access of administrators takes no device from others,
and counts nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from yunikorn.resources import Tally, grow
from yunikorn_kubernetes.devices.claim_reading import read_claim
from yunikorn_kubernetes.devices.device_objects import ALL, MOST_RESULTS, DeviceRequest, ResourceClaim
from yunikorn_kubernetes.objects import Json
from yunikorn_kubernetes.predicates.tag_reading import UnreadableText

DEVICE_CLASS = "deviceclass/"
"""Prefix of the resource that counts the devices of a class without a name in the settings."""
PLENTY = 1_000_000
"""Amount of such a resource on a node with devices: whether they suffice is a question to the predicate."""


class DeviceAmounts:
    """Amounts of claims."""

    def __init__(
        self,
        resources: Mapping[str, str],
        extended_resource: Callable[[str], str],
        count_all: Callable[[DeviceRequest], int],
    ) -> None:
        """Name the `resources` of classes.

        `extended_resource` returns the extended resource that a class serves, or an empty text; `count_all`
        how many devices a request for all gets.
        """
        self._resources, self._extended_resource = resources, extended_resource
        self._count_all = count_all

    def resource_of(self, device_class: str) -> str:
        """Return the resource that counts the devices of a class."""
        known = self._resources.get(device_class) or self._extended_resource(device_class)
        return known or f"{DEVICE_CLASS}{device_class}"

    def at_most(self, spec: Json) -> Tally:
        """Return the amounts of a claim in the worst case; for alternatives, the largest of each resource."""
        total: Tally = {}
        for request in _read(spec).requests:
            largest: Tally = {}
            for one in request.alternatives:
                if one.admin_access is not True:
                    resource = self.resource_of(one.device_class)
                    largest[resource] = max(largest.get(resource, 0), self._count(one))
            grow(total, largest)
        return total

    def _count(self, request: DeviceRequest) -> int:
        if request.mode != ALL:
            return min(request.count, MOST_RESULTS)
        return max(1, min(self._count_all(request), MOST_RESULTS))

    def of_results(self, spec: Json, results: Iterable[Json]) -> Tally:
        """Return the amounts of a claim that has these devices."""
        classes = {
            one.name: one.device_class for request in _read(spec).requests for one in request.alternatives
        }
        total: Tally = {}
        for result in results:
            device_class = classes.get(str(result.get("request")))
            if device_class is not None and result.get("adminAccess") is not True:
                grow(total, {self.resource_of(device_class): 1})
        return total


def _read(spec: Json) -> ResourceClaim:
    """Return a claim; one that cannot be read has no requests, and gets no devices."""
    try:
        return read_claim({"metadata": {"name": "claim"}, "spec": spec})
    except UnreadableText:
        return ResourceClaim("", "claim")
