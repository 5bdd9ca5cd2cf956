"""Hypothesis state machine that compares the scheduler with the slow reference in random histories.

The first half defines strategies for configurations, nodes, applications and asks. The rules of `SideBySide`
apply one drawn change to both sides of a `ComparedScheduler`, which then compares decisions and accounting.
`test_machine.py` runs the machines.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.core.compared_scheduler import (
    ComparedScheduler,
    ReservingComparedScheduler,
    RetryingComparedScheduler,
)
from tests.core.kit import partition
from tests.core.predicate_tags import DISK, SHY, ZONE
from yunikorn.interface.messages import NodeAction

REQUIRED = "yunikorn.apache.org/requiredNode"

# -- strategies --------------------------------------------------------------------------------------------

AMOUNTS = st.fixed_dictionaries(
    {"memory": st.integers(0, 4)}, optional={"vcore": st.integers(1, 4), "gpu": st.integers(1, 2)}
).filter(lambda amount: any(amount.values()))
CAPACITIES = st.fixed_dictionaries(
    {"memory": st.sampled_from([4, 8, 16])},
    optional={"vcore": st.sampled_from([4, 8]), "gpu": st.sampled_from([3, 6])},
)
QUOTAS = st.dictionaries(st.sampled_from(["memory", "vcore"]), st.integers(0, 9), min_size=1)
PROPERTIES = st.fixed_dictionaries(
    {},
    optional={
        "application.sort.policy": st.sampled_from(["fifo", "fair", "stateaware"]),
        "application.sort.priority": st.sampled_from(["enabled", "disabled"]),
        "priority.policy": st.sampled_from(["default", "fence"]),
        "priority.offset": st.sampled_from(["-1", "0", "2"]),
        "node.sort.policy": st.sampled_from(["packed", "snug"]),
        "queue.state": st.sampled_from(["stopped", "active", "active"]),
    },
)
QUEUE_PATHS = [
    "root.a",
    "root.a",
    "root.b",
    "root.p.c",
    "root.p.c",
    "root.p.d",
    "root.q.e",
    "root.p",
    "root.q.m",
    "root.q.n.o",
]
GROUPS = {"u1": ["g1"], "u2": ["g2", "g1"], "u3": []}
NODE_IDS = [f"n{number}" for number in range(5)]
KEYS = ["k0", "k1", "k2"]
APP_TAGS = st.fixed_dictionaries(
    {},
    optional={"yunikorn.apache.org/node-sort-policy": st.sampled_from(["packed", "snug", "nonsense"])},
)
APPS = st.tuples(st.sampled_from(QUEUE_PATHS), APP_TAGS, st.sampled_from(sorted(GROUPS)))
LIMITS = st.fixed_dictionaries(
    {"limit": st.just("some")},
    optional={
        "users": st.sampled_from([["u1"], ["u2"], ["*"], ["u1", "u3"]]),
        "groups": st.sampled_from([["g1"], ["g2"], ["g1", "*"]]),
        "maxapplications": st.integers(1, 3),
        "maxresources": st.sampled_from([{"memory": "4"}, {"memory": "6", "vcore": "5m"}]),
    },
).filter(lambda limit: ("users" in limit or "groups" in limit) and len(limit) > 2)
ATTRIBUTES = st.fixed_dictionaries(
    {}, optional={ZONE: st.sampled_from(["x", "y"]), DISK: st.sampled_from(["ssd", "hdd"])}
)
ASK_TAGS = st.fixed_dictionaries(
    {},
    optional={
        ZONE: st.sampled_from(["x", "y"]),
        DISK: st.sampled_from(["ssd", "hdd"]),
        SHY: st.just("yes"),
        "creationTime": st.sampled_from(["0", "5"]),
        REQUIRED: st.sampled_from(["n0", "n1"]),
    },
)
ASKS = st.tuples(
    st.sampled_from(KEYS),
    st.integers(1, 3),
    st.sampled_from([0, 0, 0, 1, -3, 2]),
    AMOUNTS,
    st.one_of(st.just({}), ASK_TAGS),
)


def _texts(quota: Mapping[str, int]) -> dict[str, str]:
    return {name: f"{amount}m" if name == "vcore" else str(amount) for name, amount in quota.items()}


TEMPLATES = st.fixed_dictionaries(
    {},
    optional={
        "maxapplications": st.integers(1, 2),
        "resources": st.fixed_dictionaries(
            {}, optional={"max": QUOTAS.map(_texts), "guaranteed": QUOTAS.map(_texts)}
        ),
        "properties": PROPERTIES,
    },
)


@st.composite
def queue_configs(draw: Any, name: str, *children: str) -> dict[str, Any]:
    """Draw a queue with some of these children."""
    config: dict[str, Any] = {"name": name}
    if children and draw(st.integers(0, 9)):
        config["parent"] = True
        config["queues"] = [draw(queue_configs(child)) for child in children if draw(st.integers(0, 7))]
        if draw(st.booleans()):
            config["childtemplate"] = draw(TEMPLATES)
    if draw(st.booleans()):
        config["properties"] = draw(PROPERTIES)
    if draw(st.integers(0, 3)) == 0:
        config["resources"] = {"max": _texts(draw(QUOTAS))}
    elif draw(st.integers(0, 3)) == 0:
        config["resources"] = {"guaranteed": _texts(draw(QUOTAS))}
    if draw(st.integers(0, 4)) == 0:
        config["limits"] = draw(st.lists(LIMITS, min_size=1, max_size=2))
    if draw(st.integers(0, 4)) == 0:
        config["maxapplications"] = draw(st.integers(1, 4))
    return config


@st.composite
def partition_configs(draw: Any) -> dict[str, Any]:
    """Draw a partition with some of the queues in `QUEUE_PATHS`."""
    queues = [
        draw(queue_configs(*names))
        for names in (("a",), ("b",), ("p", "c", "d"), ("q", "e"))
        if draw(st.integers(0, 19))
    ]
    config = partition(*queues)
    config["placementrules"] = [{"name": "provided", "create": draw(st.booleans())}]
    if draw(st.booleans()):
        config["queues"][0]["properties"] = {
            name: value for name, value in draw(PROPERTIES).items() if name != "queue.state"
        }
    config["nodesortpolicies"] = [
        {"name": "packed", "type": "binpacking", "resourceweights": {"memory": 1.0}},
        {"name": "snug", "type": "snug"},
    ]
    kind = draw(st.sampled_from(["fair", "binpacking"]))
    config["nodesortpolicy"] = {"type": kind}
    if draw(st.booleans()):
        config["nodesortpolicy"]["resourceweights"] = {"vcore": 4.0, "memory": 1.0}
    return config


AskDrawn = tuple[str, int, int, dict[str, int], dict[str, str]]


class SideBySide(RuleBasedStateMachine):
    """Apply random operations to a scheduler and to the reference, and compare both after every step."""

    kind: type[ComparedScheduler] = ComparedScheduler

    @initialize(
        config=partition_configs(),
        nodes=st.lists(st.tuples(CAPACITIES, ATTRIBUTES), min_size=1, max_size=3),
        apps=st.lists(APPS, min_size=3, max_size=6),
        asks=st.lists(st.lists(ASKS, max_size=3), min_size=3, max_size=6),
    )
    def start(
        self,
        config: dict[str, Any],
        nodes: list[tuple[dict[str, int], dict[str, str]]],
        apps: list[tuple[str, dict[str, str], str]],
        asks: list[list[AskDrawn]],
    ) -> None:
        self.compared = self.kind(config)
        self.reference, self.rm = self.compared.reference, self.compared.rm
        for node_id, (capacity, attributes) in zip(NODE_IDS, nodes, strict=False):
            self.compared.add_node(node_id, capacity, attributes)
        for path, tags, user in apps:
            self.compared.submit(path, tags, user, GROUPS[user])
        for app_id, some in zip(sorted(self.reference.apps), asks, strict=False):
            for ask in some:
                self._ask(app_id, ask)

    def teardown(self) -> None:
        if hasattr(self, "compared"):
            self.schedule_all()
            self.invariants_hold()

    @invariant()
    def invariants_hold(self) -> None:
        if hasattr(self, "compared"):
            self.compared.check()

    # -- nodes ----------------------------------------------------------------------------------------

    @rule(node_id=st.sampled_from(NODE_IDS), capacity=CAPACITIES, attributes=ATTRIBUTES)
    def add_node(self, node_id: str, capacity: dict[str, int], attributes: dict[str, str]) -> None:
        self.compared.add_node(node_id, capacity, attributes)

    @precondition(lambda self: self.reference.nodes)
    @rule(data=st.data(), capacity=CAPACITIES)
    def resize_node(self, data: st.DataObject, capacity: dict[str, int]) -> None:
        self.compared.resize_node(self._draw_node(data), capacity)

    @precondition(lambda self: self.reference.nodes)
    @rule(data=st.data(), occupied=AMOUNTS)
    def occupy_node(self, data: st.DataObject, occupied: dict[str, int]) -> None:
        self.compared.occupy_node(self._draw_node(data), occupied)

    @precondition(lambda self: self.reference.nodes)
    @rule(data=st.data(), attributes=ATTRIBUTES.filter(bool))
    def relabel_node(self, data: st.DataObject, attributes: dict[str, str]) -> None:
        self.compared.relabel_node(self._draw_node(data), attributes)

    @precondition(lambda self: self.reference.nodes)
    @rule(data=st.data(), action=st.sampled_from([NodeAction.DRAIN_NODE, NodeAction.DRAIN_TO_SCHEDULABLE]))
    def drain_or_resume_node(self, data: st.DataObject, action: NodeAction) -> None:
        self.compared.move_node(self._draw_node(data), action)

    @precondition(lambda self: self.reference.nodes)
    @rule(data=st.data())
    def decommission_node(self, data: st.DataObject) -> None:
        self.compared.remove_node(self._draw_node(data))

    @precondition(lambda self: self.reference.apps)
    @rule(data=st.data(), node_id=st.sampled_from(NODE_IDS), capacity=CAPACITIES, amount=AMOUNTS)
    def recover_on_new_node(
        self, data: st.DataObject, node_id: str, capacity: dict[str, int], amount: dict[str, int]
    ) -> None:
        uuid = f"{data.draw(st.sampled_from(KEYS))}#{data.draw(st.integers(1, 9))}"
        self.compared.recover(node_id, capacity, self._draw_app(data), uuid, amount)

    def _draw_node(self, data: st.DataObject) -> str:
        return str(data.draw(st.sampled_from(sorted(self.reference.nodes))))

    # -- applications, asks, releases -------------------------------------------------------------------

    @rule(app=APPS, again=st.integers(0, 9))
    def submit(self, app: tuple[str, dict[str, str], str], again: int) -> None:
        path, tags, user = app
        self.compared.submit(path, tags, user, GROUPS[user], again=again == 1)

    @precondition(lambda self: self.reference.apps)
    @rule(data=st.data())
    def remove_application(self, data: st.DataObject) -> None:
        self.compared.remove_app(self._draw_app(data))

    @precondition(lambda self: self.reference.apps)
    @rule(data=st.data(), asks=st.lists(ASKS, min_size=1, max_size=4), most=st.integers(0, 4))
    def ask(self, data: st.DataObject, asks: list[AskDrawn], most: int) -> None:
        for ask in asks:
            self._ask(self._draw_app(data), ask)
        self.compared.schedule(most)

    def _ask(self, app_id: str, ask: AskDrawn) -> None:
        key, count, priority, amount, tags = ask
        if self.kind is not ReservingComparedScheduler:
            # A required node is reserved at once; the plain reference has no reservations.
            tags = {name: value for name, value in tags.items() if name != REQUIRED}
        self.compared.ask(app_id, key, count, priority, amount, tags)

    @precondition(lambda self: self.reference.apps)
    @rule(data=st.data(), key=st.sampled_from(["", *KEYS]))
    def release_asks(self, data: st.DataObject, key: str) -> None:
        self.compared.release_asks(self._draw_app(data), key)

    @precondition(lambda self: self.rm.running)
    @rule(data=st.data(), count=st.integers(1, 3), most=st.integers(0, 4))
    def release(self, data: st.DataObject, count: int, most: int) -> None:
        for _ in range(min(count, len(self.rm.running))):
            self.compared.release(data.draw(st.sampled_from(sorted(self.rm.running))))
        self.compared.schedule(most)

    def _draw_app(self, data: st.DataObject) -> str:
        return str(data.draw(st.sampled_from(sorted(self.reference.apps))))

    # -- time, configuration, decisions -------------------------------------------------------------------

    @rule(seconds=st.sampled_from([1, 1, 12, 31, 301]))
    def pass_time(self, seconds: int) -> None:
        self.compared.pass_time(seconds)

    @precondition(lambda self: self.compared.placed > 2)
    @rule(config=partition_configs(), without=st.sampled_from(["", "", "zone", "crowd", "disk"]))
    def reload(self, config: dict[str, Any], without: str) -> None:
        self.compared.reload(config, [name for name in self.kind.predicates if name != without])

    @rule(most=st.integers(1, 3))
    def schedule_some(self, most: int) -> None:
        self.compared.schedule(most)

    @rule()
    def schedule_all(self) -> None:
        self.compared.schedule_all()


class Retrying(SideBySide):
    """The same with predicates that do not declare all their inputs, so that the scheduler retries."""

    kind = RetryingComparedScheduler


class Reserving(SideBySide):
    """The same with reservations."""

    kind = ReservingComparedScheduler
