"""Preemption for gangs beside other events: lost members, a reload, restarts, guarantees, turns of others."""

from __future__ import annotations

import pytest

from tests.core.gangs import GangRM
from tests.core.kit import configuration, queue
from tests.topology.racks import TAG, domains, gang, placed
from tests.topology.test_domain_preemption import (
    ALL,
    cluster,
    end,
    ended,
    fill_racks,
    kept_domains,
    overdue,
    running,
    without_entitlement,
)
from yunikorn.interface.messages import NodeAction

REQUIRED = "yunikorn.apache.org/requiredNode"


def low(rm: GangRM, size: int, *, alive: int | None = None) -> None:
    """Run a gang of `size` in queue b, of which `alive` members have not finished."""
    rm.gang("low", "Atomic", "root.b", gpu=size)
    for number in range(size):
        rm.task("low", f"m{number}", "workers", gpu=1)
    assert len(placed(rm, "low")) == size
    for number in range(size if alive is None else alive, size):
        rm.release("low", key=f"m{number}")


def test_gang_whose_rack_is_kept_preempts_there_when_it_may() -> None:
    rm = without_entitlement()
    for rack in (2, 3):
        for node in (1, 2):
            rm.change_node(f"b1-r{rack}-n{node}", NodeAction.DECOMMISSION)
    fill_racks(rm, 1)
    assert len(overdue(rm, "g")) == 2
    rm.reload(configuration(queue("a", resources=ALL), queue("b"), topology=["block", "rack"]))
    assert len(ended(rm)) == 4


def test_gang_with_a_replaced_member_does_not_preempt_a_second_rack() -> None:
    rm = cluster(per_block=2)
    fill_racks(rm, 1, 2)
    gang(rm, "g", 16, "rack")
    (rack,) = domains(ended(rm))
    rm.task("g", "others", "workers", 15, gpu=1)
    rm.release_ask("g", "g-m")
    rm.task("g", "last", "workers", gpu=1)
    assert domains(ended(rm)) == [rack]
    rm.confirm()
    assert domains(placed(rm, "g")) == [rack]


def test_gang_with_finished_members_does_not_start_again_as_a_whole() -> None:
    rm = cluster(per_block=1, nodes=1)
    low(rm, 4, alive=2)
    rm.app("high")
    rm.ask("high", "h", gpu=8)
    assert ended(rm) == ["m0", "m1"]
    rm.confirm()
    assert rm.schedule() == [("high", "h", "b1-r1-n1")]
    rm.task("low", "again", "workers", 2, gpu=1)
    rm.remove_app("high")
    assert len(rm.schedule()) == 2


def test_gang_whose_member_was_replaced_starts_again_as_a_whole() -> None:
    rm = cluster(per_block=1, nodes=1)
    low(rm, 4, alive=3)
    running(rm, "b1-r1-n1", 5)
    rm.task("low", "again", "workers", gpu=1)
    assert rm.schedule() == []
    rm.app("high")
    rm.ask("high", "h", gpu=6)
    assert ended(rm) == ["b1-r1-n1-0", "m0", "m1", "m2"]
    rm.confirm()
    assert rm.schedule() == [("high", "h", "b1-r1-n1")]
    rm.task("low", "others", "workers", 3, gpu=1)
    assert rm.schedule() == []


def test_late_member_does_not_wait_for_a_gang_whose_driver_was_preempted() -> None:
    rm = cluster(per_block=1, nodes=1)
    low(rm, 2, alive=0)
    rm.ask("low", "driver", gpu=6)
    rm.schedule()
    running(rm, "b1-r1-n1", 2)
    rm.task("low", "late", "workers", gpu=1)
    rm.app("high")
    rm.ask("high", "h", gpu=8)
    assert "driver" in ended(rm)
    rm.confirm()
    assert rm.schedule() == [("high", "h", "b1-r1-n1")]
    rm.remove_app("high")
    assert rm.schedule() == [("low", "late", "b1-r1-n1")]


def test_gang_that_starts_again_may_take_another_rack() -> None:
    rm = cluster(per_block=2, nodes=1)
    rm.change_node("b1-r2-n1", NodeAction.DRAIN_NODE)
    gang(rm, "low", 8, "rack", queue_name="root.b")
    assert len(placed(rm, "low")) == 8
    rm.task("low", "more", "workers", 8, gpu=1)
    rm.schedule()
    rm.change_node("b1-r2-n1", NodeAction.DRAIN_TO_SCHEDULABLE)
    rm.app("high")
    rm.ask("high", "h", gpu=2, tags={REQUIRED: "b1-r1-n1"})
    rm.schedule()
    assert len(rm.evicted) == 8
    rm.confirm()
    assert placed(rm, "low") == ["b1-r2-n1"] * 8


def test_gang_that_lost_a_member_does_not_take_the_turn_of_the_next_one() -> None:
    rm = without_entitlement()
    fill_racks(rm, 1, 2, 3)
    overdue(rm, "one", "two", "three")
    rm.task("two", "other", "workers", gpu=1)
    rm.release_ask("two", "two-m")
    end(rm, "b1-r1-n1-0", "b1-r1-n1-1", "b1-r1-n2-0", "b1-r1-n2-1")
    assert domains(placed(rm, "one")) == ["b1-r1"]
    rm.schedule()
    assert list(kept_domains(rm)) == ["three"]


def test_no_further_domain_is_kept_beside_a_tenth_of_the_nodes() -> None:
    rm = cluster(per_block=10)
    rm.reload(configuration(queue("a"), queue("b"), topology=["block", "rack"]))
    fill_racks(rm, *range(1, 11))
    assert len(overdue(rm, "one", "two")) == 2


