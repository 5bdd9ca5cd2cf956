"""Random histories after which no ask that could be placed is left waiting: each pending ask has a reason."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.core.kit import RM, configuration, queue, with_plugins
from tests.core.test_machine import BOUNDS
from yunikorn import api
from yunikorn.explain.explanations import POSITION, first_reasons, why
from yunikorn.interface.messages import Allocation, NodeAction
from yunikorn.model.context import Timeouts
from yunikorn.resources import Resource

QUEUES = ["root.a", "root.p.b", "root.p.c", "root.p"]
STOPPABLE = [*QUEUES, "root"]
NODES = ["n0", "n1", "n2"]
KEYS = ["k0", "k1", "k2"]
AMOUNTS = st.integers(1, 5)


class Picky(api.Predicate):
    """Refuses crowded nodes to asks tagged shy, without declaring its inputs."""

    name = "picky"

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        crowded = sum(node.allocated.values()) + sum(node.occupied.values()) > 3
        return "crowded" if crowded and ask.tags.get("shy") else None


REGISTRY = with_plugins(predicates=[Picky])


@st.composite
def configurations(draw: Any) -> str:
    """Draw queues with or without quotas, limits on applications and users, and back-off."""

    def one(name: str, *children: Any) -> dict[str, Any]:
        keys: dict[str, Any] = {}
        if not children and draw(st.integers(0, 2)) == 0:
            keys["resources"] = {"max": {"memory": str(draw(st.integers(4, 9)))}}
        if not children and draw(st.integers(0, 2)) == 0:
            keys["maxapplications"] = draw(st.integers(1, 2))
        if not children and draw(st.integers(0, 2)) == 0:
            keys["properties"] = {
                "application.sort.policy": draw(st.sampled_from(["fifo", "fair", "stateaware"])),
                "application.unschedasks.backoff": str(draw(st.integers(0, 2))),
                "application.unschedasks.backoff.delay": "10s",
            }
        if "resources" not in keys and draw(st.integers(0, 3)) == 0:
            keys["limits"] = [{"limit": "each", "users": ["*"], "maxresources": {"memory": "6"}}]
        return queue(name, *children, **keys)

    tree = configuration(one("a"), one("p", one("b"), one("c")), predicates=["picky"])
    return tree


class NoStarvation(RuleBasedStateMachine):
    """An RM that sends random messages."""

    @initialize(
        config=configurations(),
        capacities=st.lists(st.integers(2, 9), min_size=1, max_size=3),
        eager=st.sampled_from([True, True, False]),
    )
    def start(self, config: str, capacities: list[int], eager: bool) -> None:
        self.eager = eager
        self.rm = RM(config, REGISTRY, timeouts=Timeouts(reservation=None))
        self.foreign = 0
        self.apps: list[str] = []
        for node_id, memory in zip(NODES, capacities, strict=False):
            self.rm.node(node_id, memory=memory)
        for path in QUEUES[:3]:
            self.submit(path, "u1")

    @rule(path=st.sampled_from(QUEUES[:3]), user=st.sampled_from(["u1", "u2"]))
    def submit(self, path: str, user: str) -> None:
        app_id = f"app{len(self.apps)}"
        self.apps.append(app_id)
        self.rm.app(app_id, path, user=user)
        self.rm.ask(app_id, "k0", 2, memory=2)

    @rule(
        data=st.data(), key=st.sampled_from(KEYS), memory=AMOUNTS, count=st.integers(1, 3), shy=st.booleans()
    )
    def ask(self, data: st.DataObject, key: str, memory: int, count: int, shy: bool) -> None:
        app_id = data.draw(st.sampled_from(self.apps))
        self.rm.ask(app_id, key, count, tags={"shy": "yes"} if shy else {}, memory=memory)

    @precondition(lambda self: self.rm.running)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        uuid = data.draw(st.sampled_from(sorted(self.rm.running)))
        self.rm.release(self.rm.running[uuid].application_id, uuid)

    @precondition(lambda self: self.rm.running)
    @rule(data=st.data(), memory=AMOUNTS)
    def resize(self, data: st.DataObject, memory: int) -> None:
        one = self.rm.running[data.draw(st.sampled_from(sorted(self.rm.running)))]
        changed = Allocation(
            one.allocation_key, one.application_id, one.uuid, one.node_id, Resource(memory=memory)
        )
        self.rm.update(allocations=[changed])

    @rule(data=st.data(), key=st.sampled_from(KEYS), node_id=st.sampled_from(NODES), memory=AMOUNTS)
    def place(self, data: st.DataObject, key: str, node_id: str, memory: int) -> None:
        self.foreign += 1
        app_id = data.draw(st.sampled_from(self.apps))
        made = Allocation(key, app_id, f"own-{self.foreign}", node_id, Resource(memory=memory))
        self.rm.update(allocations=[made])

    @rule(key=st.sampled_from(KEYS), node_id=st.sampled_from(NODES), memory=st.integers(0, 3))
    def put_foreign(self, key: str, node_id: str, memory: int) -> None:
        pod = Allocation(
            key, "", "", node_id, Resource(memory=memory), allocation_tags={"foreign": "default"}
        )
        self.rm.update(allocations=[pod])

    @rule(key=st.sampled_from(KEYS))
    def release_foreign(self, key: str) -> None:
        self.rm.release(app_id="", key=key)

    @rule(path=st.sampled_from(STOPPABLE), stop=st.sampled_from([True, False, False]))
    def switch_queue(self, path: str, stop: bool) -> None:
        if stop:
            self.rm.scheduler.stop_queue("rm", "default", path)
        else:
            self.rm.scheduler.start_queue("rm", "default", path)

    @rule(stop=st.sampled_from([True, False, False]))
    def switch_partition(self, stop: bool) -> None:
        if stop:
            self.rm.scheduler.stop_partition("rm", "default")
        else:
            self.rm.scheduler.start_partition("rm", "default")

    @rule(node_id=st.sampled_from(NODES), memory=st.integers(2, 9))
    def node(self, node_id: str, memory: int) -> None:
        if node_id in self.rm.at_work().partition.nodes:
            self.rm.change_node(node_id, memory=memory)
        else:
            self.rm.node(node_id, memory=memory)

    @rule(node_id=st.sampled_from(NODES), action=st.sampled_from(list(NodeAction)[1:]))
    def act_on_node(self, node_id: str, action: NodeAction) -> None:
        self.rm.change_node(node_id, action)

    @rule(seconds=st.sampled_from([1, 12, 31]))
    def pass_time(self, seconds: int) -> None:
        self.rm.pass_time(seconds)

    @rule()
    def schedule(self) -> None:
        self.rm.schedule()
        self.no_placeable_ask_is_pending()

    def no_placeable_ask_is_pending(self) -> None:
        """Assert that each pending ask has a reason."""
        at = self.rm.at_work()
        for ask, _, reason in first_reasons(at):
            assert reason is not POSITION, f"{ask} could be placed"
        for app in at.partition.applications.values():
            for ask in app.asks.values():
                assert bool(why(at, ask)) == bool(ask.pending)

    @invariant()
    def accounting_holds(self) -> None:
        if not hasattr(self, "apps"):
            return
        if self.eager:
            self.schedule()
        partition = self.rm.at_work().partition
        assert set(self.rm.running) == set(partition.accounting.allocations)
        for node in partition.nodes.values():
            running = sum(one.resource["memory"] for one in node.allocations.values())
            others = sum(one.resource.get("memory", 0) for one in partition.foreign if one.node is node)
            assert node.occupied.get("memory", 0) == others
            assert node.available.get("memory", 0) == node.capacity["memory"] - running - others
        total = sum(one.resource["memory"] for one in partition.accounting.allocations.values())
        assert partition.used.get("memory", 0) == total


TestNoStarvation = NoStarvation.TestCase
TestNoStarvation.settings = settings(BOUNDS)
