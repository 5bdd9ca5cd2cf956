"""Search for devices by trying everything, with rules written a second time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, product

from yunikorn_kubernetes.devices.cel.cel_values import CelMap
from yunikorn_kubernetes.devices.cel.device_selector import CompiledSelector, device_value
from yunikorn_kubernetes.devices.device_objects import (
    ALL,
    MOST_RESULTS,
    DeviceClass,
    DeviceConstraint,
    DeviceId,
    DeviceRequest,
    ResourceClaim,
    VersionValue,
)
from yunikorn_kubernetes.devices.device_sharing import consumption
from yunikorn_kubernetes.devices.device_usage import DeviceUsage
from yunikorn_kubernetes.devices.node_pools import NodePools, PlacedDevice

Part = tuple[int, str, DeviceRequest, PlacedDevice]
"""Number of the claim, name of the request, alternative, device."""


def has_solution(
    pools: NodePools,
    claims: Sequence[ResourceClaim],
    classes: dict[str, DeviceClass],
    usage: DeviceUsage,
) -> bool:
    """Return True if any choice of devices serves all claims."""
    choices = [
        (number, request.name, request.alternatives)
        for number, claim in enumerate(claims)
        for request in claim.requests
    ]
    for selected in product(*(alternatives for _, _, alternatives in choices)):
        options = [
            list(_options(number, name, one, pools, classes, usage))
            for (number, name, _), one in zip(choices, selected, strict=True)
        ]
        for parts in product(*options):
            if _is_valid([one for part in parts for one in part], claims, usage):
                return True
    return False


def _options(
    number: int,
    name: str,
    request: DeviceRequest,
    pools: NodePools,
    classes: dict[str, DeviceClass],
    usage: DeviceUsage,
) -> Iterator[list[Part]]:
    selectors = classes[request.device_class].selectors + request.selectors
    fitting = [
        one
        for one in pools.placed
        if all(CompiledSelector(selector).matches(_value(one)) for selector in selectors)
        and (not one.slice.is_per_device or one.device.traits.nodes.admits(pools.name, pools.attributes))
        and consumption(request.capacity, one.device.traits) is not None
    ]
    if request.mode == ALL:
        fitting = [one for one in fitting if _has_room([(number, name, request, one)], usage)]
        if fitting:
            yield [(number, name, request, one) for one in fitting]
        return
    for some in combinations(fitting, request.count):
        yield [(number, name, request, one) for one in some]


def _value(one: PlacedDevice) -> CelMap:
    device = one.device
    return device_value(
        one.id.driver,
        [
            (name, value.version if isinstance(value, VersionValue) else value)
            for name, value in zip(device.attributes.names, device.values, strict=True)
        ],
        [(name, capacity.value) for name, capacity in device.traits.capacity],
        is_shared=device.traits.is_shared,
    )


def _is_valid(parts: Sequence[Part], claims: Sequence[ResourceClaim], usage: DeviceUsage) -> bool:
    if max(Counter(number for number, *_ in parts).values(), default=0) > MOST_RESULTS:
        return False
    owners: dict[object, list[Part]] = {}
    for part in parts:
        owners.setdefault(part[3].id, []).append(part)
    for mine in owners.values():
        placed = mine[0][3]
        if placed.device.traits.is_shared:
            if any(not one[2].admin_access for one in mine) and usage.is_taken(placed.id):
                return False
            continue
        if not _is_exclusive(mine) or (
            any(not one[2].admin_access for one in mine) and usage.is_taken(placed.id)
        ):
            return False
    return (
        all(_tolerates(one) for one in parts)
        and _has_room(parts, usage)
        and _has_counters(
            [mine[0][3] for mine in owners.values() if any(not p[2].admin_access for p in mine)], usage
        )
        and all(
            _holds(constraint, [one for one in parts if one[0] == number])
            for number, claim in enumerate(claims)
            for constraint in claim.constraints
        )
    )


def _is_exclusive(parts: Sequence[Part]) -> bool:
    """Return True for one owner, or for administrators of different claims who come after the owner."""
    numbers = [part[0] for part in parts]
    others = [index for index, part in enumerate(parts) if not part[2].admin_access]
    return len(set(numbers)) == len(numbers) and others in ([], [0])


def _tolerates(part: Part) -> bool:
    _, _, request, placed = part
    return all(
        taint.effect == "None" or any(one.tolerates(taint) for one in request.tolerations)
        for taint in placed.device.traits.taints
    )


def _has_room(parts: Sequence[Part], usage: DeviceUsage) -> bool:
    used: Counter[tuple[object, str]] = Counter()
    for _, _, request, placed in parts:
        for name, amount in consumption(request.capacity, placed.device.traits) or ():
            used[placed.id, name] += amount.nanos
            if not placed.device.traits.is_shared:
                used[placed.id, name] = amount.nanos
    for _, _, _, placed in parts:
        for name, capacity in placed.device.traits.capacity:
            if used[placed.id, name] + usage.consumed(placed.id).get(name, 0) > capacity.value.nanos:
                return False
    return True


def _has_counters(devices: Sequence[PlacedDevice], usage: DeviceUsage) -> bool:
    for pool in {one.pool for one in devices}:
        used: Counter[tuple[str, str]] = Counter()
        chosen = {one.device.name for one in devices if one.pool is pool}
        needs_some = False
        for one in (*pool.slices, *pool.others):
            for device in one.devices:
                key = (pool.driver, pool.name, device.name)
                known = any(
                    usage.is_taken(placed.id) or usage.is_shared(placed.id)
                    for placed in [PlacedDevice(_id(key), device, one, pool)]
                )
                is_new = device.name in chosen and not known
                needs_some = needs_some or (is_new and bool(device.traits.consumes))
                if known or is_new:
                    for use in device.traits.consumes:
                        for name, amount in use.counters:
                            used[use.counter_set, name] += amount
        if needs_some and any(used[key] > amount for key, amount in pool.counters.items()):
            return False
    return True


def _id(key: tuple[str, str, str]) -> DeviceId:
    return DeviceId(*key)


def _holds(constraint: DeviceConstraint, parts: Sequence[Part]) -> bool:
    values = [
        placed.device.attribute(placed.id.driver, constraint.attribute)
        for _, name, request, placed in parts
        if constraint.concerns(name, request.name)
    ]
    if None in values:
        return False
    count = len({(type(value), value) for value in values})
    return count == len(values) if constraint.is_distinct else count <= 1