def test_gang_without_requirements_is_placed_though_a_kept_node_is_lost() -> None:
    rm = cluster(topology=[], per_block=2)
    fill_racks(rm, 1, 2)
    gang_of_two(rm)
    ended(rm)
    lost, left = (node.id for node in kept_domains(rm)["g"].nodes)
    rm.change_node(lost, NodeAction.DECOMMISSION)
    rm.confirm()
    rm.schedule()
    rm.node("new", {}, gpu=8)
    assert placed(rm, "g") == [left, "new"]


def gang_of_two(rm: GangRM) -> None:
    rm.gang("g", "Atomic", "root.a", gpu=16)
    rm.task("g", "m", "workers", 2, gpu=8)


def test_gang_does_not_end_with_its_members_elsewhere_below_a_guarantee() -> None:
    of_b = queue("b", resources={"guaranteed": {"gpu": 2}})
    rm = GangRM(configuration(queue("a", resources=ALL), of_b, topology=["rack"]))
    rm.node("r1-n1", {"rack": "r1"}, gpu=8)
    low(rm, 8)
    rm.node("r2-n1", {"rack": "r2"}, gpu=2)
    rm.task("low", "more", "workers", 2, gpu=1)
    assert len(placed(rm, "low")) == 10
    gang(rm, "g", 8, "rack")
    assert ended(rm) == []


@pytest.mark.parametrize(("most", "victims"), [(11, 1), (10, 1), (8, 4), (7, 4)])
def test_lowered_quota_ends_a_gang_as_a_whole_and_no_more_than_the_excess(most: int, victims: int) -> None:
    def text(gpu: int) -> str:
        properties = {"quota.preemption.delay": "1s"}
        of_b = queue("b", resources={"max": {"gpu": gpu}}, properties=properties)
        return configuration(of_b, preemption={"quotapreemptionenabled": True})

    rm = GangRM(text(12))
    rm.node("n", {}, gpu=12)
    low(rm, 8)
    rm.gang("small", "Atomic", "root.b", gpu=3)
    rm.task("small", "s", "workers", 3, gpu=1)
    assert len(placed(rm, "small")) == 3
    rm.task("small", "more", "workers", gpu=1)
    assert len(rm.schedule()) == 1
    rm.reload(text(most))
    rm.pass_time(2)
    rm.schedule()
    assert len(rm.evicted) == victims


@pytest.mark.parametrize("priority", [0, 5])
def test_reservations_of_single_requests_give_way_to_a_gang_of_their_priority(priority: int) -> None:
    rm = cluster(per_block=1, nodes=1)
    running(rm, "b1-r1-n1", 4, 4)
    rm.app("waiting", "root.c")
    rm.ask("waiting", "w", gpu=8, priority=priority)
    rm.schedule()
    gang(rm, "g", 8, "rack")
    assert len(ended(rm)) == (0 if priority else 2)
    rm.confirm()
    assert len(placed(rm, "g")) == (0 if priority else 8)


def test_reservation_for_a_required_node_stays_when_a_gang_preempts_elsewhere() -> None:
    rm = cluster(per_block=2, nodes=1)
    running(rm, "b1-r1-n1", 8, priority=1)
    running(rm, "b1-r2-n1", 8, app_id="other")
    rm.app("waiting", "root.c")
    rm.ask("waiting", "w", gpu=8, tags={REQUIRED: "b1-r1-n1"})
    gang(rm, "g", 8, "rack")
    assert ended(rm) == ["b1-r2-n1-0"]
    nodes = rm.at_work().partition.accounting.node_reservations.nodes
    assert {node.id for node in nodes} == {"b1-r1-n1", "b1-r2-n1"}


@pytest.mark.parametrize("style", ["Hard", "Soft"])
def test_placeholders_time_out_in_a_full_cluster_and_their_rack_is_given_back(style: str) -> None:
    rm = without_entitlement()
    fill_racks(rm, 1, 2, 3)
    rm.gang("g", style, "root.a", tags={TAG: "rack"}, gpu=16, seconds=900)
    rm.task("g", "ph", "w", 16, placeholder=True, gpu=1)
    rm.task("g", "real", "w", 16, gpu=1)
    rm.schedule()
    rm.pass_time(899)
    rm.schedule()
    assert list(kept_domains(rm)) == ["g"]
    rm.pass_time(32)
    rm.schedule()
    assert kept_domains(rm) == {}
    assert ("g" in rm.at_work().partition.applications) == (style == "Soft")
    end(rm, "b1-r1-n1-0")
    assert len(rm.schedule()) == (4 if style == "Soft" else 0)


@pytest.mark.parametrize(("guaranteed", "victims"), [(4, ["more"]), (5, [])])
def test_gang_that_makes_room_in_a_quota_counts_with_all_that_ends_with_it(
    guaranteed: int, victims: list[str]
) -> None:
    of_y = queue("y", resources={"guaranteed": {"gpu": guaranteed}})
    below = [queue("x", resources={"guaranteed": {"gpu": 8}}), of_y]
    parent = {"name": "p", "resources": {"max": {"gpu": 16}}, "queues": below}
    rm = GangRM(configuration(parent, topology=["block", "rack"]))
    for rack in (1, 2):
        rm.node(f"b1-r{rack}-n1", {"block": "b1", "rack": f"r{rack}"}, gpu=10)
    rm.gang("low", "Atomic", "root.p.y", gpu=4)
    rm.task("low", "m", "workers", 4, gpu=1)
    rm.schedule()
    rm.task("low", "more", "workers", gpu=5)
    assert len(placed(rm, "low")) == 5
    gang(rm, "g", 8, "rack", queue_name="root.p.x")
    assert ended(rm) == victims
