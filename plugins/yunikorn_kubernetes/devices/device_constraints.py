"""Constraints of a claim on an attribute: one value for all devices, or a different one for each.

Kubernetes 1.36.3 compares a device only with the last one of each request, so it may give several devices of
one request the same value of a distinct attribute. Here all values are different.
"""

from __future__ import annotations

from collections.abc import Hashable

from yunikorn_kubernetes.devices.device_objects import (
    AttributeValue,
    DeviceConstraint,
    UnsupportedValue,
)
from yunikorn_kubernetes.devices.node_pools import PlacedDevice


class ConstraintState:
    """Values of the attribute of the devices that have been chosen so far."""

    def __init__(self, constraint: DeviceConstraint) -> None:
        """Create it without devices."""
        self._constraint = constraint
        self._values: list[AttributeValue] = []

    def add(self, request: str, name: str, placed: PlacedDevice) -> bool:
        """Add a device if the constraint allows it; else return False."""
        constraint = self._constraint
        if not constraint.concerns(request, name):
            return True
        value = placed.device.attribute(placed.id.driver, constraint.attribute)
        if value is None or not self._allows(value):
            return False
        self._values.append(value)
        return True

    def _allows(self, value: AttributeValue) -> bool:
        if not self._values:
            return True
        if type(value) is UnsupportedValue:
            return False
        if not self._constraint.is_distinct:
            return _equal(value, self._values[-1])
        return not any(_equal(value, one) for one in self._values)

    def state(self) -> Hashable:
        """Return all that the next answer depends on."""
        if self._constraint.is_distinct:
            return frozenset((type(value), value) for value in self._values)
        return (type(self._values[0]), self._values[0]) if self._values else None

    def remove(self, request: str, name: str) -> None:
        """Remove the device that was added last."""
        if self._constraint.concerns(request, name):
            self._values.pop()


def _equal(one: AttributeValue, other: AttributeValue) -> bool:
    return type(one) is type(other) and one == other
