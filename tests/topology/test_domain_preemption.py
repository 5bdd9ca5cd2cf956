"""Preemption for gangs: in one domain, of whole gangs or what is beyond their size, and kept for the gang."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from tests.core.gangs import GangRM
from tests.core.kit import configuration, queue
from tests.topology.racks import GPUS, domains, gang, placed, reason
from yunikorn.interface.messages import Allocation as Reported
from yunikorn.interface.messages import AllocationAsk, NodeAction, TerminationType
from yunikorn.resources import Resource
from yunikorn.scheduling.topology.kept_domains import KeptDomain

DISRUPTION = "yunikorn.apache.org/gang-disruption"
DELAY = 31
"""Seconds after which a request may preempt."""
ALL = {"guaranteed": {"gpu": 1000}}


def cluster(per_block: int = 3, nodes: int = 2, **keys: Any) -> GangRM:
    """Return racks of nodes with 8 gpu each; queue `a` is entitled to all of them."""
    keys.setdefault("topology", ["block", "rack"])
    rm = GangRM(configuration(queue("a", resources=ALL), queue("b"), queue("c"), **keys))
    for rack in range(1, per_block + 1):
        for node in range(1, nodes + 1):
            rm.node(f"b1-r{rack}-n{node}", {"block": "b1", "rack": f"r{rack}"}, gpu=GPUS)
    return rm


def running(rm: GangRM, node_id: str, *sizes: int, priority: int = 0, app_id: str = "single") -> None:
    """Report single tasks of these sizes that run on a node."""
    if app_id not in rm.at_work().partition.applications:
        rm.app(app_id, "root.b")
    for number, gpu in enumerate(sizes):
        key = f"{node_id}-{number}"
        one = Reported(
            key, app_id, node_id=node_id, resource_per_alloc=Resource({"gpu": gpu}), priority=priority
        )
        rm.update(allocations=[one])
        rm.running[key] = one


def ended(rm: GangRM) -> list[str]:
    """Return the keys of the victims, after the delay of preemption, sorted."""
    rm.schedule()
    rm.pass_time(DELAY)
    rm.schedule()
    return sorted(one.allocation_key for one in rm.evicted.values())


def fill_racks(rm: GangRM, *racks: int) -> None:
    for rack in racks:
        for node in (1, 2):
            running(rm, f"b1-r{rack}-n{node}", 4, 4)


def test_victims_of_a_gang_are_all_in_one_rack_and_no_more_than_needed() -> None:
    rm = cluster()
    fill_racks(rm, 1, 2, 3)
    gang(rm, "g", 12, "rack")
    victims = ended(rm)
    assert len(victims) == 3
    assert len(domains(victims)) == 1
    rm.confirm()
    assert domains(placed(rm, "g")) == domains(victims)


def test_rack_with_the_fewest_victims_is_cleared() -> None:
    rm = cluster()
    fill_racks(rm, 1, 3)
    running(rm, "b1-r2-n1", 4, 4)
    running(rm, "b1-r2-n2", 4)
    gang(rm, "g", 8, "rack")
    assert domains(ended(rm)) == ["b1-r2"]
    assert len(rm.evicted) == 1


def test_rack_with_the_lowest_priorities_is_cleared() -> None:
    rm = cluster()
    running(rm, "b1-r1-n1", 8, app_id="high", priority=5)
    running(rm, "b1-r1-n2", 8, app_id="high2", priority=5)
    fill_racks(rm, 2)
    running(rm, "b1-r3-n1", 8, app_id="mid", priority=3)
    running(rm, "b1-r3-n2", 8, app_id="mid2", priority=3)
    rm.gang("g", "Atomic", "root.a", tags={"yunikorn.apache.org/gang-topology": "rack"}, gpu=16)
    rm.task("g", "m", "workers", 16, priority=9, gpu=1)
    assert domains(ended(rm)) == ["b1-r2"]


def test_gang_that_needs_no_victims_in_a_rack_waits_for_what_already_ends_there() -> None:
    rm = cluster(per_block=1)
    fill_racks(rm, 1)
    gang(rm, "g", 8, "rack")
    assert len(ended(rm)) == 2
    rm.pass_time(60)
    rm.schedule()
    assert len(rm.evicted) == 2


def test_a_gang_without_requirements_preempts_anywhere() -> None:
    rm = cluster(topology=[])
    fill_racks(rm, 1, 2, 3)
    rm.gang("g", "Atomic", "root.a", gpu=40)
    rm.task("g", "m", "workers", 5, gpu=8)
    assert len(ended(rm)) == 10
    rm.confirm()
    assert len(placed(rm, "g")) == 5


def test_rack_is_kept_for_its_gang_and_not_taken_by_small_tasks_while_victims_end() -> None:
    rm = cluster(per_block=2)
    fill_racks(rm, 1, 2)
    gang(rm, "g", 16, "rack")
    victims = ended(rm)
    (rack,) = domains(victims)
    assert f"rack b1/{rack[-2:]} is kept free for it" in reason(rm, "g")
    rm.app("small", "root.c")
    rm.ask("small", "s", 20, gpu=1)
    first, *rest = list(rm.evicted)
    rm.confirm(first)
    assert rm.schedule() == []
    rm.confirm(*rest)
    assert domains(placed(rm, "g")) == [rack]
    assert rm.at_work().partition.accounting.node_reservations.nodes == {}


@pytest.mark.parametrize("mode", ["", "Pod", "PodGroup"])
def test_single_request_ends_a_whole_gang_or_none_of_it(mode: str) -> None:
    rm = cluster(per_block=1)
    tags = {DISRUPTION: mode} if mode else {}
    rm.gang("low", "Atomic", "root.b", tags=tags, gpu=12)
    rm.task("low", "m", "workers", 12, gpu=1)
    assert len(placed(rm, "low")) == 12
    rm.task("low", "more", "workers", 4, gpu=1)
    assert len(placed(rm, "low")) == 16
    rm.app("high")
    rm.ask("high", "h", gpu=2)
    if mode == "PodGroup":
        assert ended(rm) == ["m"] * 12 + ["more"] * 4
    else:
        assert ended(rm) == ["more", "more"]


def test_gang_at_its_minimum_ends_as_a_whole_and_only_if_nothing_else_suffices() -> None:
    rm = cluster(per_block=1, nodes=1)
    rm.gang("low", "Atomic", "root.b", gpu=4)
    rm.task("low", "m", "workers", 4, gpu=1)
    assert len(placed(rm, "low")) == 4
    running(rm, "b1-r1-n1", 1, 1, 1, 1)
    rm.app("high")
    rm.ask("high", "small", gpu=4)
    assert ended(rm) == [f"b1-r1-n1-{number}" for number in range(4)]
    rm.confirm()
    assert rm.schedule() == [("high", "small", "b1-r1-n1")]
    rm.ask("high", "large", gpu=3)
    assert ended(rm) == ["m"] * 4


def test_single_tasks_are_spared_where_a_gang_has_to_end() -> None:
    rm = cluster(per_block=1, nodes=1)
    rm.gang("low", "Atomic", "root.b", gpu=4)
    rm.task("low", "m", "workers", 4, gpu=1)
    assert len(placed(rm, "low")) == 4
    running(rm, "b1-r1-n1", 1, 1, 1, 1)
    rm.app("high")
    rm.ask("high", "h", gpu=5)
    victims = ended(rm)
    assert len(victims) == 5
    assert victims.count("m") == 4


def test_gang_whose_queue_would_fall_below_its_guarantee_is_no_victim() -> None:
    rm = GangRM(configuration(queue("a", resources=ALL), queue("b", resources={"guaranteed": {"gpu": 6}})))
    rm.node("n1", {}, gpu=8)
    rm.gang("low", "Atomic", "root.b", gpu=8)
    rm.task("low", "m", "workers", 8, gpu=1)
    assert len(placed(rm, "low")) == 8
    rm.app("high")
    rm.ask("high", "h", gpu=2)
    assert ended(rm) == []


def test_unknown_disruption_mode_is_refused() -> None:
    rm = cluster()
    rm.gang("g", "Atomic", "root.a", tags={DISRUPTION: "some"}, gpu=4)
    (rejected,) = rm.entries("rejected_applications")
    assert rejected.reason == f"tag {DISRUPTION}: unknown mode 'some'; known: Pod, PodGroup, Single, All"


def test_overdue_gang_keeps_one_rack_and_others_are_served_elsewhere() -> None:
    rm = GangRM(configuration(queue("a"), queue("b"), topology=["block", "rack"]))
    for rack in (1, 2, 3):
        for node in (1, 2):
            rm.node(f"b1-r{rack}-n{node}", {"block": "b1", "rack": f"r{rack}"}, gpu=GPUS)
    fill_racks(rm, 1, 2, 3)
    gang(rm, "g", 16, "rack")
    rm.schedule()
    rm.pass_time(601)
    rm.schedule()
    kept = kept_domains(rm)["g"]
    assert {node.id for node in kept.nodes} == {"b1-r1-n1", "b1-r1-n2"}
    rm.app("small", "root.b")
    rm.ask("small", "s", 8, gpu=1)
    for key in ("b1-r1-n1-0", "b1-r2-n1-0"):
        rm.release("single", key=key)
    # Only the room outside is used.
    assert {node for *_, node in rm.schedule()} == {"b1-r2-n1"}
    for key in ("b1-r1-n1-1", "b1-r1-n2-0", "b1-r1-n2-1"):
        rm.release("single", key=key)
    assert domains(placed(rm, "g")) == ["b1-r1"]


def test_removed_application_gives_its_rack_back() -> None:
    rm = cluster(per_block=2)
    fill_racks(rm, 1, 2)
    gang(rm, "g", 16, "rack")
    ended(rm)
    rm.remove_app("g")
    assert rm.at_work().partition.accounting.node_reservations.nodes == {}
    rm.confirm()
    rm.app("small", "root.c")
    rm.ask("small", "s", 16, gpu=1)
    assert len(rm.schedule()) == 16


def test_replaced_member_does_not_lose_the_rack() -> None:
    rm = cluster(per_block=2)
    fill_racks(rm, 1, 2)
    gang(rm, "g", 16, "rack")
    (rack,) = domains(ended(rm))
    rm.release_ask("g", "g-m")
    rm.task("g", "again", "workers", 16, gpu=1)
    rm.confirm()
    assert domains(placed(rm, "g")) == [rack]


def test_terminations_are_preemptions() -> None:
    rm = cluster(per_block=1)
    fill_racks(rm, 1)
    gang(rm, "g", 16, "rack")
    ended(rm)
    kinds = {one.termination_type for one in rm.evicted.values()}
    assert kinds == {TerminationType.PREEMPTED_BY_SCHEDULER}


def test_gang_that_was_preempted_starts_again_as_a_whole() -> None:
    rm = cluster(per_block=1)
    rm.gang("low", "Atomic", "root.b", gpu=12)
    rm.task("low", "m", "workers", 12, gpu=1)
    assert len(placed(rm, "low")) == 12
    rm.task("low", "more", "workers", 8, gpu=1)
    rm.app("high")
    rm.ask("high", "h", 2, gpu=6)
    assert ended(rm)[:12] == ["m"] * 12
    rm.task("low", "again", "workers", 11, gpu=1)
    rm.confirm()
    # With the requests beyond the size there are enough for a gang, but only four gpu are left.
    assert rm.schedule() == [("high", "h", "b1-r1-n1"), ("high", "h", "b1-r1-n2")]
    assert placed(rm, "low") == []
    rm.remove_app("high")
    assert len(placed(rm, "low")) == 15


def overdue(rm: GangRM, *gangs: str) -> list[str]:
    """Return the kept nodes once these gangs of 16, each of a rack, are overdue."""
    for app_id in gangs:
        gang(rm, app_id, 16, "rack")
    rm.schedule()
    rm.pass_time(601)
    rm.schedule()
    return sorted(node.id for one in kept_domains(rm).values() for node in one.nodes)


def kept_domains(rm: GangRM) -> dict[str, KeptDomain]:
    return {gang.app.id: one for gang, one in rm.at_work().cycle.atomic.domains.by_gang.items()}


def without_entitlement(**keys: Any) -> GangRM:
    rm = GangRM(configuration(queue("a"), queue("b"), **{"topology": ["block", "rack"], **keys}))
    for rack in (1, 2, 3):
        for node in (1, 2):
            rm.node(f"b1-r{rack}-n{node}", {"block": "b1", "rack": f"r{rack}"}, gpu=GPUS)
    return rm


def end(rm: GangRM, *keys: str) -> None:
    for key in keys:
        rm.release("single", key=key)


def test_gang_that_lacks_only_quota_preempts_below_the_full_queue() -> None:
    below = [queue("x", resources={"guaranteed": {"gpu": 16}}), queue("y")]
    parent = {"name": "p", "resources": {"max": {"gpu": 16}}, "queues": below}
    rm = GangRM(configuration(parent, queue("b"), topology=["block", "rack"]))
    for rack in (1, 2):
        rm.node(f"b1-r{rack}-n1", {"block": "b1", "rack": f"r{rack}"}, gpu=16)
    rm.app("y", "root.p.y")
    rm.ask("y", "y", 16, gpu=1)
    rm.app("b", "root.b")
    rm.ask("b", "b", 4, gpu=1)
    rm.schedule()
    gang(rm, "g", 8, "rack", queue_name="root.p.x")
    assert ended(rm) == ["y"] * 8
    rm.confirm()
    assert len(placed(rm, "g")) == 8


def test_room_of_a_kept_rack_is_lent_to_what_ends_before_the_gang_can_start() -> None:
    rm = without_entitlement()
    fill_racks(rm, 1, 2)
    rm.app("timed", "root.b")
    for count in (15, 1):
        ask = AllocationAsk(f"timed-{count}", "timed", "", Resource({"gpu": 1}), count)
        rm.update(asks=[attrs.evolve(ask, execution_timeout_ms=3_600_000)])
    assert {node for *_, node in rm.schedule()} == {"b1-r3-n1", "b1-r3-n2"}
    assert overdue(rm, "g") == ["b1-r3-n1", "b1-r3-n2"]
    assert "rack b1/r3 is kept free for it while work there ends, in at most 2999s" in reason(rm, "g")
    rm.release("timed", key="timed-1")
    rm.app("small", "root.b")
    rm.ask("small", "endless", gpu=1)
    long = AllocationAsk("long", "small", "", Resource({"gpu": 1}), execution_timeout_ms=3_600_000)
    short = attrs.evolve(long, allocation_key="short", execution_timeout_ms=600_000)
    rm.update(asks=[long, short])
    assert [key for _, key, _ in rm.schedule()] == ["short"]


def test_second_gang_keeps_a_rack_when_the_first_has_started() -> None:
    rm = without_entitlement()
    fill_racks(rm, 1, 2, 3)
    assert overdue(rm, "one", "two") == ["b1-r1-n1", "b1-r1-n2"]
    end(rm, "b1-r1-n1-0", "b1-r1-n1-1", "b1-r1-n2-0", "b1-r1-n2-1")
    assert domains(placed(rm, "one")) == ["b1-r1"]
    assert list(kept_domains(rm)) == ["two"]


def test_kept_rack_is_given_back_after_a_while_and_chosen_again() -> None:
    rm = without_entitlement()
    fill_racks(rm, 1, 2, 3)
    assert overdue(rm, "g") == ["b1-r1-n1", "b1-r1-n2"]
    end(rm, "b1-r3-n2-0", "b1-r3-n2-1")
    rm.pass_time(601)
    rm.schedule()
    assert sorted(node.id for node in kept_domains(rm)["g"].nodes) == ["b1-r3-n1", "b1-r3-n2"]


def test_gang_starts_in_another_rack_that_has_room_earlier() -> None:
    rm = without_entitlement()
    fill_racks(rm, 1, 2, 3)
    overdue(rm, "g")
    end(rm, "b1-r2-n1-0", "b1-r2-n1-1", "b1-r2-n2-0", "b1-r2-n2-1")
    assert domains(placed(rm, "g")) == ["b1-r2"]
    assert kept_domains(rm) == {}
    assert rm.at_work().partition.accounting.node_reservations.nodes == {}


@pytest.mark.parametrize("action", [NodeAction.DRAIN_NODE, NodeAction.DECOMMISSION])
def test_node_of_a_kept_rack_that_leaves_is_given_up(action: NodeAction) -> None:
    rm = without_entitlement()
    fill_racks(rm, 1, 2, 3)
    overdue(rm, "g")
    rm.change_node("b1-r1-n1", action)
    assert [node.id for node in kept_domains(rm)["g"].nodes] == ["b1-r1-n2"]
    end(rm, "b1-r2-n1-0", "b1-r2-n1-1", "b1-r2-n2-0", "b1-r2-n2-1")
    assert domains(placed(rm, "g")) == ["b1-r2"]


@pytest.mark.parametrize("action", [NodeAction.DRAIN_NODE, NodeAction.DECOMMISSION])
def test_gang_that_loses_all_nodes_of_its_rack_chooses_another_one_at_once(action: NodeAction) -> None:
    rm = without_entitlement()
    fill_racks(rm, 1, 2, 3)
    assert overdue(rm, "g") == ["b1-r1-n1", "b1-r1-n2"]
    rm.change_node("b1-r1-n1", action)
    rm.change_node("b1-r1-n2", action)
    rm.schedule()
    assert sorted(node.id for node in kept_domains(rm)["g"].nodes) == ["b1-r2-n1", "b1-r2-n2"]


def test_gang_whose_rack_left_before_it_was_overdue_holds_back_nothing() -> None:
    rm = cluster(topology=[], per_block=2)
    fill_racks(rm, 1, 2)
    rm.gang("g", "Atomic", "root.a", gpu=8)
    rm.task("g", "m", "workers", gpu=8)
    assert len(ended(rm)) == 2
    (node,) = kept_domains(rm)["g"].nodes
    rm.change_node(node.id, NodeAction.DECOMMISSION)
    rm.app("small", "root.b")
    rm.ask("small", "s", gpu=1)
    end(rm, next(one.allocation_key for one in rm.running.values() if one.node_id != node.id))
    assert [(app_id, key) for app_id, key, _ in rm.schedule()] == [("small", "s")]


def test_kept_rack_survives_a_reload_and_a_lost_topology() -> None:
    rm = without_entitlement()
    fill_racks(rm, 1, 2, 3)
    overdue(rm, "g")
    rm.reload(configuration(queue("a"), queue("b"), queue("c"), topology=["block", "rack"]))
    rm.schedule()
    assert sorted(node.id for node in kept_domains(rm)["g"].nodes) == ["b1-r1-n1", "b1-r1-n2"]
    rm.reload(configuration(queue("a"), queue("b")))
    end(rm, "b1-r1-n1-0", "b1-r1-n1-1", "b1-r1-n2-0", "b1-r1-n2-1")
    assert placed(rm, "g") == []
    rm.pass_time(601)
    rm.schedule()
    assert kept_domains(rm) == {}
    rm.app("small", "root.b")
    rm.ask("small", "s", 16, gpu=1)
    assert len(rm.schedule()) == 16
