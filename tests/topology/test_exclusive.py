"""Exclusive domains: no other work runs in a rack while members of its gang do."""

from __future__ import annotations

import json
from typing import Any

from tests.core.gangs import GangRM
from tests.core.kit import configuration, queue
from tests.topology.racks import GPUS, TAG, domains, gang, placed, racks, reason
from yunikorn.interface.messages import Allocation as Reported
from yunikorn.resources import Resource

RACK = {"required": "rack", "exclusive": True}
"""A rack alone."""
ALL = {"guaranteed": {"gpu": 1000}}
REQUIRED_NODE = "yunikorn.apache.org/requiredNode"
DELAY = 31
"""Seconds after which a request may preempt."""


def running(rm: GangRM, node_id: str, app_id: str = "serving", gpu: int = 1, **more: Any) -> str:
    """Report a task that runs on a node, and return its key."""
    if app_id not in rm.at_work().partition.applications:
        rm.app(app_id, "root.b")
    key = f"{app_id}-{node_id}"
    one = Reported(key, app_id, node_id=node_id, resource_per_alloc=Resource(gpu=gpu), **more)
    rm.update(allocations=[one])
    return key


def end(rm: GangRM, app_id: str, node_id: str = "") -> None:
    """End the tasks of an application, or those on one node."""
    for one in list(rm.running.values()):
        if one.application_id == app_id and node_id in ("", one.node_id):
            rm.release(app_id, one.uuid)


def alone(rm: GangRM, app_id: str) -> list[str]:
    """Return the nodes that an application has alone."""
    nodes = rm.at_work().partition.nodes.values()
    return sorted(node.id for node in nodes if any(one.app.id == app_id for one in node.owners))


def kept(rm: GangRM, app_id: str) -> list[str]:
    """Return the nodes that are kept for a gang while work there ends."""
    kept = rm.at_work().cycle.atomic.domains.by_gang.values()
    return sorted(node.id for one in kept if one.gang.app.id == app_id for node in one.nodes)


def single(rm: GangRM, app_id: str, count: int = 1, gpu: int = 1, **keys: Any) -> list[str]:
    """Submit an application of single tasks, and return the nodes of those that were placed."""
    rm.app(app_id, "root.b")
    rm.ask(app_id, f"{app_id}-t", count, gpu=gpu, **keys)
    return placed(rm, app_id)


def test_gang_gets_a_rack_without_other_work_though_others_have_room() -> None:
    rm = racks(blocks=1, per_block=2)
    running(rm, "b1-r1-n1")
    gang(rm, "g", 4, RACK)
    assert domains(placed(rm, "g")) == ["b1-r2"]


def test_nothing_else_is_placed_in_its_rack_while_members_run() -> None:
    rm = racks(blocks=1, per_block=2)
    gang(rm, "g", 1, RACK)
    (node_id,) = placed(rm, "g")
    rack = domains([node_id])[0]
    assert domains(single(rm, "other", 32)) == [{"b1-r1": "b1-r2", "b1-r2": "b1-r1"}[rack]]
    assert len(placed(rm, "other")) == 16
    rm.remove_app("g")
    assert len(placed(rm, "other")) == 32


def test_two_gangs_never_share_a_rack() -> None:
    rm = racks(blocks=1, per_block=2)
    for number in range(3):
        gang(rm, f"g{number}", 2, RACK)
    assert domains(placed(rm, "g0")) != domains(placed(rm, "g1"))
    assert placed(rm, "g2") == []
    rm.remove_app("g0")
    assert len(placed(rm, "g2")) == 2


# -- what counts as other work -------------------------------------------------------------------


def test_tasks_that_a_node_needs_by_itself_do_not_keep_a_rack_from_being_alone() -> None:
    rm = racks(blocks=1, per_block=1)
    rm.app("daemons", "root.b")
    rm.ask("daemons", "first", 1, tags={REQUIRED_NODE: "b1-r1-n1"}, gpu=1)
    rm.schedule()
    gang(rm, "g", 14, RACK)
    assert len(placed(rm, "g")) == 14
    rm.ask("daemons", "later", 1, tags={REQUIRED_NODE: "b1-r1-n2"}, gpu=1)
    assert placed(rm, "daemons") == ["b1-r1-n1", "b1-r1-n2"]


def test_foreign_allocations_do_not_keep_a_rack_from_being_alone() -> None:
    rm = racks(blocks=1, per_block=1)
    tags, amount = {"foreign": "default"}, Resource(gpu=1)
    one = Reported("f", "", node_id="b1-r1-n1", resource_per_alloc=amount, allocation_tags=tags)
    rm.update(allocations=[one])
    gang(rm, "g", 15, RACK)
    assert len(placed(rm, "g")) == 15


