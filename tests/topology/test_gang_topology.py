"""Gangs on a topology: one domain of the required level, preferred levels for a time, slices, task groups."""

from __future__ import annotations

import json

import pytest

from tests.core.kit import configuration, queue
from tests.topology.racks import TAG, domains, fill, gang, placed, racks, reason, reason_of
from yunikorn import api
from yunikorn.interface.messages import NodeAction


def test_gang_is_placed_in_one_rack() -> None:
    rm = racks()
    gang(rm, "app", 16, "rack")
    assert domains(placed(rm, "app")) == ["b1-r1"]


def test_gang_larger_than_a_rack_is_placed_in_one_block() -> None:
    rm = racks()
    fill(rm, "b1-r1-n1", 8)
    gang(rm, "app", 32, {"required": "block"})
    assert domains(placed(rm, "app"), 1) == ["b2"]


def test_gang_waits_for_a_rack_though_the_cluster_has_room_and_says_which_is_the_best() -> None:
    rm = racks(blocks=1)
    fill(rm, "b1-r1-n1", 4)
    fill(rm, "b1-r2-n1", 2)
    gang(rm, "app", 16, "rack")
    assert placed(rm, "app") == []
    assert "rack b1/r2, the best, has room for 14 of 16 members" in reason(rm, "app")
    rm.release("filler-b1-r1-n1")
    assert domains(placed(rm, "app")) == ["b1-r1"]


def test_reasons_of_other_racks_are_named_and_those_of_further_ones_counted() -> None:
    rm = racks(blocks=3, per_block=2)
    for number, rack in enumerate(("b1-r1", "b1-r2", "b2-r1", "b2-r2", "b3-r1", "b3-r2"), 2):
        fill(rm, f"{rack}-n1", number)
    gang(rm, "app", 16, "rack")
    assert placed(rm, "app") == []
    detail = reason(rm, "app")
    assert "rack b1/r1, the best, has room for 14 of 16 members; b1/r2: room for 13 of 16 members; " in detail
    assert "; b2/r2: room for 11 of 16 members; 2 more: too little room" in detail


def test_gang_is_placed_in_the_rack_with_the_best_fit() -> None:
    rm = racks()
    fill(rm, "b1-r2-n1", 4)
    gang(rm, "small", 8, "rack")
    assert domains(placed(rm, "small")) == ["b1-r2"]
    gang(rm, "large", 16, "rack")
    assert domains(placed(rm, "large")) == ["b1-r1"]


def test_idle_block_is_spared() -> None:
    rm = racks()
    fill(rm, "b2-r1-n1", 1)
    gang(rm, "app", 16, "rack")
    assert domains(placed(rm, "app")) == ["b2-r2"]


def test_preferred_level_is_tried_first_and_given_up_at_once_without_a_time() -> None:
    rm = racks()
    for block in (1, 2):
        for rack in (1, 2):
            fill(rm, f"b{block}-r{rack}-n1", 4)
    gang(rm, "small", 12, {"required": "block", "preferred": ["rack"]})
    assert len(domains(placed(rm, "small"))) == 1
    gang(rm, "large", 16, {"required": "block", "preferred": ["rack"]})
    assert domains(placed(rm, "large"), 1) == ["b2"]


def test_preferred_levels_are_given_up_one_after_the_other() -> None:
    rm = racks()
    for node in ("b1-r1-n1", "b1-r2-n1", "b2-r1-n1", "b2-r2-n1"):
        fill(rm, node, 6)
    wanted = {"preferred": [{"level": "rack", "for": "10m"}, {"level": "block", "for": "1h"}]}
    gang(rm, "app", 18, wanted)
    gang(rm, "huge", 22, wanted, queue_name="root.b")
    assert placed(rm, "app") == []
    assert "a wider level is tried in 600s" in reason(rm, "app")
    rm.pass_time(599)
    assert placed(rm, "app") == []
    rm.pass_time(1)
    assert domains(placed(rm, "app"), 1) == ["b1"]
    assert placed(rm, "huge") == []
    rm.pass_time(3000)
    assert domains(placed(rm, "huge"), 1) == ["b1", "b2"]


def test_slices_are_whole_in_their_racks() -> None:
    rm = racks(blocks=1, per_block=3)
    for rack in (1, 2, 3):
        fill(rm, f"b1-r{rack}-n1", 3)
    gang(rm, "app", 24, {"required": "block", "slices": [{"size": 12, "level": "rack"}]})
    nodes = placed(rm, "app")
    assert [sum(node.startswith(f"b1-r{rack}") for node in nodes) for rack in (1, 2, 3)] == [12, 12, 0]


