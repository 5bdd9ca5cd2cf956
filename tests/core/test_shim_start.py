"""The start of a shim: a whole cluster is reported at once, and its nodes are opened afterwards."""

from __future__ import annotations

from typing import Any

from tests.core.book_keepers import Alone, Few, Witness, check_books
from tests.core.kit import RM, configuration, queue, with_plugins
from yunikorn import api
from yunikorn.interface.messages import (
    AddApplicationRequest,
    Allocation,
    AllocationAsk,
    NewNodeInfo,
    NodeAction,
    PreemptionPolicy,
    UpdateNodeInfo,
    UpdateRequest,
    UserGroupInformation,
)
from yunikorn.model.ask import REQUIRED_NODE_TAG
from yunikorn.resources import Resource


class NotOnTainted(api.Predicate):
    """Refuses tainted nodes; keeps books that it does not need, and prepares each search."""

    name = "not-on-tainted"

    def prepare(self, ask: api.Ask) -> bool:
        return "tolerates" in ask.tags

    def check(self, ask: api.Ask, node: api.Node, state: bool) -> str | None:
        return "tainted" if "taint" in node.attributes and not state else None


class OneEach(api.Predicate):
    """Accepts one task with a label per node; prepares its state from its books."""

    name = "one-each"

    def __init__(self) -> None:
        self.labels: list[tuple[str, str]] = []
        self.prepared = 0

    def prepare(self, ask: api.Ask) -> frozenset[str]:
        self.prepared += 1
        label = ask.tags.get("label", "")
        return frozenset(node for label_of, node in self.labels if label_of == label and label)

    def check(self, ask: api.Ask, node: api.Node, state: frozenset[str]) -> str | None:
        return "taken" if node.id in state else None

    def placed(self, task: api.Task, node: api.Node) -> None:
        self.labels.append((task.tags.get("label", ""), node.id))

    def released(self, task: api.Task, node: api.Node) -> None:
        self.labels.remove((task.tags.get("label", ""), node.id))


def cluster(*predicates: str, config: str = "") -> RM:
    kinds = [NotOnTainted, OneEach, Witness, Few, Alone]
    return RM(config or configuration(predicates=list(predicates)), with_plugins(predicates=kinds))


def whole(nodes: int, apps: int, *, opening: bool) -> UpdateRequest:
    """Return the report of a cluster: on each node a foreign task and two own, and as many requests wait."""
    user = UserGroupInformation("user", ["group"])
    found = UpdateRequest("rm")
    found.new_applications = [
        AddApplicationRequest(f"app{number}", "root.a", ugi=user, tags={"application.create.force": "true"})
        for number in range(apps)
    ]
    for number in range(nodes):
        node_id = f"n{number}"
        existing = [
            Allocation(f"r{number}-{copy}", f"app{(number + copy) % apps}", "", node_id, Resource(vcore=1))
            for copy in range(2)
        ]
        found.new_schedulable_nodes.append(
            NewNodeInfo(node_id, {"zone": "z"}, Resource(vcore=8), Resource(), existing, schedulable=False)
        )
        foreign = Allocation(f"f{number}", "", "", node_id, Resource(vcore=1))
        foreign.allocation_tags = {"foreign": "default", "port": "80"}
        found.allocations.append(foreign)
        found.allocations.append(Allocation(f"w{number}", f"app{number % apps}", "", "", Resource(vcore=1)))
        found.asks.append(
            AllocationAsk(
                f"v{number}", f"app{number % apps}", resource_ask=Resource(vcore=1), tags={"a": "b"}
            )
        )
        if opening:
            found.updated_nodes.append(UpdateNodeInfo(node_id, NodeAction.DRAIN_TO_SCHEDULABLE))
    return found


def check_whole(rm: RM, nodes: int) -> None:
    """Assert that everything was accepted, and that all requests are placed."""
    refused = [
        *rm.entries("rejected_allocations"),
        *rm.entries("rejected_nodes"),
        *rm.entries("failed_node_updates"),
    ]
    assert refused == []
    rm.schedule()
    assert len(rm.running) == 2 * nodes
    assert rm.find_queue().allocated == {"vcore": 4 * nodes}
    assert rm.find_node("n1").occupied == {"vcore": 1}
    check_books(rm.at_work())


