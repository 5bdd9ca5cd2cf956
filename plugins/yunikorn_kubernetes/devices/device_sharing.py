"""Amounts that a request consumes of a device: requested or by default, rounded up by its rules."""

from __future__ import annotations

from collections.abc import Mapping

from yunikorn_kubernetes.devices.cel.exact_quantity import BILLION, BINARY, ExactQuantity
from yunikorn_kubernetes.devices.device_objects import CapacityPolicy, DeviceCapacity, DeviceTraits

Amounts = tuple[tuple[str, ExactQuantity], ...]


def consumption(requested: Amounts, traits: DeviceTraits) -> Amounts | None:
    """Return what a request consumes of each capacity; None if no device with these traits can serve it."""
    wanted = dict(requested)
    if not wanted.keys() <= {name for name, _ in traits.capacity}:
        return None
    found = []
    for name, capacity in traits.capacity:
        amount = _amount(wanted.get(name), capacity)
        if capacity.policy is not None and _violates(amount, capacity.policy):
            return None
        found.append((name, amount))
    return tuple(found)


def fits(amounts: Amounts, traits: DeviceTraits, *consumed: Mapping[str, int]) -> bool:
    """Return True if a device has room for amounts besides what is consumed."""
    for (name, amount), (_, capacity) in zip(amounts, traits.capacity, strict=True):
        if amount.nanos + sum(one.get(name, 0) for one in consumed) > capacity.value.nanos:
            return False
    return True


def _amount(requested: ExactQuantity | None, capacity: DeviceCapacity) -> ExactQuantity:
    policy = capacity.policy
    if requested is None:
        return capacity.value if policy is None or policy.default is None else policy.default
    if policy is None:
        return requested
    if policy.minimum is not None:
        return _in_range(requested, policy.minimum, policy.step)
    # The first valid value that is not smaller; values are ascending.
    return next((one for one in policy.valid_values if one.nanos >= requested.nanos), requested)


def _in_range(requested: ExactQuantity, minimum: ExactQuantity, step: ExactQuantity | None) -> ExactQuantity:
    if requested.nanos < minimum.nanos:
        return minimum
    if step is None:
        return requested
    start, size = minimum.rounded_up(), step.rounded_up()
    steps = -(-(requested.rounded_up() - start) // size)
    return ExactQuantity((start + steps * size) * BILLION, 0, BINARY)


def _violates(amount: ExactQuantity, policy: CapacityPolicy) -> bool:
    if policy.default is not None and amount.nanos == policy.default.nanos:
        return False
    if policy.has_range:
        if policy.maximum is not None and amount.nanos > policy.maximum.nanos:
            return True
        if policy.step is None or policy.minimum is None:
            return False
        return (amount.rounded_up() - policy.minimum.rounded_up()) % policy.step.rounded_up() != 0
    return bool(policy.valid_values) and all(amount.nanos != one.nanos for one in policy.valid_values)