def test_slices_inside_slices() -> None:
    rm = racks(blocks=2, topology=["block", "rack", "host"], nodes=0)
    for block in (1, 2):
        for rack in (1, 2):
            for node in (1, 2):
                name = f"b{block}-r{rack}-n{node}"
                rm.node(name, {"block": f"b{block}", "rack": f"r{rack}", "host": name}, gpu=7)
    gang(rm, "app", 16, {"slices": [{"size": 8, "level": "rack"}, {"size": 4, "level": "host"}]})
    nodes = placed(rm, "app")
    assert [nodes.count(node) for node in sorted(set(nodes))] == [4, 4, 4, 4]
    assert len(domains(nodes)) == 2


def test_members_that_are_no_multiple_of_the_slice_size_are_never_placed() -> None:
    rm = racks()
    gang(rm, "app", 10, {"slices": [{"size": 4, "level": "rack"}]})
    assert placed(rm, "app") == []
    assert "10 members of task group 'workers' are no multiple of the slice size 4" in reason(rm, "app")


def test_task_groups_have_racks_of_their_own_in_one_block() -> None:
    rm = racks()
    fill(rm, "b1-r1-n1", 8)
    wanted = {
        "required": "block",
        "groups": {"workers": {"required": "rack"}, "servers": {"required": "rack"}},
    }
    rm.gang("app", "Atomic", tags={TAG: json.dumps(wanted)}, gpu=28)
    rm.task("app", "w", "workers", 14, gpu=1)
    rm.task("app", "s", "servers", 7, gpu=2)
    rm.schedule()
    racks_of = {
        key: domains([one.node_id for one in rm.running.values() if one.allocation_key == key])
        for key in ("w", "s")
    }
    assert {len(found) for found in racks_of.values()} == {1}
    assert domains([one.node_id for one in rm.running.values() if one.application_id == "app"], 1) == ["b2"]


def test_members_of_two_sizes_are_placed_by_undoing_a_bad_order() -> None:
    rm = racks(blocks=1, per_block=1, nodes=2)
    rm.gang("app", "Atomic", tags={TAG: "rack"}, gpu=16)
    rm.task("app", "small", "small", 5, gpu=1)
    rm.task("app", "large", "large", 1, gpu=8)
    rm.task("app", "middle", "middle", 1, gpu=3)
    assert len(placed(rm, "app")) == 7


def test_node_without_a_level_is_used_only_where_the_level_is_not_required() -> None:
    rm = racks(blocks=1, per_block=1, nodes=1)
    rm.node("bare", {}, gpu=8)
    rm.node("unracked", {"block": "b1"}, gpu=8)
    gang(rm, "rack", 9, "rack")
    assert placed(rm, "rack") == []
    gang(rm, "block", 16, "block", queue_name="root.b")
    assert set(placed(rm, "block")) == {"b1-r1-n1", "unracked"}


def test_domain_follows_the_attributes_of_its_nodes() -> None:
    rm = racks(blocks=1, per_block=2, nodes=1)
    gang(rm, "app", 16, "rack")
    assert placed(rm, "app") == []
    assert "rack b1/r1, the best, has room for 8 of 16 members" in reason(rm, "app")
    rm.change_node("b1-r2-n1", attributes={"block": "b1", "rack": "r1"})
    assert len(placed(rm, "app")) == 16


def test_drained_and_removed_nodes_have_no_room() -> None:
    rm = racks(blocks=1, per_block=2)
    rm.change_node("b1-r1-n1", NodeAction.DRAIN_NODE)
    rm.change_node("b1-r2-n2", NodeAction.DECOMMISSION)
    gang(rm, "app", 9, "rack")
    assert placed(rm, "app") == []
    rm.change_node("b1-r1-n1", NodeAction.DRAIN_TO_SCHEDULABLE)
    assert domains(placed(rm, "app")) == ["b1-r1"]


@pytest.mark.parametrize(
    "wanted",
    [
        "rak",
        '{"required": "rack", "required": "block"}',
        '{"required": "rack", "preferd": []}',
        '{"required": "rack", "preferred": ["block"]}',
        '{"preferred": [{"level": "rack", "for": "1h"}, {"level": "block", "for": "1m"}]}',
        '{"slices": [{"size": 4, "level": "block"}, {"size": 3, "level": "rack"}]}',
        '{"slices": [{"size": 0, "level": "block"}]}',
        '{"required": "rack", "groups": {"workers": {"required": "block"}}}',
        '{"required": "clique", "preferred": ["rack"]}',
        '{"required": 5}',
        '{"groups": []}',
        "{}",
        "[1]",
        "{",
    ],
)
def test_application_with_bad_requirements_is_rejected_with_all_problems(wanted: str) -> None:
    topology = [
        {"name": "attributes", "levels": ["block", "rack"]},
        {"name": "attributes", "levels": ["clique"]},
    ]
    rm = racks(topology=topology)
    gang(rm, "app", 4, wanted)
    assert rm.entries("rejected_applications")


