"""A scheduler and its slow reference, driven side by side through anything an RM may do, in any order."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.core.books import check_books
from tests.core.kit import RM, Decision, document, partition, with_plugins
from tests.core.reference import Ask, Node, Reference
from yunikorn import api
from yunikorn.config.load import check_config
from yunikorn.errors import ConfigError
from yunikorn.interface.messages import Allocation, NodeAction
from yunikorn.objects.periods import Periods
from yunikorn.registry import Registry
from yunikorn.resources import Resource

ZONE, DISK = "zone", "disk"
REQUIRED = "yunikorn.apache.org/requiredNode"


class Zone(api.Predicate):
    """The node is in the zone that is asked for; says all that its answer depends on."""

    name = "zone"

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        wanted = ask.tags.get(ZONE, "")
        return None if wanted in ("", node.attributes.get(ZONE)) else f"not in zone {wanted}"

    def ask_class(self, ask: api.Ask) -> str:
        return ask.tags.get(ZONE, "")

    def node_class(self, node: api.Node) -> str:
        return node.attributes.get(ZONE, "")


def in_zone(ask: Ask, node: Node) -> bool:
    return ask.tags.get(ZONE, "") in ("", node.attributes.get(ZONE))


class Crowd(api.Predicate):
    """Requests that shun crowds go to nodes with less than 3 running; says of the request only."""

    name = "crowd"

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        crowded = sum(node.allocated.values()) > 3 and ask.tags.get("shy") == "yes"
        return "crowded" if crowded else None

    def ask_class(self, ask: api.Ask) -> str:
        return ask.tags.get("shy", "")


def not_crowded(ask: Ask, node: Node) -> bool:
    used = sum(sum(one.resource.values()) for one in node.running)
    return used <= 3 or ask.tags.get("shy") != "yes"


class Disk(api.Predicate):
    """The node has the disk that is asked for; says nothing of what its answer depends on."""

    name = "disk"

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        wanted = ask.tags.get(DISK, "")
        return None if wanted in ("", node.attributes.get(DISK)) else f"no {wanted}"


def has_disk(ask: Ask, node: Node) -> bool:
    return ask.tags.get(DISK, "") in ("", node.attributes.get(DISK))


NO_RESERVATIONS = Periods(reservation=None)
"""They have tests of their own: the reference looks at every node for every request."""

CHECKS = {"zone": in_zone, "crowd": not_crowded, "disk": has_disk}

_registries: dict[str, Registry] = {}


def test_registry() -> Registry:
    """The defaults and the predicates above; loaded once, because nothing changes it."""
    if not _registries:
        _registries["one"] = with_plugins(predicates=[Zone, Crowd, Disk])
    return _registries["one"]


# -- what may be drawn ------------------------------------------------------------------------------------

AMOUNTS = st.fixed_dictionaries({"memory": st.integers(0, 4)}, optional={"vcore": st.integers(1, 4)}).filter(
    lambda amount: any(amount.values())
)
CAPACITIES = st.fixed_dictionaries(
    {"memory": st.sampled_from([4, 8, 16])}, optional={"vcore": st.sampled_from([4, 8]), "gpu": st.just(1)}
)
QUOTAS = st.dictionaries(st.sampled_from(["memory", "vcore"]), st.integers(0, 9), min_size=1)
PROPERTIES = st.fixed_dictionaries(
    {},
    optional={
        "application.sort.policy": st.sampled_from(["fifo", "fair", "stateaware"]),
        "application.sort.priority": st.sampled_from(["enabled", "disabled"]),
        "priority.policy": st.sampled_from(["default", "fence"]),
        "priority.offset": st.sampled_from(["-1", "0", "2"]),
        "node.sort.policy": st.just("packed"),
        "queue.state": st.sampled_from(["stopped", "active", "active"]),
    },
)
QUEUE_PATHS = ["root.a", "root.a", "root.b", "root.p.c", "root.p.c", "root.p.d", "root.q.e", "root.p"]
GROUPS = {"u1": ["g1"], "u2": ["g2", "g1"], "u3": []}
NODE_IDS = [f"n{number}" for number in range(5)]
KEYS = ["k0", "k1", "k2"]
APP_TAGS = st.fixed_dictionaries(
    {},
    optional={"yunikorn.apache.org/node-sort-policy": st.sampled_from(["packed", "nonsense"])},
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
        "shy": st.just("yes"),
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


@st.composite
def queue_configs(draw: Any, name: str, *children: str) -> dict[str, Any]:
    """A queue and some of the children it may have."""
    config: dict[str, Any] = {"name": name}
    if children and draw(st.integers(0, 9)):
        config["parent"] = True
        config["queues"] = [draw(queue_configs(child)) for child in children if draw(st.integers(0, 7))]
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
    """A partition with some of the queues there may be."""
    queues = [
        draw(queue_configs(*names))
        for names in (("a",), ("b",), ("p", "c", "d"), ("q", "e"))
        if draw(st.integers(0, 19))
    ]
    config = partition(*queues)
    if draw(st.booleans()):
        config["queues"][0]["properties"] = {
            name: value for name, value in draw(PROPERTIES).items() if name != "queue.state"
        }
    config["nodesortpolicies"] = [
        {"name": "packed", "type": "binpacking", "resourceweights": {"memory": 1.0}}
    ]
    kind = draw(st.sampled_from(["fair", "binpacking"]))
    config["nodesortpolicy"] = {"type": kind}
    if draw(st.booleans()):
        config["nodesortpolicy"]["resourceweights"] = {"vcore": 4.0, "memory": 1.0}
    return config


def _strip(queue: dict[str, Any], keys: tuple[str, ...]) -> None:
    for key in keys:
        queue.pop(key, None)
    for child in queue.get("queues", ()):
        _strip(child, keys)


AskDrawn = tuple[str, int, int, dict[str, int], dict[str, str]]


class SideBySide(RuleBasedStateMachine):
    """The rules; `predicates` are the names of those in the configuration."""

    predicates: tuple[str, ...] = ("zone",)
    reserving = False

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
        config = self._valid(config)
        self.rm = RM(self._text(config), test_registry(), periods=NO_RESERVATIONS)
        self.reference = Reference(config, [CHECKS[name] for name in self.predicates])
        self.apps = self.placed = 0
        for node_id, (capacity, attributes) in zip(NODE_IDS, nodes, strict=False):
            self._add_node(node_id, capacity, attributes)
        for path, tags, user in apps:
            self._submit(path, tags, user)
        for app_id, some in zip(sorted(self.reference.apps), asks, strict=False):
            for ask in some:
                self._ask(app_id, *ask)

    def _valid(self, config: dict[str, Any]) -> dict[str, Any]:
        """As drawn, or without whichever limits, numbers and quotas do not go together."""
        for keys in (("resources",), ("maxapplications",), ("maxapplications", "resources"), ("limits",)):
            if check_config(self._text(config), test_registry()).valid:
                return config
            tried = json.loads(json.dumps(config))
            _strip(tried["queues"][0], keys)
            if check_config(self._text(tried), test_registry()).valid:
                return tried
        _strip(config["queues"][0], ("limits", "maxapplications", "resources"))
        return config

    def _text(self, config: dict[str, Any]) -> str:
        return document({**config, "predicates": list(self.predicates)})

    def teardown(self) -> None:
        if hasattr(self, "rm"):
            self.schedule_all()
            self.books_are_right()

    # -- nodes ----------------------------------------------------------------------------------------

    @rule(node_id=st.sampled_from(NODE_IDS), capacity=CAPACITIES, attributes=ATTRIBUTES)
    def add_node(self, node_id: str, capacity: dict[str, int], attributes: dict[str, str]) -> None:
        self._add_node(node_id, capacity, attributes)

    def _add_node(self, node_id: str, capacity: dict[str, int], attributes: dict[str, str]) -> None:
        self.rm.heard()
        self.rm.node(node_id, attributes, **capacity)
        known = node_id in self.reference.nodes
        assert bool(self.rm.heard().rejected_nodes) == known
        if not known:
            self.reference.nodes[node_id] = Node(node_id, capacity, {}, attributes)

    @precondition(lambda self: self.reference.nodes)
    @rule(data=st.data(), capacity=CAPACITIES)
    def resize_node(self, data: st.DataObject, capacity: dict[str, int]) -> None:
        node = self._draw_node(data)
        node.capacity = capacity
        self.rm.change_node(node.id, **capacity)

    @precondition(lambda self: self.reference.nodes)
    @rule(data=st.data(), occupied=AMOUNTS)
    def occupy_node(self, data: st.DataObject, occupied: dict[str, int]) -> None:
        node = self._draw_node(data)
        node.occupied = occupied
        self.rm.change_node(node.id, occupied=occupied)

    @precondition(lambda self: self.reference.nodes)
    @rule(data=st.data(), attributes=ATTRIBUTES.filter(bool))
    def relabel_node(self, data: st.DataObject, attributes: dict[str, str]) -> None:
        node = self._draw_node(data)
        node.attributes = attributes
        self.rm.change_node(node.id, attributes=attributes)

    @precondition(lambda self: self.reference.nodes)
    @rule(data=st.data(), action=st.sampled_from([NodeAction.DRAIN_NODE, NodeAction.DRAIN_TO_SCHEDULABLE]))
    def drain_or_resume_node(self, data: st.DataObject, action: NodeAction) -> None:
        node = self._draw_node(data)
        self.rm.heard()
        self.rm.change_node(node.id, action)
        resume = action == NodeAction.DRAIN_TO_SCHEDULABLE
        assert bool(self.rm.heard().failed_node_updates) == (resume and node.schedulable)
        node.schedulable = resume

    @precondition(lambda self: self.reference.nodes)
    @rule(data=st.data())
    def decommission_node(self, data: st.DataObject) -> None:
        node = self._draw_node(data)
        self.reference.remove_node(node.id)
        self.rm.change_node(node.id, NodeAction.DECOMMISSION)

    @precondition(lambda self: self.reference.apps)
    @rule(data=st.data(), capacity=CAPACITIES, amount=AMOUNTS)
    def recover_on_new_node(
        self, data: st.DataObject, capacity: dict[str, int], amount: dict[str, int]
    ) -> None:
        app_id = data.draw(st.sampled_from(sorted(self.reference.apps)))
        node_id = data.draw(st.sampled_from(NODE_IDS))
        if node_id in self.reference.nodes:
            return
        # A uuid as the scheduler itself makes them: it may have made this one in an earlier life.
        uuid = f"{data.draw(st.sampled_from(KEYS))}#{data.draw(st.integers(1, 9))}"
        existing = Allocation(uuid.partition("#")[0], app_id, uuid, node_id, Resource(amount))
        self.rm.heard()
        self.rm.node(node_id, existing=[existing], **capacity)
        node = self.reference.nodes[node_id] = Node(node_id, capacity, {}, {})
        refused = self.rm.heard().rejected_allocations
        assert bool(refused) == (uuid in self.rm.running)
        if not refused:
            self.rm.running[uuid] = existing
            self.reference.recover(app_id, node, uuid, amount)

    def _draw_node(self, data: st.DataObject) -> Node:
        return self.reference.nodes[data.draw(st.sampled_from(sorted(self.reference.nodes)))]

    # -- applications, asks, releases -------------------------------------------------------------------

    @rule(app=APPS, again=st.integers(0, 9))
    def submit(self, app: tuple[str, dict[str, str], str], again: int) -> None:
        self._submit(*app, new=again != 0)

    def _submit(self, path: str, tags: dict[str, str], user: str, *, new: bool = True) -> None:
        self.apps += new
        app_id = f"app{self.apps}"
        groups = GROUPS[user]
        self.rm.heard()
        self.rm.app_tagged(app_id, path, tags, user=user, groups=groups)
        accepted = self.reference.submit(app_id, path, tags, user, groups)
        heard = self.rm.heard()
        assert [one.application_id for one in heard.accepted_applications] == [app_id] * accepted
        assert [one.application_id for one in heard.rejected_applications] == [app_id] * (not accepted)

    @precondition(lambda self: self.reference.apps)
    @rule(data=st.data())
    def remove_application(self, data: st.DataObject) -> None:
        app_id = self._draw_app(data)
        self.rm.remove_app(app_id)
        self.reference.remove_app(app_id)

    @precondition(lambda self: self.reference.apps)
    @rule(data=st.data(), asks=st.lists(ASKS, min_size=1, max_size=4), most=st.integers(0, 4))
    def ask(self, data: st.DataObject, asks: list[AskDrawn], most: int) -> None:
        for ask in asks:
            self._ask(self._draw_app(data), *ask)
        self._schedule(most)

    def _ask(
        self, app_id: str, key: str, count: int, priority: int, amount: dict[str, int], tags: dict[str, str]
    ) -> None:
        if not self.reserving:
            tags = {name: value for name, value in tags.items() if name != REQUIRED}
        self.rm.ask(app_id, key, count, priority=priority, tags=tags, **amount)
        self.reference.ask(app_id, key, count, priority, tags, amount)

    @precondition(lambda self: self.reference.apps)
    @rule(data=st.data(), key=st.sampled_from(["", *KEYS]))
    def release_asks(self, data: st.DataObject, key: str) -> None:
        app_id = self._draw_app(data)
        self.rm.release_ask(app_id, key)
        self.reference.release_asks(app_id, key)

    @precondition(lambda self: self.rm.running)
    @rule(data=st.data(), count=st.integers(1, 3), most=st.integers(0, 4))
    def release(self, data: st.DataObject, count: int, most: int) -> None:
        for _ in range(min(count, len(self.rm.running))):
            uuid = data.draw(st.sampled_from(sorted(self.rm.running)))
            app_id = self.rm.running[uuid].application_id
            self.rm.release(app_id, uuid)
            self.reference.release(app_id, uuid)
            assert uuid not in self.rm.running
        self._schedule(most)

    def _draw_app(self, data: st.DataObject) -> str:
        return str(data.draw(st.sampled_from(sorted(self.reference.apps))))

    # -- time and configuration -----------------------------------------------------------------------

    @rule(seconds=st.sampled_from([1, 1, 12, 31, 301]))
    def pass_time(self, seconds: int) -> None:
        self.reference.pass_time(seconds)
        self.rm.pass_time(seconds)

    @precondition(lambda self: self.placed > 2)
    @rule(config=partition_configs())
    def reload(self, config: dict[str, Any]) -> None:
        config = self._valid(config)
        reason = ""
        try:
            self.rm.reload(self._text(config))
        except ConfigError as error:
            reason = str(error)
        if reason:
            assert "cannot change its type" in reason
        else:
            self.reference.configure(config)

    # -- decisions --------------------------------------------------------------------------------------

    @rule(most=st.integers(1, 3))
    def schedule_some(self, most: int) -> None:
        self._schedule(most)

    def _schedule(self, most: int) -> None:
        for _ in range(most):
            if not self._compare(self.rm.schedule(1)):
                break

    @rule()
    def schedule_all(self) -> None:
        self.rm.heard()
        self._compare(self.rm.schedule())
        self.expect_nothing()

    def _compare(self, decisions: list[Decision]) -> bool:
        made = [one for response in self.rm.responses for one in response.new_allocations]
        uuids = [one.uuid for one in made[len(made) - len(decisions) :]]
        for decision, uuid in zip(decisions, uuids, strict=True):
            ask, node = self.choose(decision)
            assert (ask.app.id, ask.key, node.id) == decision
            self.reference.place(ask, node, uuid)
            self.placed += 1
        if not decisions:
            self.expect_nothing()
        return bool(decisions)

    def choose(self, decision: Decision) -> tuple[Ask, Node]:
        """What the reference decides, to be held against what was decided."""
        found = next(self.reference.candidates(), None)
        assert found is not None, f"{decision} was decided, although nothing can be placed"
        return found

    def expect_nothing(self) -> None:
        """Nothing is left that could be placed."""
        left = [(ask.app.id, ask.key, node.id) for ask, node in self.reference.candidates()]
        assert left == [], f"could be placed, and was not: {left}"

    @invariant()
    def books_are_right(self) -> None:
        if hasattr(self, "rm"):
            assert self.rm.faults() == []
            check_books(self.rm, self.reference)


class ByRetry(SideBySide):
    """With predicates that have to be asked again and again, and which the scheduler asks with a back-off.

    Meanwhile others may overtake; but only those, and nothing may be left in the end.
    """

    predicates = ("zone", "crowd", "disk")

    def choose(self, decision: Decision) -> tuple[Ask, Node]:
        for ask, node in self.reference.candidates():
            if (ask.app.id, ask.key, node.id) == decision:
                return ask, node
            assert self._waits_for_a_retry(ask), f"{ask.app.id} {ask.key} was passed over for {decision}"
        raise AssertionError(f"{decision} was decided, although it cannot be placed there")

    def _waits_for_a_retry(self, ask: Ask) -> bool:
        partition = self.rm.at_work().partition
        real = partition.applications[ask.app.id].asks[ask.key]
        return real.parked or real.shape.closed


class Reserving(SideBySide):
    """With reservations: nodes that are kept for somebody are hidden from all others.

    What is decided must still be allowed, and what is left must have no other node to go to.
    """

    reserving = True

    def choose(self, decision: Decision) -> tuple[Ask, Node]:
        app_id, key, node_id = decision
        ask = self.reference.apps[app_id].asks[key]
        nodes = [node for node in self.reference.nodes_for(ask) if node.id == node_id]
        assert nodes, f"{decision} was decided, although it is not allowed"
        return ask, nodes[0]

    def expect_nothing(self) -> None:
        nodes = self.rm.at_work().partition.nodes
        left = [
            (ask.app.id, ask.key, node.id)
            for ask, _ in self.reference.candidates()
            for node in self.reference.nodes_for(ask)
            if all((one.app.id, one.key) == (ask.app.id, ask.key) for one in nodes[node.id].reservations)
        ]
        assert left == [], f"could be placed, and was not: {left}"

    @invariant()
    def reservations_are_right(self) -> None:
        if not hasattr(self, "rm"):
            return
        partition = self.rm.at_work().partition
        held = {ask for node in partition.nodes.values() for ask in node.reservations}
        for app in partition.applications.values():
            for ask in app.asks.values():
                assert (ask in held) == (ask.reserved is not None), ask
        for node in partition.nodes.values():
            for ask in node.reservations:
                assert ask.reserved is node
                assert ask.pending or ask in partition.ledger.vacated, ask
            others = [ask for ask in node.reservations if not ask.shape.required]
            assert len(others) <= 1, node
            assert not others or len(node.reservations) == 1, node
