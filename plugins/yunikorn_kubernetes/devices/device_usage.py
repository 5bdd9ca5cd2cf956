"""Devices that claims have: whole ones, and the amounts that shares consume."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from yunikorn_kubernetes.devices.device_objects import DeviceId, DeviceResult

NOTHING: Mapping[str, int] = {}


class DeviceUsage:
    """Devices and shares of all allocated claims. Access of administrators takes nothing."""

    def __init__(self, results: Iterable[DeviceResult] = ()) -> None:
        """Sum up results."""
        self._whole: dict[DeviceId, int] = {}
        self._shares: dict[DeviceId, int] = {}
        self._consumed: dict[DeviceId, dict[str, int]] = {}
        self.version = 0
        """Number of changes."""
        for result in results:
            self.add(result)

    def add(self, result: DeviceResult) -> None:
        """Count a result of an allocated claim."""
        self._change(result, 1)

    def remove(self, result: DeviceResult) -> None:
        """Forget a result that has been counted."""
        self._change(result, -1)

    def _change(self, result: DeviceResult, sign: int) -> None:
        if result.admin_access:
            return
        self.version += 1
        device = result.device
        table = self._shares if result.is_share else self._whole
        count = table.get(device, 0) + sign
        if count:
            table[device] = count
        else:
            table.pop(device, None)
        if not result.is_share:
            return
        if not count:
            self._consumed.pop(device, None)
            return
        consumed = self._consumed.setdefault(device, {})
        for name, amount in result.consumed:
            consumed[name] = consumed.get(name, 0) + sign * amount.nanos

    def count_free(self, devices: Collection[DeviceId]) -> int | None:
        """Return the number of devices of which claims have nothing; None if they have shares of some."""
        if self._shares and not self._shares.keys().isdisjoint(devices):
            return None
        return len(devices) - sum(map(self._whole.__contains__, devices))

    def is_taken(self, device: DeviceId) -> bool:
        """Return True if a claim has the whole device."""
        return device in self._whole

    def is_shared(self, device: DeviceId) -> bool:
        """Return True if claims have shares of the device."""
        return device in self._shares

    def consumed(self, device: DeviceId) -> Mapping[str, int]:
        """Return the amounts that shares consume, in billionths."""
        return self._consumed.get(device, NOTHING)
