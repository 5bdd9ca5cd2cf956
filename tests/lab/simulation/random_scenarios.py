"""Random configurations and workloads from seeds: all mechanisms of the core in any combination.

`Rng` draws a configuration and a workload for it. `test_random_scenarios.py` simulates them, and bounds the
number of rounds that a simulation may take.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from yunikorn.config.load import check_config
from yunikorn.framework.registry import Registry

Tree = dict[str, Any]

_LEAF_PROPERTIES = {
    "application.sort.policy": (0.5, ["fifo", "fair", "stateaware"]),
    "preemption.within.queue": (0.2, ["enabled"]),
    "preemption.by.priority": (0.2, ["enabled"]),
    "application.unschedasks.backoff": (0.1, ["2"]),
    "node.sort.policy": (0.1, ["packed"]),
}
_PROPERTIES = {
    "application.sort.priority": (0.25, ["disabled", "enabled"]),
    "priority.offset": (0.25, ["-3", "5"]),
    "priority.policy": (0.15, ["fence"]),
    "preemption.policy": (0.15, ["fence", "disabled"]),
    "preemption.delay": (0.25, ["10s", "30s", "1m"]),
    "quota.preemption.delay": (0.2, ["10s"]),
}


class Rng:
    """Configuration and workload of one seed."""

    def __init__(self, seed: int, registry: Registry) -> None:
        self._dice = random.Random(seed)
        self.config = json.dumps({"partitions": [self._partition()]})
        while not check_config(self.config, registry).valid:
            self.config = json.dumps({"partitions": [self._partition()]})
        self.workload = json.dumps(self._workload())

    def _often(self, share: float) -> bool:
        return self._dice.random() < share

    def _partition(self) -> Tree:
        names = ["a", "b", "c"][: self._dice.randint(2, 3)]
        root = {"name": "root", "submitacl": "*", "queues": [self._queue(name, 1) for name in names]}
        preemption = {
            "enabled": self._often(0.8),
            "quotapreemptionenabled": self._often(0.5),
            "shrunknodes": self._often(0.5),
        }
        return {
            "name": "default",
            "queues": [root],
            "nodesortpolicies": [{"name": "packed", "type": "binpacking"}],
            "nodesortpolicy": {"type": self._dice.choice(["fair", "binpacking"])},
            "preemption": preemption,
            "periods": {"gangpatience": "3m"},
        }

    def _queue(self, name: str, depth: int) -> Tree:
        dice = self._dice
        queue: Tree = {"name": name}
        is_parent = depth < 2 and self._often(0.4)
        resources = {}
        if self._often(0.35):
            resources["max"] = {"vcore": str(dice.randint(6, 24))}
        if self._often(0.4):
            resources["guaranteed"] = {"vcore": str(dice.randint(1, 4))}
        if resources:
            queue["resources"] = resources
        if self._often(0.2):
            queue["maxapplications"] = dice.randint(2, 5)
        if self._often(0.15):
            limit: Tree = {
                "limit": "each",
                "users": ["*"],
                "maxresources": {"vcore": str(dice.randint(3, 9))},
            }
            if self._often(0.5):
                limit["maxapplications"] = dice.randint(1, 3)
            queue["limits"] = [limit]
        known = _PROPERTIES if is_parent else {**_PROPERTIES, **_LEAF_PROPERTIES}
        properties = {
            key: dice.choice(values) for key, (share, values) in known.items() if self._often(share)
        }
        if properties:
            queue["properties"] = properties
        if is_parent:
            queue["queues"] = [self._queue(f"{name}{number}", depth + 1) for number in range(2)]
        return queue

    def _workload(self) -> Tree:
        dice = self._dice
        leaves = list(_leaves(json.loads(self.config)["partitions"][0]["queues"][0], ""))
        nodes = dice.randint(3, 6)
        resources = {"vcore": dice.choice([4, 6, 8]), "memory": "24Gi"}
        workload: Tree = {
            "seed": dice.randint(0, 9999),
            "nodes": [{"name": "n", "count": nodes, "resources": resources}],
            "generate": [self._applications(f"g{number}", leaves) for number in range(dice.randint(2, 4))],
            "events": [event for _ in range(dice.randint(0, 4)) for event in self._events(nodes)],
        }
        return workload

    def _events(self, nodes: int) -> Iterator[Tree]:
        start, node = self._dice.randint(3, 40), f"n-{self._dice.randint(1, nodes)}"
        if self._often(0.5):
            yield {"at": f"{start}m", "node": node, "action": "drain"}
            yield {"at": f"{start + self._dice.randint(1, 9)}m", "node": node, "action": "resume"}
        else:
            resources = {"vcore": self._dice.randint(2, 9), "memory": "24Gi"}
            yield {"at": f"{start}m", "node": node, "action": "capacity", "resources": resources}

    def _applications(self, name: str, leaves: list[str]) -> Tree:
        dice = self._dice
        arrivals = [
            {"process": "poisson", "every": "40s"},
            {"process": "bursts", "every": "5m", "size": {"distribution": "uniform", "low": 2, "high": 7}},
        ]
        apps: Tree = {
            "id": name,
            "count": dice.randint(6, 16),
            "arrivals": dice.choice(arrivals),
            "queue": {"distribution": "choice", "values": leaves},
            "user": {"distribution": "zipf", "names": "u", "count": 4},
        }
        gang = dice.choices(["", "Atomic", "Soft", "Hard"], [11, 4, 3, 2])[0]
        if gang:
            apps["gang"] = gang
        if gang in ("Soft", "Hard"):
            apps["gangtimeout"] = "3m"
        elif self._often(0.15):
            apps["timeout"] = "6m"
        task: Tree = {
            "count": {"distribution": "choice", "values": {1: 3, 3: 2, 6: 1}},
            "priority": {"distribution": "choice", "values": {0: 5, 4: 1, -2: 1}},
            "resources": {
                "vcore": {
                    "distribution": "uniform",
                    "low": dice.choice(["500m", "1"]),
                    "high": dice.choice(["2", "4", "6"]),
                    "step": "500m",
                },
                "memory": {"distribution": "uniform", "low": "1Gi", "high": "12Gi", "step": "1Gi"},
            },
            "runtime": {"distribution": "lognormal", "median": "5m", "sigma": 1, "max": "30m"},
        }
        if self._often(0.1):
            task["timeout"] = "4m"
        return {**apps, "tasks": [task]}


def _leaves(queue: Tree, above: str) -> Iterator[str]:
    path = f"{above}.{queue['name']}" if above else queue["name"]
    for child in queue.get("queues", ()):
        yield from _leaves(child, path)
    if "queues" not in queue:
        yield path