def test_requirements_without_a_topology_are_refused() -> None:
    rm = racks(topology=[])
    gang(rm, "app", 4, "rack")
    assert rm.entries("rejected_applications")


# -- further members ------------------------------------------------------------------------------------


def test_replacement_of_a_member_is_placed_in_the_rack_of_the_others() -> None:
    rm = racks()
    gang(rm, "app", 14, "rack")
    home = domains(placed(rm, "app"))
    lost = next(uuid for uuid, one in rm.running.items() if one.application_id == "app")
    rm.release("app", lost)
    rm.task("app", "again", "workers", 1, gpu=1)
    assert domains(placed(rm, "app")) == home


def test_replacement_waits_for_its_rack_and_says_so() -> None:
    rm = racks(blocks=1)
    gang(rm, "app", 16, "rack")
    assert domains(placed(rm, "app")) == ["b1-r1"]
    lost = next(uuid for uuid, one in rm.running.items() if one.application_id == "app")
    rm.release("app", lost)
    fill_app = "other"
    rm.app(fill_app, "root.b")
    node = next(node for node in ("b1-r1-n1", "b1-r1-n2") if rm.find_node(node).available["gpu"] == 1)
    rm.ask(fill_app, "t", 1, tags={"yunikorn.apache.org/requiredNode": node}, gpu=1)
    assert len(rm.schedule()) == 1
    rm.task("app", "again", "workers", 1, gpu=1)
    assert len(placed(rm, "app")) == 15
    assert "outside rack b1/r1" in reason_of(rm, "app", "again")
    rm.release(fill_app)
    assert domains(placed(rm, "app")) == ["b1-r1"]


def test_more_requests_of_a_gang_than_members_follow_the_members() -> None:
    rm = racks(blocks=1, per_block=3)
    fill(rm, "b1-r1-n1", 8)
    rm.gang("app", "Atomic", tags={TAG: "rack"}, gpu=12)
    rm.task("app", "m", "workers", 16, gpu=1)
    rm.schedule()
    nodes = placed(rm, "app")
    assert len(nodes) == 16
    assert len(domains(nodes)) == 1


def test_last_member_ends_and_the_next_ones_may_choose_a_rack_again() -> None:
    rm = racks(blocks=1, nodes=1)
    gang(rm, "app", 8, "rack")
    assert set(placed(rm, "app")) == {"b1-r1-n1"}
    rm.release("app")
    fill(rm, "b1-r1-n1", 8)
    rm.task("app", "again", "workers", 4, gpu=1)
    assert set(placed(rm, "app")) == {"b1-r2-n1"}


def test_application_without_a_gang_stays_in_the_rack_of_its_first_task() -> None:
    rm = racks()
    rm.app_tagged("app", "root.a", {TAG: "rack"})
    rm.ask("app", "t", 20, gpu=1)
    nodes = placed(rm, "app")
    assert len(nodes) == 16
    assert len(domains(nodes)) == 1


# -- placeholders ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("style", ["Soft", "Hard"])
def test_placeholders_are_placed_in_one_rack_as_a_whole(style: str) -> None:
    rm = racks(blocks=1)
    fill(rm, "b1-r1-n1", 1)
    fill(rm, "b1-r2-n1", 1)
    rm.gang("app", style, tags={TAG: "rack"}, gpu=16)
    rm.task("app", "ph", "workers", 16, placeholder=True, gpu=1)
    assert placed(rm, "app") == []
    assert rm.state() == "Accepted"
    assert "rack b1/r1, the best, has room for 15 of 16 members" in reason(rm, "app")
    rm.release("filler-b1-r2-n1")
    assert domains(placed(rm, "app")) == ["b1-r2"]
    rm.task("app", "real", "workers", 16, gpu=1)
    rm.schedule()
    rm.confirmed()
    real = [one.node_id for one in rm.running.values() if one.allocation_key == "real"]
    assert len(real) == 16
    assert domains(real) == ["b1-r2"]


