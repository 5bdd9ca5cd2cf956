"""Devices that selectors admit; a result holds for all devices that look alike."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from yunikorn_kubernetes.devices.cel.cel_syntax import SelectorError
from yunikorn_kubernetes.devices.device_objects import (
    Device,
    UnsupportedValue,
    VersionValue,
)
from yunikorn_kubernetes.devices.node_pools import NodePools

if TYPE_CHECKING:
    from yunikorn_kubernetes.devices.cel.cel_values import CelMap
    from yunikorn_kubernetes.devices.cel.device_selector import CompiledSelector, Read

MOST_RESULTS_KEPT = 65_536
"""Number of distinct devices whose results are kept for a selector."""
MOST_SELECTORS = 1024
"""Number of selectors whose results are kept."""


class SelectorResults:
    """Results of selectors."""

    def __init__(self) -> None:
        """Create it without results."""
        self._selectors: dict[str, _OfSelector] = {}

    def matches(self, expression: str, driver: str, device: Device) -> bool:
        """Return True if a device matches. Raises `SelectorError` if there is no result."""
        found = self._selectors.get(expression)
        if found is None:
            if len(self._selectors) >= MOST_SELECTORS:
                self._selectors.clear()
            found = self._selectors[expression] = _OfSelector(expression)
        return found.matches(driver, device)


class _OfSelector:
    """Results of one selector, by what it reads."""

    def __init__(self, expression: str) -> None:
        # Imported here because expressions slow down the start.
        from yunikorn_kubernetes.devices.cel.device_selector import compile_selector

        self._compiled = compile_selector(expression)
        self._results: dict[Hashable, bool | SelectorError] = {}
        reads = None if isinstance(self._compiled, SelectorError) else self._compiled.reads
        self._key = _everything if reads is None else _key_of(sorted(reads))

    def matches(self, driver: str, device: Device) -> bool:
        compiled = self._compiled
        if isinstance(compiled, SelectorError):
            raise compiled
        key = self._key(driver, device)
        found = self._results.get(key)
        if found is None:
            if len(self._results) >= MOST_RESULTS_KEPT:
                self._results.clear()
            found = self._results[key] = _result(compiled, driver, device)
        if isinstance(found, SelectorError):
            raise found
        return found


def _result(compiled: CompiledSelector, driver: str, device: Device) -> bool | SelectorError:
    try:
        return compiled.matches(_value(driver, device))
    except SelectorError as error:
        return error


def _value(driver: str, device: Device) -> CelMap:
    from yunikorn_kubernetes.devices.cel.device_selector import device_value

    found: list[tuple[str, object]] = []
    for name, value in zip(device.attributes.names, device.values, strict=True):
        if isinstance(value, UnsupportedValue):
            raise SelectorError(f"attribute {name} of device {device.name} is a list, which is not supported")
        found.append((name, value.version if isinstance(value, VersionValue) else value))
    capacity = ((name, one.value) for name, one in device.traits.capacity)
    return device_value(driver, found, capacity, is_shared=device.traits.is_shared)


def _everything(driver: str, device: Device) -> Hashable:
    return driver, device.attributes, tuple(map(type, device.values)), device.values, device.traits


def _key_of(reads: list[Read]) -> Callable[[str, Device], Hashable]:
    """Return a function that collects all that an expression reads of a device."""
    attributes = [(f"{domain}/{name}", domain, name) for kind, domain, name in reads if kind == "attributes"]
    has_capacity = any(kind == "capacity" for kind, _, _ in reads)

    def key(driver: str, device: Device) -> Hashable:
        positions, values = device.attributes.positions, device.values
        found: list[Hashable] = [driver, device.traits.is_shared]
        for qualified, domain, name in attributes:
            for one in (qualified, name) if domain == driver else (qualified,):
                at = positions.get(one)
                # The number 1 equals the truth value, but not in an expression.
                found.append(None if at is None else (type(values[at]), values[at]))
        if has_capacity:
            found.append(device.traits.capacity)
        if any(type(value) is UnsupportedValue for value in values):
            found.append(device.attributes)
        return tuple(found)

    return key


class Admission:
    """Devices of a node that the selectors of a class and of a request admit."""

    def __init__(self, pools: NodePools, selectors: tuple[str, ...], results: SelectorResults) -> None:
        """Create it without looking at a device."""
        self._pools = pools
        self._selectors = selectors
        self._results = results
        self._found: list[bool | None] = [None] * len(pools.placed)
        self._unknown = len(pools.placed)

    @property
    def is_complete(self) -> bool:
        """True if all devices have been looked at."""
        return not self._unknown

    def is_known(self, is_taken: Callable[[int], bool]) -> bool:
        """Return True if all devices but those that are taken have been looked at."""
        return not self._unknown or all(
            found is not None or is_taken(at) for at, found in enumerate(self._found)
        )

    def admits(self, at: int) -> bool:
        """Return True if the device at a position is admitted. Raises `SelectorError` without a result."""
        known = self._found[at]
        if known is None:
            known = self._found[at] = self._look_at(at)
            self._unknown -= 1
        return known

    def _look_at(self, at: int) -> bool:
        placed = self._pools.placed[at]
        for expression in self._selectors:
            if not self._results.matches(expression, placed.id.driver, placed.device):
                return False
        if placed.slice.is_per_device:
            return placed.device.traits.nodes.admits(self._pools.name, self._pools.attributes)
        return True