def test_a_whole_cluster_in_one_update() -> None:
    rm = cluster("witness", "not-on-tainted")
    rm.scheduler.update(whole(150, 12, opening=True))
    check_whole(rm, 150)


def test_nodes_open_after_everything_was_reported() -> None:
    rm = cluster("witness")
    rm.scheduler.update(whole(60, 5, opening=False))
    assert rm.schedule() == []
    assert all(node.state == "Draining" for node in rm.at_work().partition.nodes.values())
    rm.update(
        updated_nodes=[UpdateNodeInfo(f"n{number}", NodeAction.DRAIN_TO_SCHEDULABLE) for number in range(60)]
    )
    check_whole(rm, 60)


def test_nodes_first_and_applications_later() -> None:
    rm = cluster("witness")
    report = whole(30, 3, opening=True)
    for node in report.new_schedulable_nodes:
        for one in node.existing_allocations:
            one.allocation_tags = {"application.create.force": "true"}
    rm.update(new_schedulable_nodes=report.new_schedulable_nodes)
    check_books(rm.at_work())
    rm.update(
        new_applications=report.new_applications,
        asks=report.asks,
        allocations=report.allocations,
        updated_nodes=report.updated_nodes,
    )
    check_whole(rm, 30)


# -- required nodes ---------------------------------------------------------------------------------------


def test_a_required_node_is_asked_about_as_any_other() -> None:
    rm = cluster("not-on-tainted", "one-each", "few")
    rm.node("n1", {"taint": "x"}, vcore=8)
    rm.node("n2", vcore=8)
    rm.app()
    required = {REQUIRED_NODE_TAG: "n1"}
    rm.ask(key="refused", vcore=1, tags=required)
    rm.ask(key="tolerates", vcore=1, tags={**required, "tolerates": "x", "label": "a"})
    assert rm.schedule() == [("app", "tolerates", "n1")]
    rm.ask(key="again", vcore=1, tags={**required, "tolerates": "x", "label": "a"})
    assert rm.schedule() == []
    rm.release(key="tolerates")
    assert rm.schedule() == [("app", "again", "n1")]
    rm.change_node("n1", attributes={"zone": "z"})
    assert rm.schedule() == [("app", "refused", "n1")]


def test_a_required_node_may_be_drained() -> None:
    rm = cluster("not-on-tainted", "one-each")
    rm.node("n1", schedulable=False, vcore=8)
    rm.app()
    rm.ask(key="daemon", vcore=1, tags={REQUIRED_NODE_TAG: "n1", "label": "a"})
    rm.ask(key="other", vcore=1)
    assert rm.schedule() == [("app", "daemon", "n1")]


# -- preemption ---------------------------------------------------------------------------------------------


def preempting(*predicates: str) -> Any:
    """Return a full cluster with a request that has a guarantee; each victim has the label of the request."""
    config = configuration(
        queue("a", resources={"guaranteed": {"vcore": "4m"}}, properties={"preemption.delay": "1s"}),
        queue("b"),
        predicates=list(predicates),
    )
    rm = cluster(config=config)
    for name in ("n1", "n2"):
        rm.node(name, vcore=2)
    rm.app("low", "root.b")
    for number in range(2):
        rm.ask("low", f"v{number}", vcore=2, tags={"label": "x"})
    rm.schedule()
    rm.app()
    return rm


def test_preemption_prepares_with_the_books_without_the_victims() -> None:
    rm = preempting("one-each")
    rm.ask(key="k", vcore=2, tags={"label": "x"}, policy=PreemptionPolicy())
    rm.schedule()
    rm.pass_time(20)
    rm.schedule()
    [victim] = rm.evicted.values()
    node_id = rm.running[victim.uuid].node_id
    rm.confirm()
    assert rm.schedule() == [("app", "k", node_id)]


def test_preemption_spares_victims_whose_end_would_not_help() -> None:
    rm = preempting("one-each", "not-on-tainted")
    for name in ("n1", "n2"):
        rm.change_node(name, attributes={"taint": "x"})
    rm.ask(key="k", vcore=2, tags={"label": "x"}, policy=PreemptionPolicy())
    rm.schedule()
    rm.pass_time(20)
    rm.schedule()
    assert not rm.evicted
