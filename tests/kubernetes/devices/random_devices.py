"""Drawn clusters of devices and claims, for comparisons with the allocator of kube-scheduler.

Cases in which kube-scheduler 1.36.3 is known to be wrong are left out: pools of one name with counters,
counters and administrators together, distinct attributes of several devices of one request, and
DeviceTaintRules without a selector.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from tests.kubernetes.devices.objects import Json, value

NODES = ("node-0", "node-1")
DRIVERS = ("a.example.com", "b.example.com")
MODELS = ("A100", "H100")
SELECTORS = (
    'device.driver == "a.example.com"',
    'device.attributes[device.driver].model == "H100"',
    'device.attributes["a.example.com"].?model.orValue("") != "A100"',
    "device.attributes[device.driver].index < 3",
    "cel.bind(all, device.capacity[device.driver],"
    ' has(all.memory) && all.memory.isGreaterThan(quantity("10Gi")))',
    'device.attributes[device.driver].driver.isGreaterThan(semver("1.5.0"))',
    "true",
    "device.allowMultipleAllocations",
)
TAINT_KEYS = ("broken", "slow")
POLICIES: tuple[Json | None, ...] = (
    None,
    {"default": "10Gi", "validRange": {"min": "5Gi"}},
    {"default": "10Gi", "validRange": {"min": "4Gi", "max": "32Gi", "step": "2Gi"}},
    {"default": "10Gi", "validValues": ["10Gi", "20Gi", "40Gi"]},
)


class CaseDrawer:
    """Draws one case: slices, classes, claims, and devices that are taken."""

    def __init__(self, rng: random.Random) -> None:
        """Draw with a generator of random numbers."""
        self._rng = rng

    def _one(self, *choices: Any) -> Any:
        return self._rng.choice(choices)

    def _likely(self, chance: float) -> bool:
        return self._rng.random() < chance

    def draw(self) -> Json:
        """Return the request to the reference."""
        rng = self._rng
        self._has_counters = self._likely(0.4)
        self._has_shares = self._likely(0.4)
        self._has_admin = not self._has_counters and self._likely(0.3)
        slices: list[Json] = []
        for number, driver in enumerate(DRIVERS[: rng.randint(1, 2)]):
            for node in self._one(NODES[:1], NODES, (*NODES, "")):
                # Counters are kept by the name of the pool alone, so names differ between drivers.
                pool = f"{node or 'shared'}{f'-{number}' if self._has_counters else ''}"
                slices += self._pool(driver, pool, node)
        rng.shuffle(slices)
        classes = [
            {
                "metadata": {"name": name},
                "spec": {"selectors": selectors, "config": [_opaque(name)] if self._likely(0.5) else []},
            }
            for name, selectors in (
                ("any", []),
                ("some", self._selectors(1)),
                ("a", [{"cel": {"expression": SELECTORS[0]}}]),
            )
        ]
        claims = [self._claim(f"claim-{number}") for number in range(self._one(1, 1, 1, 2, 3))]
        return {
            "nodes": [
                {"metadata": {"name": node, "labels": {"zone": node[-1], "kind": "gpu"}}} for node in NODES
            ],
            "slices": slices,
            "classes": classes,
            "claims": claims,
            "taken": self._taken(slices),
        }

    # -- slices ---------------------------------------------------------------------------------------

    def _pool(self, driver: str, pool: str, node: str) -> list[Json]:
        rng = self._rng
        sets = [f"set-{number}" for number in range(rng.randint(1, 2))] if self._has_counters else []
        count = rng.randint(1, 3)
        found = [
            self._slice(
                driver, pool, node, part, [self._device(part, n, sets) for n in range(rng.randint(1, 4))]
            )
            for part in range(count)
        ]
        if sets:
            counters = {"slices": {"value": str(rng.randint(2, 7))}, "memory": {"value": "40Gi"}}
            one = self._slice(driver, pool, node, count, [])
            del one["spec"]["devices"]
            one["spec"]["sharedCounters"] = [{"name": name, "counters": counters} for name in sets]
            found.append(one)
        for one in found:
            one["spec"]["pool"]["resourceSliceCount"] = len(found)
        trouble = rng.random()
        if trouble < 0.04:
            found.pop()  # Incomplete.
        elif trouble < 0.08:
            found[0]["spec"]["pool"]["generation"] = 2  # All others are obsolete.
        elif trouble < 0.11 and found[0]["spec"].get("devices"):
            found[0]["spec"]["devices"].append(dict(found[0]["spec"]["devices"][0]))  # One name twice.
        elif trouble < 0.13 and sets:
            found[0]["spec"]["devices"][0]["consumesCounters"] = [
                {"counterSet": "unknown", "counters": {"slices": {"value": "1"}}}
            ]
        elif trouble < 0.16:
            newer = self._slice(driver, pool, "node-9", 9, [self._device(9, 0, [])])
            newer["spec"]["pool"] = {"name": pool, "generation": 3, "resourceSliceCount": 1}
            found.append(newer)
        return found

    def _slice(self, driver: str, pool: str, node: str, part: int, devices: list[Json]) -> Json:
        spec: Json = {
            "driver": driver,
            "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        }
        if node:
            spec["nodeName"] = node
        elif devices and self._likely(0.3):
            spec["perDeviceNodeSelection"] = True
            for one in devices:
                one |= self._where()
        elif self._likely(0.5):
            spec["allNodes"] = True
        else:
            spec |= self._where()
        return {"metadata": {"name": f"{self._one('x', 'y', 'z')}-{driver}-{pool}-{part}"}, "spec": spec}

    def _where(self) -> Json:
        key, values = self._one(("zone", ["0"]), ("zone", ["0", "1"]), ("kind", ["gpu"]), ("kind", ["cpu"]))
        term = {
            "matchExpressions": [{"key": key, "operator": self._one("In", "In", "NotIn"), "values": values}]
        }
        choices: list[Json] = [
            {"nodeName": "node-0"},
            {"allNodes": True},
            {"nodeSelector": {"nodeSelectorTerms": [term]}},
            {"nodeSelector": {"nodeSelectorTerms": [term]}},
        ]
        return dict(self._rng.choice(choices))

    def _device(self, part: int, number: int, sets: Sequence[str]) -> Json:
        rng = self._rng
        attributes = {
            "model": value(self._one(*MODELS)),
            "index": value(number),
            "root": value(self._one("r0", "r1")),
            "b.example.com/slot": value(rng.randint(0, 2)),
        }
        if self._likely(0.97):
            attributes["driver"] = value(self._one("v1.0.0", "v2.1.0", "v2.1.0-rc.1"))
        if self._likely(0.01):
            attributes["links"] = {"ints": [1, 2]}
        if self._likely(0.1):
            del attributes["root"]
        found: Json = {"name": f"dev-{part}-{number}", "attributes": attributes}
        if self._likely(0.7):
            found["capacity"] = {"memory": {"value": self._one("8Gi", "40Gi", "80Gi")}}
            if self._has_shares and self._likely(0.6):
                found["allowMultipleAllocations"] = True
                if (policy := self._one(*POLICIES)) is not None:
                    found["capacity"]["memory"] = {
                        "value": self._one("40Gi", "80Gi"),
                        "requestPolicy": policy,
                    }
        if sets and self._likely(0.8):
            found["consumesCounters"] = [
                {
                    "counterSet": name,
                    "counters": {
                        "slices": {"value": str(rng.randint(1, 3))},
                        "memory": {"value": self._one("5Gi", "10Gi", "20Gi")},
                    },
                }
                for name in rng.sample(list(sets), rng.randint(1, len(sets)))
            ]
        if self._likely(0.15):
            found["taints"] = [
                {
                    "key": self._one(*TAINT_KEYS),
                    "value": self._one("x", "y"),
                    "effect": self._one("NoSchedule", "NoExecute", "None"),
                }
            ]
        if self._likely(0.06):
            found |= {"bindingConditions": ["ready"], "bindingFailureConditions": ["failed"]}
            found["bindsToNode"] = self._likely(0.5)
        return found

    def rules(self, slices: Sequence[Json]) -> list[Json]:
        """Return DeviceTaintRules for some devices of these slices."""
        return [self._rule(f"rule-{number}", slices) for number in range(self._rng.randint(1, 3))]

    def _rule(self, name: str, slices: Sequence[Json]) -> Json:
        nothing = {"spec": {"driver": DRIVERS[0], "pool": {"name": NODES[0]}}}
        spec = self._one(*(slices or [nothing]))["spec"]
        named = {"driver": spec["driver"], "pool": spec["pool"]["name"], "device": f"dev-0-{self._one(0, 1)}"}
        selector = {key: text for key, text in named.items() if self._likely(0.6)}
        taint = {"key": self._one(*TAINT_KEYS), "effect": self._one("NoSchedule", "NoExecute", "None")}
        given = taint | ({"value": "x"} if self._likely(0.5) else {})
        return {"metadata": {"name": name}, "spec": {"taint": given, "deviceSelector": selector}}

    # -- claims ---------------------------------------------------------------------------------------

    def _selectors(self, most: int) -> list[Json]:
        count = self._rng.randint(0, most)
        return [{"cel": {"expression": self._one(*SELECTORS)}} for _ in range(count)]

    def _claim(self, name: str) -> Json:
        requests = [self._request(number) for number in range(self._one(1, 1, 2, 3))]
        names = [one["name"] for one in requests]
        names += [f"{one['name']}/{sub['name']}" for one in requests for sub in one.get("firstAvailable", ())]
        singles = [
            one["name"]
            for one in requests
            if one.get("exactly", {}).get("count") == 1 and one["exactly"]["allocationMode"] == "ExactCount"
        ]
        devices: Json = {"requests": requests, "constraints": [], "config": []}
        if self._likely(0.35):
            some = [] if self._likely(0.5) else self._rng.sample(names, self._rng.randint(1, len(names)))
            attribute = self._one("a.example.com/root", "a.example.com/model", "b.example.com/slot")
            devices["constraints"].append({"requests": some, "matchAttribute": attribute})
        if len(singles) > 1 and self._likely(0.5):
            attribute = self._one("a.example.com/model", "b.example.com/slot", "a.example.com/index")
            devices["constraints"].append({"requests": singles, "distinctAttribute": attribute})
        if self._likely(0.3):
            some = [] if self._likely(0.5) else self._rng.sample(names, self._rng.randint(1, len(names)))
            devices["config"].append({"requests": some} | _opaque("claim"))
        return {
            "metadata": {"namespace": "default", "name": name, "uid": name},
            "spec": {"devices": devices},
        }

    def _request(self, number: int) -> Json:
        if self._likely(0.25):
            count = self._one(1, 2, 3)
            return {
                "name": f"r{number}",
                "firstAvailable": [self._wanted(n, is_sub=True) for n in range(count)],
            }
        return {"name": f"r{number}", "exactly": self._wanted(number, is_sub=False)}

    def _wanted(self, number: int, *, is_sub: bool) -> Json:
        found: Json = {
            "deviceClassName": self._one("any", "any", "some", "a"),
            "selectors": self._selectors(2),
        }
        if is_sub:
            found["name"] = f"s{number}"
        if self._likely(0.12):
            found["allocationMode"] = "All"
        else:
            found |= {"allocationMode": "ExactCount", "count": self._one(1, 1, 1, 1, 2, 2, 3, 4)}
            if self._likely(0.02):
                found["count"] = self._one(20, 33)
        if self._has_admin and not is_sub and self._likely(0.4):
            found["adminAccess"] = self._likely(0.8)
        if self._likely(0.3):
            found["tolerations"] = [
                self._one(
                    {"operator": "Exists"},
                    {
                        "key": self._one(*TAINT_KEYS),
                        "operator": "Equal",
                        "value": "x",
                        "effect": "NoSchedule",
                    },
                    {"key": self._one(*TAINT_KEYS), "operator": "Exists", "effect": "NoExecute"},
                )
            ]
        if self._has_shares and self._likely(0.5):
            name = self._one("memory", "memory", "memory", "memory", "cores")
            amount = self._one("1Gi", "7Gi", "10Gi", "15Gi", "33Gi", "500m")
            found["capacity"] = {"requests": {name: amount}}
        return found

    # -- devices that are taken ------------------------------------------------------------------------

    def _taken(self, slices: Sequence[Json]) -> list[Json]:
        found: list[Json] = []
        for one in slices:
            spec = one["spec"]
            for device in spec.get("devices", ()):
                if not self._likely(0.2):
                    continue
                result: Json = {
                    "request": "r",
                    "driver": spec["driver"],
                    "pool": spec["pool"]["name"],
                    "device": device["name"],
                }
                if device.get("allowMultipleAllocations"):
                    result["shareID"] = f"share-{len(found)}"
                    if device.get("capacity"):
                        result["consumedCapacity"] = {"memory": self._one("1Gi", "10Gi", "20Gi")}
                elif self._has_admin and self._likely(0.3):
                    result["adminAccess"] = True
                found.append(result)
        return found


def _opaque(name: str) -> Json:
    return {"opaque": {"driver": DRIVERS[0], "parameters": {"of": name}}}
