"""Pairs of mechanisms: held placements and drains, reservations and quotas, books and reloads, workers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.accounting_checks import plain
from tests.core.book_keepers import check_books
from tests.core.gangs import GangRM
from tests.core.kit import RM, configuration, queue
from tests.core.manual_workers import acceptances, core_with_workers, registry_of, rejections
from tests.core.partition_checks import total
from tests.core.predicate_tags import ZONE
from tests.core.predicates import plugins
from tests.core.reservers import check_reserving
from tests.plugins.permit_kit import WAIT, Gate, PermitRM, clear
from tests.plugins.permit_kit import cluster as gated
from yunikorn.interface.messages import NodeAction
from yunikorn.model.ask import REQUIRED_NODE_TAG
from yunikorn.model.context import Timeouts

_ = pytest.fixture(autouse=True)(clear)


def check_counts(rm: RM) -> None:
    """Assert that nodes and queues have allocated what runs or is held."""
    partition = rm.at_work().partition
    allocations = [one for app in partition.applications.values() for one in app.allocations.values()]
    assert {one.uuid for one in allocations if one.hold is None} == set(rm.running)
    for node in partition.nodes.values():
        mine = total(one.resource for one in allocations if one.node is node)
        assert plain(node.allocated) == mine, node
    for each in partition.queues:
        mine = total(one.resource for one in allocations if each in one.app.chain)
        assert plain(each.allocated) == mine, each


# -- held placements and drains --------------------------------------------------------------------------


def drain(rm: RM, by: str) -> None:
    if by == "operator":
        rm.scheduler.drain_node(rm.rm_id, "default", "n1")
    else:
        rm.change_node("n1", NodeAction.DRAIN_NODE)


def resume(rm: RM, by: str) -> None:
    if by == "operator":
        rm.scheduler.undrain_node(rm.rm_id, "default", "n1")
    else:
        rm.change_node("n1", NodeAction.DRAIN_TO_SCHEDULABLE)


def hold(rm: PermitRM, *, gang: bool) -> None:
    """Let the gate hold two placements, those of a gang together."""
    Gate.answers["*"] = WAIT
    if gang:
        rm.gang("app", "Atomic", vcore=2)
        rm.task("app", "task", "workers", 2, vcore=1)
    else:
        rm.app("app")
        rm.ask("app", "task", 2, vcore=1)
    assert rm.schedule() == []
    assert rm.held() == ["task", "task"]


@pytest.mark.parametrize("by", ["operator", "rm"])
@pytest.mark.parametrize("gang", [False, True])
def test_drain_takes_held_placements_back_until_the_node_returns(by: str, gang: bool) -> None:
    rm = gated()
    hold(rm, gang=gang)
    drain(rm, by)
    assert rm.schedule() == []
    assert rm.held() == []
    assert not any(rm.find_node().allocated.values())
    assert rm.at_work().partition.applications["app"].unannounced == 0
    Gate.answers["*"] = None
    assert rm.after(20) == [], "no other node has room"
    resume(rm, by)
    assert rm.schedule() == [("app", "task", "n1")] * 2
    assert Gate.counts["task"] == 2
    check_counts(rm)


@pytest.mark.parametrize("by", ["operator", "rm"])
@pytest.mark.parametrize("gang", [False, True])
def test_held_placements_move_from_a_draining_node(by: str, gang: bool) -> None:
    rm = gated()
    hold(rm, gang=gang)
    rm.node("n2", vcore=4)
    drain(rm, by)
    assert rm.schedule() == []
    assert {one.node.id for each in rm.at_work().partition.held_placements for one in each.members} == {"n2"}
    Gate.answers["*"] = None
    assert rm.after(20) == [("app", "task", "n2")] * 2


@pytest.mark.parametrize("by", ["operator", "rm"])
def test_placement_that_requires_its_draining_node_stays_held(by: str) -> None:
    rm = gated()
    Gate.answers["*"] = WAIT
    rm.app("app")
    rm.ask("app", "daemon", vcore=1, tags={REQUIRED_NODE_TAG: "n1"})
    rm.schedule()
    drain(rm, by)
    assert rm.held() == ["daemon"]
    Gate.answers["*"] = None
    assert rm.after(20) == [("app", "daemon", "n1")]


# -- reservations and falling quotas ---------------------------------------------------------------------


def test_reservation_ends_with_the_room_when_the_quota_has_fallen_and_returns_when_it_rises() -> None:
    properties = {
        "quota.policy": "shift-plan", "quota.policy.amounts": "8, 1, 8", "quota.policy.period": "40"
    }  # fmt: skip
    shift = queue("a", properties=properties, resources={"max": {"memory": "8"}})
    text = configuration(shift, queue("b"), reservations={"policy": "standard", "delay": 0, "perqueue": 1})
    rm = GangRM(text, plugins(), timeouts=Timeouts(reservation=None))
    for name in ("n1", "n2"):
        rm.node(name, memory=4)
    rm.app("filler", "root.b")
    rm.ask("filler", "f", 6, memory=1)
    rm.schedule()
    rm.app("large", "root.a")
    rm.ask("large", "l", memory=3)
    rm.schedule()
    (node,) = [each for each in rm.at_work().partition.nodes.values() if each.reservations]
    rm.pass_time(41)
    rm.schedule()
    assert rm.find_queue().max == {"memory": 1}
    assert [ask.key for ask in node.reservations] == ["l"]
    for uuid in [uuid for uuid, one in rm.running.items() if one.node_id == node.id][:2]:
        rm.release("filler", uuid)
    rm.ask("filler", "small", memory=3)
    assert rm.schedule() == [("filler", "small", node.id)], "the room is not kept for what may not run"
    assert not node.reservations
    check_reserving(rm.at_work())
    rm.pass_time(40)
    rm.schedule()
    assert sum(len(each.reservations) for each in rm.at_work().partition.nodes.values()) == 1
    for uuid in [uuid for uuid, one in rm.running.items() if one.allocation_key == "small"]:
        rm.release("filler", uuid)
    assert [key for _, key, _ in rm.schedule()] == ["l"]
    check_reserving(rm.at_work())
    check_counts(rm)


# -- weighted scores, books and reloads ------------------------------------------------------------------

SPREAD: Any = {"name": "spread", "attribute": ZONE, "max": 2}


def scored(*predicates: Any, binpacking: int, sparse: int, ledger: bool = True) -> str:
    scores = [{"name": "binpacking", "weight": binpacking}, {"name": "sparse", "weight": sparse}]
    return configuration(
        queue("a"),
        predicates=[*predicates, *(["ledger"] if ledger else [])],
        nodesortpolicy={"type": "weighted", "scores": scores},
    )


def test_books_and_weights_follow_reloads() -> None:
    rm = RM(scored(binpacking=3, sparse=1), plugins())
    for number, zone in enumerate("xxyy"):
        rm.node(f"n{number}", {ZONE: zone}, memory=8)
    rm.app()
    rm.ask(key="before", count=3, memory=1)
    assert len(rm.schedule()) == 3
    check_books(rm.at_work())
    # The new books contain what runs already, so that one zone is full before the first question.
    rm.reload(scored(SPREAD, binpacking=1, sparse=3))
    check_books(rm.at_work())
    zones = [one.node_id in ("n0", "n1") for one in rm.running.values()]
    rm.ask(key="between", count=9, memory=1)
    rm.schedule()
    counts = {
        zone: sum(rm.find_node(one.node_id).attributes[ZONE] == zone for one in rm.running.values())
        for zone in "xy"
    }
    assert counts["x"] == max(2, sum(zones))
    assert counts["y"] == max(2, 3 - sum(zones))
    check_books(rm.at_work())
    rm.reload(scored(binpacking=3, sparse=1, ledger=False))
    assert len(rm.schedule()) == 12 - sum(counts.values())
    rm.reload(scored(SPREAD, binpacking=1, sparse=1))
    check_books(rm.at_work())
    for uuid in list(rm.running)[:6]:
        rm.release("app", uuid)
    check_books(rm.at_work())
    check_counts(rm)
    assert not rm.failures()


# -- answers of workers and removed queues ---------------------------------------------------------------


@pytest.mark.parametrize("kind", ["submitpolicies", "admission"])
def test_answer_of_a_worker_after_the_queue_was_removed(kind: str) -> None:
    policies = {kind: ["site" if kind == "submitpolicies" else "licence"]}
    core: Any = core_with_workers(registry_of())
    rm = RM(configuration(queue("a"), queue("b"), **policies), scheduler=core)
    rm.node(vcore=4)
    rm.app("app")
    rm.ask("app", "task", vcore=1)
    assert len(core.manual_workers.waiting) == 1
    rm.reload(configuration(queue("b"), **policies))
    core.manual_workers.answer_all()
    rm.schedule()
    if kind == "submitpolicies":
        assert list(rejections(rm.responses)) == ["app"]
        assert "root.a" in rejections(rm.responses)["app"]
        assert rm.running == {}
    else:
        # It was accepted before: the queue drains, and ends with its last application.
        assert acceptances(rm.responses) == ["app"]
        assert [one.allocation_key for one in rm.running.values()] == ["task"]
        assert rm.find_queue().state == "Draining"
        rm.remove_app("app")
    rm.pass_time(60)
    assert rm.at_work().partition.queue("root.a") is None
    rm.app("next", "root.b")
    rm.ask("next", "task", vcore=4)
    core.manual_workers.answer_all()
    assert rm.schedule() == [("next", "task", "n1")]
    assert not rm.failures()