def test_driver_of_the_application_may_be_in_the_rack_and_come_later() -> None:
    rm = racks(blocks=1, per_block=2)
    rm.gang("g", "Atomic", tags={TAG: '{"required": "rack", "exclusive": true}'}, gpu=12)
    rm.ask("g", "driver", 1, gpu=1)
    (first,) = placed(rm, "g")
    running(rm, {"b1-r1": "b1-r2-n1", "b1-r2": "b1-r1-n1"}[domains([first])[0]])
    rm.task("g", "m", "workers", 12, gpu=1)
    assert domains(placed(rm, "g")) == domains([first])
    rm.ask("g", "driver2", 1, gpu=1)
    assert len(placed(rm, "g")) == 14
    assert len(domains(placed(rm, "g"))) == 1


def test_driver_alone_does_not_have_a_rack_alone() -> None:
    rm = racks(blocks=1, per_block=1)
    rm.gang("g", "Atomic", tags={TAG: '{"required": "rack", "exclusive": true}'}, gpu=12)
    rm.ask("g", "driver", 1, gpu=1)
    rm.schedule()
    assert len(single(rm, "other", 15)) == 15


def test_last_work_ends_on_a_node_that_is_too_small_for_members() -> None:
    rm = racks(blocks=1, per_block=1)
    rm.node("small", {"block": "b1", "rack": "r1"}, cpu=4)
    rm.app("web", "root.b")
    rm.update(allocations=[Reported("web-1", "web", node_id="small", resource_per_alloc=Resource(cpu=1))])
    rm.node("small2", {"block": "b1", "rack": "r2"}, cpu=4)
    for number in (1, 2):
        rm.node(f"b1-r2-n{number}", {"block": "b1", "rack": "r2"}, gpu=8)
    rm.update(allocations=[Reported("web-2", "web", node_id="small2", resource_per_alloc=Resource(cpu=1))])
    gang(rm, "g", 16, RACK)
    assert placed(rm, "g") == []
    rm.release("web", key="web-1")
    assert len(placed(rm, "g")) == 16


# -- levels --------------------------------------------------------------


def test_rack_in_a_block_that_a_gang_must_have_alone() -> None:
    rm = racks(blocks=2, per_block=2)
    running(rm, "b1-r1-n1")
    gang(rm, "g", 4, {"required": "block", "exclusive": True, "preferred": ["rack"]})
    nodes = placed(rm, "g")
    assert domains(nodes, 1) == ["b2"]
    assert len(domains(nodes)) == 1
    assert len(alone(rm, "g")) == 4


def test_smallest_rack_without_work_is_taken() -> None:
    rm = racks(blocks=1, per_block=1, nodes=4)
    for number in (1, 2):
        rm.node(f"b1-r2-n{number}", {"block": "b1", "rack": "r2"}, gpu=8)
    for number in (1, 2, 3):
        rm.node(f"b1-r3-n{number}", {"block": "b1", "rack": "r3"}, gpu=8)
    gang(rm, "g", 10, RACK)
    assert domains(placed(rm, "g")) == ["b1-r2"]


def test_tasks_of_an_application_without_a_gang_have_their_rack_alone() -> None:
    rm = racks(blocks=1, per_block=2)
    running(rm, "b1-r2-n1")
    rm.app_tagged("plain", "root.a", {TAG: '{"required": "rack", "exclusive": true}'})
    rm.ask("plain", "t", 20, gpu=1)
    assert domains(placed(rm, "plain")) == ["b1-r1"]
    assert len(placed(rm, "plain")) == 16
    assert domains(single(rm, "other", 5)) == ["b1-r2"]


# -- what changes while members run --------------------------------------------------------------


def test_node_that_joins_the_rack_is_closed_to_others_and_one_that_leaves_is_not() -> None:
    rm = racks(blocks=1, per_block=1)
    gang(rm, "g", 1, RACK)
    rm.schedule()
    rm.node("late", {"block": "b1", "rack": "r1"}, gpu=8)
    assert single(rm, "other", 1) == []
    assert alone(rm, "g") == ["b1-r1-n1", "b1-r1-n2", "late"]
    rm.change_node("late", attributes={"block": "b1", "rack": "r9"})
    assert placed(rm, "other") == ["late"]
    rm.change_node("late", attributes={"block": "b1", "rack": "r1"})
    assert "late" in alone(rm, "g")


def test_member_that_is_replaced_stays_in_the_rack_and_further_ones_follow() -> None:
    rm = racks(blocks=1, per_block=3)
    gang(rm, "g", 8, RACK)
    nodes = placed(rm, "g")
    lost = next(one for one in rm.running.values() if one.application_id == "g")
    rm.release("g", lost.uuid)
    rm.task("g", "again", "workers", 1, gpu=1)
    rm.task("g", "more", "workers", 9, gpu=1)
    assert len(placed(rm, "g")) == 16
    assert domains(placed(rm, "g")) == domains(nodes)


