"""Allocations of drawn or written cases, in a form that can be compared."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.kubernetes.devices.objects import Json
from yunikorn_kubernetes.devices.claim_reading import read_claim, read_result
from yunikorn_kubernetes.devices.device_allocator import DeviceAllocator, NoDevices
from yunikorn_kubernetes.devices.device_objects import DeviceAllocation
from yunikorn_kubernetes.devices.device_search import AllocationError
from yunikorn_kubernetes.devices.device_taint_rules import read_taint_rule, with_taints
from yunikorn_kubernetes.devices.device_usage import DeviceUsage
from yunikorn_kubernetes.devices.node_pools import SliceCatalog
from yunikorn_kubernetes.devices.selected_devices import SelectorResults
from yunikorn_kubernetes.devices.slice_reading import SliceReader, read_device_class

SHARE = "share"
Answer = tuple[Any, ...]


def allocator_of(
    case: Json, results: SelectorResults | None = None, usage: DeviceUsage | None = None
) -> DeviceAllocator:
    """Return an allocator for a case as the reference gets it."""
    reader = SliceReader()
    rules = [rule for one in case.get("rules", ()) if (rule := read_taint_rule(one["spec"])) is not None]

    def tainted(found: Json) -> Json:
        if not rules:
            return found
        spec = found["spec"]
        return with_taints(
            found, [one for one in rules if one.concerns(spec["driver"], spec["pool"]["name"])]
        )

    return DeviceAllocator(
        SliceCatalog([reader.read(tainted(one)) for one in case["slices"]]),
        {one["metadata"]["name"]: read_device_class(one) for one in case["classes"]},
        usage or DeviceUsage(read_result(one) for one in case.get("taken", ())),
        results,
    )


def ask(
    case: Json, results: SelectorResults | None = None
) -> dict[str, tuple[DeviceAllocation, ...] | NoDevices | AllocationError]:
    """Return our answers for each node of a case."""
    allocator, claims = allocator_of(case, results), [read_claim(one) for one in case["claims"]]
    found: dict[str, tuple[DeviceAllocation, ...] | NoDevices | AllocationError] = {}
    for node in case["nodes"]:
        name = node["metadata"]["name"]
        try:
            found[name] = allocator.allocate(name, node["metadata"].get("labels", {}), claims)
        except AllocationError as error:
            found[name] = error
    return found


def form_of(answer: tuple[DeviceAllocation, ...] | NoDevices | AllocationError) -> Answer:
    """Return one of our answers in the form that is compared."""
    if isinstance(answer, AllocationError):
        return "error", answer.is_local
    if isinstance(answer, NoDevices):
        return ("none",)
    return "allocated", json.dumps([one.to_json(lambda: SHARE) for one in answer], sort_keys=True)


def form_of_reference(answer: Json) -> Answer:
    """Return an answer of the reference in the same form; of the ids of shares, only the presence counts."""
    if answer.get("error"):
        return "error", bool(answer.get("local"))
    if answer["allocations"] is None:
        return ("none",)
    for allocation in answer["allocations"]:
        for result in allocation["devices"].get("results") or ():
            if "shareID" in result:
                result["shareID"] = SHARE
    return "allocated", json.dumps(answer["allocations"], sort_keys=True)


def devices_of(answer: tuple[DeviceAllocation, ...] | NoDevices | AllocationError) -> Sequence[str]:
    """Return the names of all devices that are allocated."""
    assert isinstance(answer, tuple), answer
    return [result.device.device for allocation in answer for result in allocation.results]
