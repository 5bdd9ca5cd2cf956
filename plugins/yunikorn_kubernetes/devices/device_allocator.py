"""Allocation of devices: which devices of a node serve the claims of a pod, or why none do.

The result is that of the structured allocator of Kubernetes 1.36.3, except where that one would give away a
device wrongly, or refuse one without need, see docs/decisions/0212-selectors-and-devices.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import attrs

from yunikorn_kubernetes.devices.cel.cel_syntax import SelectorError
from yunikorn_kubernetes.devices.device_objects import (
    ALL,
    NODE_NAME,
    DeviceAllocation,
    DeviceClass,
    DeviceId,
    DeviceResult,
    Json,
    NodeChoice,
    ResourceClaim,
)
from yunikorn_kubernetes.devices.device_search import (
    AllocationError,
    Choice,
    ChosenRequest,
    DeviceSearch,
    Obstacle,
    WantedDevices,
)
from yunikorn_kubernetes.devices.device_usage import DeviceUsage
from yunikorn_kubernetes.devices.node_pools import NodePools, SliceCatalog
from yunikorn_kubernetes.devices.selected_devices import SelectorResults

SHOWN_SELECTORS = 120
"""Number of characters of selectors in a reason."""


@attrs.frozen
class NoDevices:
    """Claims that cannot be served on a node, and the reason."""

    reason: str


class DeviceAllocator:
    """Chooses devices on a node. It changes nothing: who uses the result adds it to the usage."""

    def __init__(
        self,
        catalog: SliceCatalog,
        classes: Mapping[str, DeviceClass],
        usage: DeviceUsage,
        results: SelectorResults | None = None,
    ) -> None:
        """Create an allocator; results of selectors can be kept for the next one."""
        self._catalog = catalog
        self._classes = classes
        self._usage = usage
        self._results = results or SelectorResults()

    def allocate(
        self, node: str, attributes: Mapping[str, str], claims: Sequence[ResourceClaim]
    ) -> tuple[DeviceAllocation, ...] | NoDevices:
        """Return an allocation for each claim, or the reason why the node cannot serve them all.

        `attributes` are those of the node. Raises `AllocationError` for a claim or a class that needs to be
        corrected, and for devices that selectors cannot be evaluated for.
        """
        pools = self._catalog.pools_of(node, attributes)
        search = DeviceSearch(pools, claims, self._classes, self._usage, self._results)
        if search.run():
            return tuple(
                _allocation(claim, requests, chosen, node)
                for claim, requests, chosen in zip(claims, search.requests, search.chosen, strict=True)
            )
        invalid = next((pool for pool in pools.pools if pool.problem), None)
        reason = _reason(pools, claims, search)
        if invalid is not None:
            raise AllocationError(f"{reason}; pool {invalid} is invalid: {invalid.problem}", is_local=True)
        return NoDevices(reason)

    def usable(
        self, node: str, attributes: Mapping[str, str], claim: ResourceClaim
    ) -> tuple[DeviceId, ...] | None:
        """Return the devices of a node of which such claims get the first ones that are free.

        None where only a search finds out. For claims of one request without alternatives and constraints,
        on nodes without counters.
        """
        pools = self._catalog.pools_of(node, attributes)
        try:
            return DeviceSearch(pools, [claim], self._classes, DeviceUsage(), self._results).interchangeable()
        except AllocationError:
            return None


# -- results ---------------------------------------------------------------------------------------------


def _allocation(
    claim: ResourceClaim, requests: Sequence[ChosenRequest], chosen: Sequence[Choice], node: str
) -> DeviceAllocation:
    selected = [request.alternatives[request.selected] for request in requests]
    return DeviceAllocation(
        tuple(map(_result, chosen)), tuple(_config(claim, requests, selected)), _node_selector(chosen, node)
    )


def _result(choice: Choice) -> DeviceResult:
    request, traits = choice.wanted.request, choice.placed.device.traits
    return DeviceResult(
        request.name,
        choice.placed.id,
        choice.wanted.is_admin,
        choice.is_share,
        choice.amounts,
        request.toleration_json,
        traits.binding_conditions or (),
        traits.binding_failure_conditions,
    )


def _config(
    claim: ResourceClaim, requests: Sequence[ChosenRequest], selected: Sequence[WantedDevices]
) -> list[Json]:
    """Return the settings of classes, each once, and those of the claim."""
    found: list[Json] = []
    of_class: dict[str, list[Json]] = {}
    for wanted in selected:
        device_class = wanted.device_class
        known = of_class.get(device_class.name)
        if known is not None:
            for entry in known:
                entry["requests"].append(wanted.request.name)
            continue
        known = of_class[device_class.name] = [
            {"source": "FromClass", "requests": [wanted.request.name]} | entry
            for entry in device_class.config
        ]
        found += known
    for entry in claim.config:
        names = entry.get("requests") or []
        plain = {key: value for key, value in entry.items() if key != "requests"}
        if not names:
            found.append({"source": "FromClaim"} | plain)
            continue
        for request, wanted in zip(requests, selected, strict=True):
            if wanted.parent in names or (request.is_prioritized and wanted.request.name in names):
                found.append({"source": "FromClaim", "requests": names} | plain)
    return found


def _node_selector(chosen: Sequence[Choice], node: str) -> Json | None:
    """Return the nodes that can use all devices: one of them, some by their labels, or None for all."""
    fields: list[Json] = []
    expressions: list[Json] = []
    for choice in chosen:
        traits, one = choice.placed.device.traits, choice.placed.slice
        nodes = traits.nodes if one.is_per_device else one.nodes or NodeChoice()
        if nodes.name or traits.binds_to_node:
            term: Json = {"matchFields": [{"key": NODE_NAME, "operator": "In", "values": [node]}]}
            return {"nodeSelectorTerms": [term]}
        _add_new(fields, nodes.fields)
        _add_new(expressions, nodes.expressions)
    if not fields and not expressions:
        return None
    term = {"matchExpressions": expressions} if expressions else {}
    if fields:
        term["matchFields"] = fields
    return {"nodeSelectorTerms": [term]}


def _add_new(known: list[Json], texts: Sequence[str]) -> None:
    for text in texts:
        found: Json = json.loads(text)
        if not any(
            one["key"] == found["key"]
            and one["operator"] == found["operator"]
            and set(one.get("values") or ()) == set(found.get("values") or ())
            for one in known
        ):
            known.append(found)


# -- reasons ---------------------------------------------------------------------------------------------


def _reason(pools: NodePools, claims: Sequence[ResourceClaim], search: DeviceSearch) -> str:
    """Return why there is no solution; the search has given everything back."""
    for claim, requests in zip(claims, search.requests, strict=True):
        for request in requests:
            texts = [_shortage(wanted, pools, search) for wanted in request.alternatives]
            if all(texts):
                return f"claim {claim.key}: {'; '.join(texts)}{_updating(pools)}"
    names = ", ".join(claim.key for claim in claims)
    return (
        f"claims {names}: each request has enough devices, but constraints, counters, capacity or the number"
        f" of devices do not allow them together{_updating(pools)}"
    )


def _shortage(wanted: WantedDevices, pools: NodePools, search: DeviceSearch) -> str:
    """Return why a request alone finds too few devices; empty if it finds enough."""
    obstacles: set[Obstacle] = set()
    positions = wanted.everything if wanted.request.mode == ALL else range(len(pools.placed))
    usable = 0
    for at in positions:
        try:
            # First the selectors: a device of another model is not missing because it is taken.
            is_selected = wanted.admission.admits(at)
            obstacle = search.obstacle(wanted, at) if is_selected else Obstacle.SELECTOR
        except (AllocationError, SelectorError):  # The search has not come to this device.
            obstacle = Obstacle.SELECTOR
        if obstacle is None:
            usable += 1
        else:
            obstacles.add(obstacle)
    request = wanted.request
    kind = f"of class {wanted.device_class.name}"
    if request.selectors:
        kind += f" with {' and '.join(request.selectors)[:SHOWN_SELECTORS]}"
    if not positions or (obstacles == {Obstacle.SELECTOR} and not usable):
        return f"no device {kind}, for request {request.name}"
    if usable >= wanted.count:
        return ""
    # Without numbers of obstacles, which differ from node to node: people see one reason for all nodes.
    others = [one.value for one in Obstacle if one in obstacles and one is not Obstacle.SELECTOR]
    why = f" (others are {', '.join(others)})" if others else ""
    return f"{usable} of {wanted.count} devices {kind} can be had, for request {request.name}{why}"


def _updating(pools: NodePools) -> str:
    names = [str(pool) for pool in pools.pools if pool.is_incomplete]
    return f"; pools being updated: {', '.join(names)}" if names else ""