@pytest.mark.parametrize(("style", "state"), [("Soft", "Accepted"), ("Hard", "Failed")])
def test_placeholders_that_no_rack_has_room_for_in_time_are_given_up(style: str, state: str) -> None:
    rm = racks(blocks=1)
    rm.gang("app", style, tags={TAG: "rack"}, seconds=60, gpu=17)
    rm.task("app", "ph", "workers", 17, placeholder=True, gpu=1)
    rm.task("app", "real", "workers", 17, gpu=1)
    assert placed(rm, "app") == []
    rm.pass_time(59)
    assert placed(rm, "app") == []
    assert rm.state() == "Accepted"
    rm.pass_time(1)
    assert rm.state() == state
    nodes = placed(rm, "app")
    assert len(nodes) == (16 if style == "Soft" else 0)
    assert len(domains(nodes)) <= 1
    assert "ph" not in rm.find_app("app").asks


def test_time_limit_of_placeholders_counts_on_after_they_are_placed_together() -> None:
    rm = racks(blocks=1)
    fill(rm, "b1-r1-n1", 1)
    fill(rm, "b1-r2-n1", 1)
    rm.gang("app", "Soft", tags={TAG: "rack"}, seconds=60, gpu=16)
    rm.task("app", "ph", "workers", 16, placeholder=True, gpu=1)
    assert placed(rm, "app") == []
    rm.pass_time(50)
    rm.release("filler-b1-r2-n1")
    assert len(placed(rm, "app")) == 16
    rm.pass_time(10)
    assert len(rm.evicted) == 16


def test_time_limit_of_placeholders_ends_with_the_last_that_is_withdrawn() -> None:
    rm = racks(blocks=1)
    rm.gang("app", "Hard", tags={TAG: "rack"}, seconds=60, gpu=17)
    rm.task("app", "ph", "workers", 17, placeholder=True, gpu=1)
    assert placed(rm, "app") == []
    rm.task("app", "driver", "", 1, gpu=99)
    rm.release_ask("app", "ph")
    rm.pass_time(61)
    assert rm.state() == "Accepted"


def test_placeholder_without_requirements_is_placed_alone() -> None:
    rm = racks(blocks=1)
    rm.gang("app", "Soft", gpu=40)
    rm.task("app", "ph", "workers", 40, placeholder=True, gpu=1)
    assert len(placed(rm, "app")) == 32


# -- with other mechanisms ------------------------------------------------------------------------------


class Occupied(api.Predicate):
    """Refuses nodes while a task with the tag `lock` runs anywhere."""

    name = "occupied"
    locks = 0

    def ask_class(self, ask: api.Ask) -> str:
        return ""

    def domain(self, node: api.Node) -> str:
        return "all"

    def placed(self, task: api.Task, node: api.Node) -> api.Where | None:
        self.locks += "lock" in task.tags
        return None

    def released(self, task: api.Task, node: api.Node) -> api.Where | None:
        self.locks -= "lock" in task.tags
        return api.Where.EVERYWHERE

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        return "locked" if self.locks and ask.task_group else None


def test_gang_is_tried_again_when_a_predicate_changes_its_mind_without_a_change_in_the_domain() -> None:
    rm = racks(blocks=2, per_block=1, plugins={"predicates": [Occupied]}, predicates=["occupied"])
    rm.app("locker", "root.b")
    node = "yunikorn.apache.org/requiredNode"
    rm.ask("locker", "t", 1, tags={"lock": "", node: "b2-r1-n1"}, gpu=1)
    assert len(rm.schedule()) == 1
    gang(rm, "app", 16, "rack")
    assert placed(rm, "app") == []
    rm.release("locker")
    assert domains(placed(rm, "app")) == ["b1-r1"]


def test_a_reload_changes_levels_and_policy_of_waiting_gangs() -> None:
    rm = racks(blocks=2)
    gang(rm, "app", 20, "rack")
    gang(rm, "other", 20, "block", queue_name="root.b")
    assert placed(rm, "app") == []
    rm.release("other")
    queues = (queue("a"), queue("b"))
    assert rm.reload(configuration(*queues, topology=["block"]))
    assert placed(rm, "app") == []
    assert "no tree with its levels rack" in reason(rm, "app")
    assert rm.reload(configuration(*queues, topology=["rack"], gangplacement="balanced"))
    assert domains([node.removeprefix("b1-").removeprefix("b2-") for node in placed(rm, "app")], 1) == ["r1"]


