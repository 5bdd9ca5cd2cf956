"""Taints that an administrator gives to devices by DeviceTaintRules, beside those of their drivers."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from yunikorn_kubernetes.devices.device_objects import Json
from yunikorn_kubernetes.predicates.tag_reading import UnreadableText, table_of, text_of


@attrs.frozen
class DeviceTaintRule:
    """A taint, and the devices that get it; an empty name stands for all."""

    taint: Json
    driver: str = ""
    pool: str = ""
    device: str = ""

    def concerns(self, driver: str, pool: str) -> bool:
        """Return True if devices of a pool may get the taint."""
        return self.driver in ("", driver) and self.pool in ("", pool)

    def taint_of(self, device: Json) -> list[Json]:
        """Return the taint of a device in such a pool, if it gets it."""
        return [self.taint] if self.device in ("", device.get("name")) else []


def read_taint_rule(spec: Json) -> DeviceTaintRule | None:
    """Return the rule of a specification; None if it selects no devices. Raises `UnreadableText`."""
    taint = table_of(spec.get("taint"), "taint")
    if not text_of(taint, "key"):
        raise UnreadableText("a taint has no key")
    if spec.get("deviceSelector") is None:
        return None
    selector = table_of(spec["deviceSelector"], "deviceSelector")
    names = (text_of(selector, key) for key in ("driver", "pool", "device"))
    return DeviceTaintRule({key: taint[key] for key in ("key", "value", "effect") if key in taint}, *names)


def with_taints(found: Json, rules: Sequence[DeviceTaintRule]) -> Json:
    """Return a ResourceSlice whose devices have the taints of rules that concern its pool.

    What is no list, or no device in it, stays as it is: it is refused when it is read.
    """
    spec = found["spec"]
    devices = spec.get("devices")
    if not isinstance(devices, list):
        return found
    return {**found, "spec": {**spec, "devices": [_tainted(one, rules) for one in devices]}}


def _tainted(device: object, rules: Sequence[DeviceTaintRule]) -> object:
    if not isinstance(device, dict) or not isinstance(device.get("taints", []), list | None):
        return device
    given = [taint for rule in rules for taint in rule.taint_of(device)]
    return {**device, "taints": [*(device.get("taints") or ()), *given]} if given else device