def test_members_that_come_when_none_runs_any_more_need_a_rack_without_other_work() -> None:
    rm = racks(blocks=1, per_block=2)
    gang(rm, "g", 2, RACK)
    rack = domains(placed(rm, "g"))[0]
    end(rm, "g")
    for node in (1, 2):
        running(rm, f"{rack}-n{node}", f"s{node}")
    rm.task("g", "again", "workers", 1, gpu=1)
    assert len(placed(rm, "g")) == 1
    assert domains(placed(rm, "g")) != [rack]


def test_step_that_comes_when_no_member_runs_any_more_needs_a_rack_without_other_work() -> None:
    rm = racks(blocks=1, per_block=2, nodes=1)
    rm.gang("g", "Atomic", tags={TAG: json.dumps(RACK), "yunikorn.apache.org/gang-step": "2"}, gpu=2)
    rm.task("g", "m", "workers", 2, gpu=1)
    (first,) = set(placed(rm, "g"))
    end(rm, "g")
    for node_id in ("b1-r1-n1", "b1-r2-n1"):
        running(rm, node_id, f"on-{node_id}")
    rm.task("g", "x", "workers", 2, gpu=1)
    assert placed(rm, "g") == []
    rm.release(f"on-{first}", key=f"on-{first}-{first}")
    assert placed(rm, "g") == [first] * 2


def test_levels_that_a_reload_removes_are_nobodys_and_come_back() -> None:
    rm = racks(blocks=1, per_block=1)
    gang(rm, "g", 1, RACK)
    rm.schedule()
    assert rm.reload(configuration(queue("a"), queue("b"), topology=["block"]))
    assert alone(rm, "g") == []
    assert rm.reload(configuration(queue("a"), queue("b"), topology=["block", "rack"]))
    assert len(alone(rm, "g")) == 2
    assert rm.reload(configuration(queue("a"), queue("b")))
    assert len(single(rm, "other", 4)) == 4
    assert rm.at_work().partition.accounting.node_reservations.nodes == {}


def test_placeholders_and_the_tasks_that_replace_them_have_the_rack_alone() -> None:
    rm = racks(blocks=1, per_block=2)
    rm.gang("g", "Soft", tags={TAG: '{"required": "rack", "exclusive": true}'}, gpu=8)
    rm.task("g", "ph", "workers", 8, placeholder=True, gpu=1)
    rack = domains(placed(rm, "g"))
    rm.task("g", "real", "workers", 8, gpu=1)
    rm.schedule()
    rm.confirmed()
    real = [one.node_id for one in rm.running.values() if one.allocation_key == "real"]
    assert len(real) == 8
    assert domains(real) == rack
    assert not set(domains(single(rm, "other", 32))) & set(rack)
    rm.used()


def test_members_that_are_recovered_have_their_rack_alone_with_nodes_that_register_later() -> None:
    rm = racks(blocks=1, per_block=1, nodes=1)
    rm.app_tagged("g", "root.a", {TAG: '{"required": "rack", "exclusive": true}'})
    running(rm, "b1-r1-n1", "g", task_group_name="workers")
    rm.node("b1-r1-n2", {"block": "b1", "rack": "r1"}, gpu=8)
    assert alone(rm, "g") == ["b1-r1-n1", "b1-r1-n2"]
    assert single(rm, "other", 1) == []


def test_tasks_that_run_already_beside_recovered_members_stay() -> None:
    rm = racks(blocks=1, per_block=1)
    running(rm, "b1-r1-n2")
    for app_id in ("g", "h"):
        rm.app_tagged(app_id, "root.a", {TAG: '{"required": "rack", "exclusive": true}'})
        running(rm, "b1-r1-n1", app_id, task_group_name="workers")
    assert alone(rm, "g") == alone(rm, "h") == ["b1-r1-n1", "b1-r1-n2"]
    end(rm, "h")
    rm.task("g", "more", "workers", 1, gpu=1)
    assert len(placed(rm, "g")) == 2
    end(rm, "g")
    assert rm.at_work().partition.accounting.node_reservations.nodes == {}


def test_node_that_is_removed_belongs_to_nobody() -> None:
    rm = racks(blocks=1, per_block=1)
    gang(rm, "g", 1, RACK)
    (node_id,) = placed(rm, "g")
    other = next(iter({"b1-r1-n1", "b1-r1-n2"} - {node_id}))
    rm.at_work().remove_node(rm.find_node(other))
    assert alone(rm, "g") == [node_id]
    rm.at_work().remove_node(rm.find_node(node_id))
    assert rm.at_work().partition.accounting.node_reservations.nodes == {}


# -- reservations, kept domains and preemption ---------------------------------------------------