def test_members_found_running_after_a_restart_keep_their_rack() -> None:
    rm = racks(blocks=1)
    gang(rm, "app", 12, "rack")
    home = domains(placed(rm, "app"))
    found = [one for one in rm.running.values() if one.application_id == "app"]
    again = racks(blocks=0)
    again.gang("app", "Atomic", tags={TAG: "rack"}, gpu=12)
    for rack in (1, 2):
        for number in (1, 2):
            node_id = f"b1-r{rack}-n{number}"
            existing = [one for one in found if one.node_id == node_id][1:]
            again.node(node_id, {"block": "b1", "rack": f"r{rack}"}, gpu=8, existing=existing)
    again.task("app", "more", "workers", 4, gpu=1)
    decisions = again.schedule()
    assert len(decisions) == 4
    assert domains([node_id for _, _, node_id in decisions]) == home


def test_reserved_nodes_are_no_room_and_a_replacement_reserves_in_its_rack() -> None:
    rm = racks(blocks=1, nodes=1)
    gang(rm, "app", 8, "rack")
    assert set(placed(rm, "app")) == {"b1-r1-n1"}
    lost = next(uuid for uuid, one in rm.running.items() if one.application_id == "app")
    rm.release("app", lost)
    rm.app("other", "root.b")
    rm.ask("other", "t", 9, gpu=1)
    rm.schedule()
    rm.task("app", "again", "workers", 1, gpu=1)
    rm.schedule()
    rm.pass_time(5)
    rm.schedule()
    reserved = [node for node in rm.at_work().partition.nodes.values() if node.reservations]
    assert [node.id for node in reserved] == ["b1-r1-n1"]


class Reluctant(api.PermitPolicy):
    """Refuses all placements while `refuses` is True."""

    name = "reluctant"
    refuses = True

    def permit(self, allocation: api.Allocation) -> str | None:
        return "not yet" if Reluctant.refuses else None


@pytest.mark.parametrize("style", ["Atomic", "Soft"])
def test_refused_gang_is_placed_in_one_rack_when_it_is_permitted(style: str) -> None:
    Reluctant.refuses = True
    rm = racks(blocks=1, plugins={"permit_policies": [Reluctant]}, permits=["reluctant"])
    rm.gang("app", style, tags={TAG: "rack"}, gpu=12)
    rm.task("app", "m", "workers", 12, placeholder=style == "Soft", gpu=1)
    assert placed(rm, "app") == []
    rm.used()
    Reluctant.refuses = False
    rm.app("other", "root.b")
    rm.ask("other", "t", 1, gpu=1)
    rm.schedule()
    rm.pass_time(5)
    nodes = placed(rm, "app")
    assert len(nodes) == 12
    assert len(domains(nodes)) == 1
    rm.used()


def test_placeholders_withdrawn_before_they_are_placed_leave_nothing_behind() -> None:
    rm = racks(blocks=1)
    rm.gang("app", "Soft", tags={TAG: "rack"}, gpu=20)
    rm.task("app", "ph", "workers", 20, placeholder=True, gpu=1)
    rm.task("app", "real", "workers", 2, gpu=1)
    assert placed(rm, "app") == []
    rm.release_ask("app", "ph")
    rm.used()
    assert len(placed(rm, "app")) == 2
    rm.release_ask("app")
    rm.release("app")
    rm.used()
    rm.remove_app("app")
    rm.used()


def test_quota_stops_a_gang_on_a_topology_before_nodes_do() -> None:
    limited = queue("a", resources={"max": {"gpu": 10}})
    rm = racks(blocks=1)
    assert rm.reload(configuration(limited, queue("b"), topology=["block", "rack"]))
    gang(rm, "first", 8, "rack")
    gang(rm, "second", 8, "rack")
    assert len(placed(rm, "first")) == 8
    assert placed(rm, "second") == []
    assert "root.a" in reason(rm, "second")
    rm.release("first")
    assert len(domains(placed(rm, "second"))) == 1
    rm.used()


def test_preemption_for_a_later_member_ends_no_task_outside_its_rack() -> None:
    rm = racks(blocks=1, nodes=1)
    text = configuration(
        queue("a", resources={"guaranteed": {"gpu": 16}}), queue("b"), topology=["block", "rack"]
    )
    assert rm.reload(text)
    gang(rm, "app", 8, "rack")
    home = set(placed(rm, "app"))
    lost = next(uuid for uuid, one in rm.running.items() if one.application_id == "app")
    rm.app("greedy", "root.b")
    rm.ask("greedy", "t", 8, gpu=1)
    rm.schedule()
    rm.release("app", lost)
    rm.ask("greedy", "u", 1, gpu=1)
    rm.schedule()
    rm.task("app", "again", "workers", 1, gpu=1)
    for _ in range(5):
        rm.schedule()
        rm.pass_time(40)
    victims = {rm.running[uuid].node_id for uuid in rm.evicted}
    assert victims == home
    rm.confirm(*rm.evicted)
    assert set(placed(rm, "app")) == home
    rm.used()
