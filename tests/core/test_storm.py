"""Long random histories with many objects, from seeds: every decision equals that of the slow reference."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.core.compared_scheduler import (
    ComparedScheduler,
    ReservingComparedScheduler,
    RetryingComparedScheduler,
)
from tests.core.kit import partition
from tests.core.predicate_tags import DISK, SHY, ZONE
from tests.example_counts import examples
from yunikorn.interface.messages import NodeAction

SEEDS = range(examples(4))
STEPS = 120
GROUPS: dict[str, list[str]] = {"u1": ["g1"], "u2": ["g2", "g1"], "u3": []}
LEAVES = ["root.a", "root.b", "root.p.c", "root.p.d", "root.p.q.e"]
MADE = ["root.p.q.u", "root.p.q.v", "root.p.w.x"]


class Storm:
    """Random history of one seed, with more objects than a hypothesis run could have."""

    def __init__(self, kind: type[ComparedScheduler], seed: int, ask_classes: int = 6) -> None:
        self.random = random.Random(seed)
        self.tight = bool(seed % 2)
        """True for seeds with low `maxapplications` and many applications of few asks."""
        self.ask_classes = [self._amount() for _ in range(self.random.randint(1, ask_classes))]
        self.compared = kind(self.config())
        self.nodes = 0
        for _ in range(self.random.randint(2, 9)):
            self.add_node()
        for _ in range(self.random.randint(9, 20) if self.tight else self.random.randint(3, 12)):
            self.submit()
            self.ask()

    def one_in_n(self, one_in: int) -> bool:
        return self.random.randrange(one_in) == 0

    def _amount(self) -> dict[str, int]:
        amount = {"memory": self.random.randint(0, 5), "vcore": self.random.randint(0, 3)}
        return amount if any(amount.values()) else {"memory": 1}

    # -- configurations -------------------------------------------------------------------------------

    def queue(self, name: str, *children: dict[str, Any]) -> dict[str, Any]:
        pick = self.random.choice
        config: dict[str, Any] = {"name": name}
        if children:
            config["queues"] = list(children)
        properties = {
            "application.sort.policy": pick(["fifo", "fair", "stateaware"]),
            "application.sort.priority": pick(["enabled", "enabled", "disabled"]),
        }
        if self.one_in_n(4):
            properties["priority.offset"] = pick(["-2", "1"])
        if self.one_in_n(5):
            properties["priority.policy"] = "fence"
        if self.one_in_n(5):
            properties["node.sort.policy"] = pick(["packed", "snug"])
        if self.one_in_n(12):
            properties["queue.state"] = "stopped"
        config["properties"] = properties
        amount = {"memory": str(self.random.randint(4, 25)), "vcore": f"{self.random.randint(4, 20)}m"}
        if self.one_in_n(3):
            config["resources"] = {"max": amount}
        elif self.one_in_n(3):
            config["resources"] = {"guaranteed": amount}
        if children and self.one_in_n(2):
            config["childtemplate"] = {
                "resources": {"max": amount},
                "maxapplications": self.random.randint(1, 3),
            }
        if self.one_in_n(2 if self.tight else 3):
            config["limits"] = self.limits()
        if self.one_in_n(3 if self.tight else 5):
            config["maxapplications"] = self.random.randint(1, 3)
        return config

    def limits(self) -> list[dict[str, Any]]:
        def entry(**names: list[str]) -> dict[str, Any]:
            most = {"maxresources": {"memory": str(self.random.randint(3, 12))}}
            count = {"maxapplications": self.random.randint(1, 2)}
            return {"limit": "some", **names, **self.random.choice([most, count, {**most, **count}])}

        users = [entry(users=["u1"]), entry(users=["*"])][self.random.randrange(2) :]
        groups = [entry(groups=["g1"]), entry(groups=["g2", "*"])][: self.random.randrange(3)]
        return users + groups

    def config(self) -> dict[str, Any]:
        config = partition(
            self.queue("a"),
            self.queue("b"),
            self.queue("p", self.queue("c"), self.queue("d"), self.queue("q", self.queue("e"))),
        )
        if self.one_in_n(4):
            del config["queues"][0]["queues"][self.random.randrange(2)]
        if self.tight:
            config["queues"][0]["limits"] = self.limits()
        config["placementrules"] = [{"name": "provided", "create": not self.one_in_n(5)}]
        kinds = ["fair", "binpacking"]
        config["nodesortpolicies"] = [
            {"name": "packed", "type": "binpacking"},
            {"name": "snug", "type": "snug"},
        ]
        config["nodesortpolicy"] = {"type": self.random.choice(kinds)}
        if self.one_in_n(2):
            config["nodesortpolicy"]["resourceweights"] = {"vcore": 4.0, "memory": 1.0}
        return config

    # -- operations -----------------------------------------------------------------------------------

    def add_node(self) -> None:
        self.nodes += 1
        pick = self.random.choice
        capacity = {"memory": pick([8, 16]), "vcore": pick([4, 8])}
        attributes = {ZONE: pick("xyz"), DISK: pick(["ssd", "hdd"])}
        self.compared.add_node(f"n{self.nodes}", capacity, attributes)

    def submit(self) -> None:
        user = self.random.choice(sorted(GROUPS))
        tags: dict[str, str] = {}
        if self.one_in_n(4):
            tags["yunikorn.apache.org/node-sort-policy"] = self.random.choice(["packed", "snug"])
        paths = MADE if self.one_in_n(4) else LEAVES
        self.compared.submit(self.random.choice(paths), tags, user, GROUPS[user])

    def ask(self) -> None:
        if not self.compared.reference.apps:
            return
        pick = self.random.choice
        tags: dict[str, str] = {}
        if self.one_in_n(4):
            tags[ZONE] = pick("xyz")
        if self.one_in_n(4):
            tags[DISK] = pick(["ssd", "hdd"])
        if self.one_in_n(4):
            tags[SHY] = "yes"
        if self.one_in_n(6):
            tags["creationTime"] = str(self.random.randint(0, 9))
        app_id = pick(sorted(self.compared.reference.apps))
        if self.tight and self.one_in_n(2):
            # Most storms schedule after every ask; these leave asks pending for several steps.
            app_id = next(
                (one.id for one in self.compared.reference.apps.values() if one.state == "New"), app_id
            )
        key = f"k{self.random.randrange(5)}"
        count, priority = self.random.randint(1, 4), pick([0, 0, 0, 1, -1, 5])
        self.compared.ask(app_id, key, count, priority, pick(self.ask_classes), tags)

    def release(self) -> None:
        for _ in range(self.random.randint(1, 4)):
            if self.compared.rm.running:
                self.compared.release(self.random.choice(sorted(self.compared.rm.running)))

    def withdraw(self) -> None:
        if self.compared.reference.apps:
            app_id = self.random.choice(sorted(self.compared.reference.apps))
            if self.one_in_n(4):
                self.compared.remove_app(app_id)
            else:
                self.compared.release_asks(app_id, self.random.choice(["", "k0", "k1", "k2"]))

    def change_node(self) -> None:
        if not self.compared.reference.nodes:
            self.add_node()
            return
        pick = self.random.choice
        node_id = pick(sorted(self.compared.reference.nodes))
        match self.random.randrange(6):
            case 0:
                self.compared.resize_node(node_id, {"memory": pick([4, 8, 16]), "vcore": pick([4, 8])})
            case 1:
                self.compared.occupy_node(node_id, self._amount())
            case 2:
                self.compared.relabel_node(node_id, {ZONE: pick("xyz"), DISK: pick(["ssd", "hdd"])})
            case 3:
                self.compared.remove_node(node_id)
            case 4:
                self.compared.move_node(node_id, NodeAction.DRAIN_NODE)
            case 5:
                self.compared.move_node(node_id, NodeAction.DRAIN_TO_SCHEDULABLE)

    def step(self) -> None:
        match self.random.randrange(20):
            case 0:
                self.submit()
                self.ask()
            case 1:
                self.add_node()
            case 2 | 3:
                self.change_node()
            case 4:
                self.withdraw()
            case 5:
                self.compared.pass_time(self.random.choice([1, 5, 31, 301]))
            case 6 if self.one_in_n(3):
                known = type(self.compared).predicates
                self.compared.reload(self.config(), [name for name in known if not self.one_in_n(3)])
            case 7 | 8 | 9:
                self.release()
            case 10 | 11 | 12:
                self.compared.schedule(self.random.randint(1, 6))
            case 13:
                self.compared.schedule_all()
            case _:
                self.ask()
        self.compared.check()


TIGHT = {
    "index.sorted_members.BLOCK": 2,
    "model.app_requests._TRIM": 1,
    "model.ask_class.IDLE_ASK_CLASSES": 2,
    "model.ask_class.IDLE_PENDING_CLASSES": 2,
    "scheduling.node_order.BLOCK": 2,
    "scheduling.node_order.GROUP": 2,
    "scheduling.node_orders.LOG": 3,
}
"""Thresholds at which structures are split, trimmed or forgotten, lowered so that this happens often."""


@pytest.mark.parametrize("kind", [ComparedScheduler, RetryingComparedScheduler, ReservingComparedScheduler])
@pytest.mark.parametrize("seed", SEEDS)
def test_node_group_sizes_change_no_decision(
    kind: type[ComparedScheduler], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, size in TIGHT.items():
        monkeypatch.setattr(f"yunikorn.{name}", size)
    storm = Storm(kind, 1000 + seed, ask_classes=12)
    for _ in range(STEPS):
        storm.step()
    storm.compared.schedule_all()
    storm.compared.check()


@pytest.mark.parametrize("kind", [ComparedScheduler, RetryingComparedScheduler, ReservingComparedScheduler])
@pytest.mark.parametrize("seed", SEEDS)
def test_every_decision_equals_that_of_the_reference(kind: type[ComparedScheduler], seed: int) -> None:
    storm = Storm(kind, seed)
    for _ in range(STEPS):
        storm.step()
    storm.compared.schedule_all()
    storm.compared.check()
