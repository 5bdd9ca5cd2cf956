"""Pools of devices that a node can use.

Rules of Kubernetes: only the newest generation of a pool counts. A pool of which slices are missing is being
updated, and gives no device. Pools are ordered by driver and name, those with binding conditions last; slices
by name; devices as in the slice. The first devices that serve a claim are taken, so drivers steer by names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeVar

from yunikorn_kubernetes.devices.device_objects import Device, DeviceId, ResourceSlice

MOST_KEPT = 64
"""Number of results that the pools of a node keep."""
Counters = dict[tuple[str, str], int]
"""Amounts in billionths, by set and counter."""
_PoolId = tuple[str, str]
_Found = TypeVar("_Found")


class PlacedDevice(NamedTuple):
    """A device with its slice and its pool."""

    id: DeviceId
    device: Device
    slice: ResourceSlice
    pool: NodePool


class NodePool:
    """A pool of one driver, as far as a node can use it."""

    def __init__(self, driver: str, name: str) -> None:
        """Create a pool without slices."""
        self.driver = driver
        self.name = name
        self.is_incomplete = False
        self.problem = ""
        """Reason why the pool is invalid."""
        self.slices: tuple[ResourceSlice, ...] = ()
        """Slices with devices for the node."""
        self.others: tuple[ResourceSlice, ...] = ()
        """Slices with devices for other nodes only; they share the counters."""
        self.counters: Counters = {}

    def __str__(self) -> str:
        return f"{self.driver}/{self.name}"

    @property
    def is_usable(self) -> bool:
        """True if devices of the pool can be allocated."""
        return not self.is_incomplete and not self.problem

    @property
    def has_binding_conditions(self) -> bool:
        """True if a device has to be made ready before its pod can start."""
        return any(
            device.traits.binding_conditions is not None for one in self.slices for device in one.devices
        )

    def free_counters(self, is_allocated: Callable[[DeviceId], bool]) -> Counters:
        """Return the counters without those that allocated devices take."""
        free = dict(self.counters)
        for one in (*self.slices, *self.others):
            for device in one.devices:
                if device.traits.consumes and is_allocated(DeviceId(self.driver, self.name, device.name)):
                    for use in device.traits.consumes:
                        for name, amount in use.counters:
                            free[use.counter_set, name] -= amount
        return free


class NodePools:
    """All pools of a node, in the order in which devices are tried."""

    def __init__(self, name: str, attributes: Mapping[str, str], pools: Iterable[NodePool]) -> None:
        """Order pools by their names, those with binding conditions last."""
        self.name = name
        self.attributes = attributes
        found = sorted(pools, key=lambda one: (one.has_binding_conditions, one.driver, one.name))
        self.pools = tuple(found)
        self.placed = tuple(
            PlacedDevice(DeviceId(pool.driver, pool.name, device.name), device, one, pool)
            for pool in found
            if pool.is_usable
            for one in pool.slices
            for device in one.devices
        )
        """Devices of usable pools."""
        self._kept: dict[object, object] = {}

    def keep(self, key: object, make: Callable[[], _Found]) -> _Found:
        """Return what has been made for a key before, or make it; it is kept as long as the pools."""
        found = self._kept.get(key)
        if found is None:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            found = self._kept[key] = make()
        return found  # type: ignore[return-value]


class SliceCatalog:
    """All slices of a cluster, by node and by pool."""

    def __init__(self, slices: Iterable[ResourceSlice]) -> None:
        """Sort slices; they cannot change afterwards."""
        self._of_node: dict[str, list[ResourceSlice]] = {}
        self._everywhere: list[ResourceSlice] = []
        self._of_pool: dict[_PoolId, list[ResourceSlice]] = {}
        self._nodes: dict[str, NodePools] = {}
        for one in slices:
            self._of_pool.setdefault((one.driver, one.pool), []).append(one)
            if one.nodes is not None and one.nodes.name and not one.counter_sets:
                self._of_node.setdefault(one.nodes.name, []).append(one)
            else:
                self._everywhere.append(one)

    def pools_of(self, name: str, attributes: Mapping[str, str]) -> NodePools:
        """Return the pools that the node with this name and these attributes can use."""
        known = self._nodes.get(name)
        if known is not None and (known.attributes is attributes or known.attributes == attributes):
            return known
        found: dict[_PoolId, list[ResourceSlice]] = {}
        for one in (*self._of_node.get(name, ()), *self._everywhere):
            if concerns(one, name, attributes):
                _add_newest(found, one)
        pools = (self._pool(key, slices) for key, slices in found.items())
        made = NodePools(name, dict(attributes), (pool for pool in pools if pool is not None))
        self._nodes[name] = made
        return made

    def _pool(self, key: _PoolId, found: list[ResourceSlice]) -> NodePool | None:
        """Return a pool; None if a newer generation has no device for the node."""
        generation, count = found[0].generation, found[0].slice_count
        pool = NodePool(*key)
        everything = found
        if len(found) != count:
            everything = self._of_pool[key]
            if any(one.generation > generation for one in everything):
                return None
            everything = [one for one in everything if one.generation == generation]
        problem = next((one.problem for one in everything if one.problem), "")
        if problem:
            pool.problem = problem
        elif len(everything) != count:
            pool.is_incomplete = True
        else:
            _fill(pool, found, everything)
        return pool


def concerns(one: ResourceSlice, name: str, attributes: Mapping[str, str]) -> bool:
    """Return True if a slice has counters, devices for a node, or cannot be read."""
    if one.counter_sets:
        return True
    if one.nodes is not None:
        return one.nodes.admits(name, attributes)
    if one.is_per_device:
        return any(device.traits.nodes.admits(name, attributes) for device in one.devices)
    return bool(one.problem)


def _add_newest(found: dict[_PoolId, list[ResourceSlice]], one: ResourceSlice) -> None:
    slices = found.setdefault((one.driver, one.pool), [])
    if slices and one.generation < slices[0].generation:
        return
    if slices and one.generation > slices[0].generation:
        slices.clear()
    slices.append(one)


def _fill(pool: NodePool, found: list[ResourceSlice], everything: list[ResourceSlice]) -> None:
    """Set slices and counters of a complete pool, or the reason why it is invalid."""
    found = sorted(found, key=lambda one: one.name)
    names = {one.name for one in found}
    others = tuple(one for one in everything if one.name not in names)
    devices = tuple(one for one in found if not one.counter_sets)
    pool.problem = (
        _repeated_device(devices) or _read_counters(pool, found) or _wrong_use(pool, (*found, *others))
    )
    if pool.problem:
        pool.counters = {}
    else:
        pool.slices, pool.others = devices, others


def _repeated_device(slices: Iterable[ResourceSlice]) -> str:
    seen: set[str] = set()
    for one in slices:
        for device in one.devices:
            if device.name in seen:
                return f"there are two devices {device.name}"
            seen.add(device.name)
    return ""


def _read_counters(pool: NodePool, slices: Iterable[ResourceSlice]) -> str:
    seen: set[str] = set()
    for one in slices:
        for counter_set in one.counter_sets:
            if counter_set.name in seen:
                return f"there are two counter sets {counter_set.name}"
            seen.add(counter_set.name)
            for name, amount in counter_set.counters.items():
                pool.counters[counter_set.name, name] = amount
    return ""


def _wrong_use(pool: NodePool, slices: Iterable[ResourceSlice]) -> str:
    for one in slices:
        for device in one.devices:
            for use in device.traits.consumes:
                for name, _ in use.counters:
                    if (use.counter_set, name) not in pool.counters:
                        return f"device {device.name} needs the unknown counter {use.counter_set}/{name}"
    return ""