def test_rack_with_a_node_that_is_reserved_for_another_is_not_alone() -> None:
    rm = racks(blocks=1, per_block=1)
    running(rm, "b1-r1-n1", gpu=6)
    running(rm, "b1-r1-n2", gpu=6)
    single(rm, "large", 1, 8)
    rm.pass_time(5)
    rm.schedule()
    assert rm.at_work().partition.accounting.node_reservations.nodes
    end(rm, "serving", "b1-r1-n1")
    end(rm, "serving", "b1-r1-n2")
    gang(rm, "g", 4, RACK)
    assert len(placed(rm, "large")) == 1
    assert placed(rm, "g") == []


def test_rack_that_drains_for_an_exclusive_gang_is_closed_on_all_its_nodes() -> None:
    rm = racks(blocks=1, per_block=2, nodes=6)
    for number in range(1, 4):
        running(rm, f"b1-r1-n{number}", f"s{number}")
    for number in range(1, 6):
        running(rm, f"b1-r2-n{number}", f"t{number}")
    gang(rm, "g", 4, RACK)
    assert placed(rm, "g") == []
    rm.pass_time(601)
    rm.schedule()
    assert domains(kept(rm, "g")) == ["b1-r1"]
    assert len(kept(rm, "g")) == 6
    assert "rack b1/r1 is kept free for it" in reason(rm, "g")
    assert domains(single(rm, "other", 6, 4)) == ["b1-r2"]
    for number in range(1, 4):
        assert placed(rm, "g") == []
        end(rm, f"s{number}")
    assert domains(placed(rm, "g")) == ["b1-r1"]


def cluster(per_block: int = 2, nodes: int = 2, **keys: Any) -> GangRM:
    """Return racks of which queue `a` is entitled to everything."""
    rm = GangRM(configuration(queue("a", resources=ALL), queue("b"), topology=["block", "rack"], **keys))
    for rack in range(1, per_block + 1):
        for node in range(1, nodes + 1):
            rm.node(f"b1-r{rack}-n{node}", {"block": "b1", "rack": f"r{rack}"}, gpu=GPUS)
    return rm


def ended(rm: GangRM) -> list[str]:
    """Return the keys of the victims, after the delay of preemption, sorted."""
    rm.schedule()
    rm.pass_time(DELAY)
    rm.schedule()
    return sorted(one.allocation_key for one in rm.evicted.values())


def test_all_work_of_the_rack_with_the_least_is_preempted_though_members_have_room() -> None:
    rm = cluster(per_block=2)
    for node in ("b1-r1-n1", "b1-r1-n2", "b1-r2-n1"):
        running(rm, node, f"s-{node}")
    rm.app("daemons", "root.b")
    rm.ask("daemons", "d", 1, tags={REQUIRED_NODE: "b1-r2-n2"}, gpu=1)
    rm.schedule()
    gang(rm, "g", 2, RACK)
    assert ended(rm) == ["s-b1-r2-n1-b1-r2-n1"]
    assert kept(rm, "g") == ["b1-r2-n1", "b1-r2-n2"]
    rm.confirm()
    assert domains(placed(rm, "g")) == ["b1-r2"]


def test_nothing_is_preempted_in_a_rack_with_work_that_must_stay() -> None:
    rm = cluster(per_block=1)
    running(rm, "b1-r1-n1", "s1")
    running(rm, "b1-r1-n2", "s2", priority=100)
    gang(rm, "g", 2, RACK)
    assert ended(rm) == []
    assert placed(rm, "g") == []


def test_exclusive_gang_is_preempted_as_a_whole_for_another_gang() -> None:
    rm = cluster(per_block=1)
    gang(rm, "low", 2, RACK, queue_name="root.b")
    assert len(placed(rm, "low")) == 2
    gang(rm, "g", 16, "rack")
    assert len(ended(rm)) == 2
    rm.confirm()
    assert len(placed(rm, "g")) == 16
    assert alone(rm, "low") == []


def test_exclusive_gang_is_preempted_as_a_whole_for_a_single_task() -> None:
    rm = cluster(per_block=1)
    gang(rm, "low", 2, RACK, queue_name="root.b")
    nodes = placed(rm, "low")
    rm.app("high", "root.a")
    rm.ask("high", "h", 1, gpu=8)
    assert len(ended(rm)) == 2
    rm.confirm()
    assert placed(rm, "high")[0] in nodes
    rm.used()


def test_single_task_does_not_preempt_a_part_of_what_runs_in_an_exclusive_rack() -> None:
    rm = cluster(per_block=1)
    gang(rm, "low", 2, RACK, queue_name="root.b")
    rm.task("low", "more", "workers", 2, gpu=1)
    assert len(placed(rm, "low")) == 4
    rm.app("high", "root.a")
    rm.ask("high", "h", 1, gpu=8)
    assert ended(rm) == []
