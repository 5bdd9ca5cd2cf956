"""Gangs on a topology: cases that a review found."""

from __future__ import annotations

import gc
import json

from tests.core.kit import configuration, queue
from tests.topology.racks import TAG, domains, fill, gang, placed, racks
from yunikorn import api
from yunikorn.interface.messages import NodeAction
from yunikorn.scheduling.topology.topology_tree import TreeDomain


def test_gang_of_more_sizes_than_counts_are_kept_never_overfills_a_node() -> None:
    rm = racks(blocks=0)
    sizes = range(1, 71)
    rm.node("small", {"block": "b", "rack": "r"}, gpu=sum(sizes[6:]) + 2)
    rm.node("elsewhere", {}, gpu=100)
    rm.gang("app", "Atomic", tags={TAG: "rack"}, gpu=sum(sizes))
    for size in sizes:
        rm.task("app", f"t{size}", "workers", 1, gpu=size)
    rm.schedule()
    assert all(node.available["gpu"] >= 0 for node in rm.at_work().partition.nodes.values())


def test_gangs_with_other_task_groups_are_judged_apart() -> None:
    rm = racks(blocks=1, per_block=2, nodes=1)
    wanted = json.dumps({"required": "block", "groups": {"workers": {"required": "rack"}}})
    for app_id, workers, queue_name in (("one", 12, "root.a"), ("two", 8, "root.b")):
        rm.gang(app_id, "Atomic", queue_name, tags={TAG: wanted}, gpu=16)
        rm.task(app_id, f"{app_id}-w", "workers", workers, gpu=1)
        rm.task(app_id, f"{app_id}-s", "servers", 16 - workers, gpu=1)
    assert placed(rm, "one") == []
    assert len(placed(rm, "two")) == 16


def test_gang_that_fits_a_rack_beyond_the_most_tries_is_placed_after_others_were_served() -> None:
    rm = racks(blocks=1, per_block=40, nodes=1)
    rm.node("last", {"block": "b1", "rack": "roomy"}, gpu=9)
    rm.gang("app", "Atomic", tags={TAG: "rack"}, gpu=9)
    rm.task("app", "large", "workers", 1, gpu=5)
    rm.task("app", "small", "workers", 1, gpu=4)
    assert placed(rm, "app") == []
    rm.pass_time(1)
    assert placed(rm, "app") == ["last", "last"]


class Alone(api.Predicate):
    """Refuses a second member of a gang on a node that is not roomy."""

    name = "alone"

    def __init__(self) -> None:
        self.used: dict[str, int] = {}

    def placed(self, task: api.Task, node: api.Node) -> None:
        self.used[node.id] = self.used.get(node.id, 0) + 1

    def released(self, task: api.Task, node: api.Node) -> None:
        self.used[node.id] -= 1

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        return "taken" if self.used.get(node.id) and node.id != "last" else None


def test_racks_that_predicates_refuse_do_not_hide_the_one_that_they_allow() -> None:
    rm = racks(blocks=1, per_block=40, nodes=1, plugins={"predicates": [Alone]}, predicates=["alone"])
    rm.node("last", {"block": "b1", "rack": "roomy"}, gpu=9)
    gang(rm, "app", 2, "rack")
    for _ in range(5):
        rm.schedule()
        rm.pass_time(1)
    assert placed(rm, "app") == ["last", "last"]


def test_replaced_single_member_of_a_task_group_stays_in_the_block_of_the_gang() -> None:
    rm = racks()
    fill(rm, "b1-r1-n1", 8)
    fill(rm, "b1-r1-n2", 8)
    fill(rm, "b1-r2-n1", 8)
    wanted = {"required": "block", "groups": {"servers": {"required": "rack"}}}
    rm.gang("app", "Atomic", tags={TAG: json.dumps(wanted)}, gpu=28)
    rm.task("app", "w", "workers", 24, gpu=1)
    rm.task("app", "s", "servers", 1, gpu=4)
    assert domains(placed(rm, "app"), 1) == ["b2"]
    server = next(uuid for uuid, one in rm.running.items() if one.allocation_key == "s")
    rm.release("app", server)
    rm.release("filler-b1-r2-n1")
    rm.task("app", "again", "servers", 1, gpu=4)
    assert domains(placed(rm, "app"), 1) == ["b2"]


def test_member_that_waits_for_its_rack_may_go_anywhere_when_the_node_of_the_others_is_removed() -> None:
    rm = racks(blocks=1, nodes=1)
    gang(rm, "app", 8, "rack")
    assert set(placed(rm, "app")) == {"b1-r1-n1"}
    rm.task("app", "again", "workers", 1, gpu=1)
    assert len(placed(rm, "app")) == 8
    rm.change_node("b1-r1-n1", NodeAction.DECOMMISSION)
    assert placed(rm, "app") == ["b1-r2-n1"]


def test_member_that_waits_for_its_drained_rack_may_go_anywhere_when_the_others_end() -> None:
    rm = racks(blocks=1, nodes=1)
    gang(rm, "app", 8, "rack")
    assert set(placed(rm, "app")) == {"b1-r1-n1"}
    rm.change_node("b1-r1-n1", NodeAction.DRAIN_NODE)
    rm.task("app", "again", "workers", 1, gpu=1)
    assert len(placed(rm, "app")) == 8
    for uuid in [uuid for uuid, one in rm.running.items() if one.application_id == "app"]:
        rm.release("app", uuid)
    assert placed(rm, "app") == ["b1-r2-n1"]


def test_replacement_follows_the_members_and_not_a_task_without_a_task_group() -> None:
    rm = racks(blocks=1)
    fill(rm, "b1-r1-n1", 4)
    rm.gang("app", "Atomic", tags={TAG: "rack"}, gpu=16)
    rm.ask("app", "driver", 1, gpu=1)
    assert domains(placed(rm, "app")) == ["b1-r1"]
    rm.task("app", "m", "workers", 16, gpu=1)
    placed(rm, "app")
    members = [uuid for uuid, one in rm.running.items() if one.allocation_key == "m"]
    assert domains([rm.running[uuid].node_id for uuid in members]) == ["b1-r2"]
    rm.release("app", members[0])
    rm.task("app", "again", "workers", 1, gpu=1)
    placed(rm, "app")
    assert domains([one.node_id for one in rm.running.values() if one.allocation_key == "again"]) == ["b1-r2"]


def test_home_is_that_of_the_members_whose_nodes_have_the_level() -> None:
    rm = racks(blocks=1)
    gang(rm, "app", 14, "rack")
    assert domains(placed(rm, "app")) == ["b1-r1"]
    first = next(iter(rm.find_app("app").allocations.values())).node.id
    rm.change_node(first, attributes={})
    fill(rm, "b1-r2-n1", 7)
    rm.task("app", "again", "workers", 1, gpu=1)
    placed(rm, "app")
    found = [one.node_id for one in rm.running.values() if one.allocation_key == "again"]
    assert domains(found) in ([], ["b1-r1"])


def test_gang_with_a_member_that_requires_a_full_node_can_run_once_that_is_empty() -> None:
    rm = racks(blocks=1, per_block=1)
    fill(rm, "b1-r1-n1", 8)
    rm.gang("app", "Atomic", tags={TAG: "rack"}, gpu=2)
    rm.task("app", "pinned", "workers", 1, tags={"yunikorn.apache.org/requiredNode": "b1-r1-n1"}, gpu=1)
    rm.task("app", "free", "workers", 1, gpu=1)
    assert placed(rm, "app") == []
    gang_of = rm.find_app("app").atomic
    assert gang_of is not None
    assert rm.at_work().cycle.atomic._may_ever_run(gang_of)


def test_application_with_running_members_is_taken_over_after_a_restart_without_its_level() -> None:
    rm = racks(blocks=1)
    gang(rm, "app", 4, "rack")
    placed(rm, "app")
    found = [one for one in rm.running.values() if one.application_id == "app"]
    again = racks(blocks=0, topology=[])
    again.gang("app", "Atomic", tags={TAG: "rack", "application.create.force": "true"}, gpu=4)
    again.node("b1-r1-n1", {}, gpu=8, existing=[one for one in found if one.node_id == "b1-r1-n1"])
    assert not again.entries("rejected_applications")
    assert len(again.find_app("app").allocations) == len(found)


def test_reason_of_a_rejection_is_a_text_that_every_resource_manager_can_read() -> None:
    rm = racks()
    gang(rm, "app", 4, '{"required": "\\ud800"}')
    entries = rm.entries("rejected_applications")
    assert entries
    str(entries[0].reason).encode()


def test_request_that_is_too_long_is_rejected_in_a_short_message() -> None:
    rm = racks()
    gang(rm, "app", 4, json.dumps({f"requird{number}": 1 for number in range(20_000)}))
    (rejected,) = rm.entries("rejected_applications")
    assert len(rejected.reason) < 200


def test_domains_of_nodes_that_left_and_of_earlier_configurations_are_forgotten() -> None:
    rm = racks(blocks=1, topology=["block", "rack"])
    gang(rm, "app", 40, "rack")
    for number in range(20):
        rm.node(f"x{number}", {"block": "left", "rack": f"r{number}"}, gpu=8)
        assert placed(rm, "app") == []
        rm.change_node(f"x{number}", NodeAction.DECOMMISSION)
        assert placed(rm, "app") == []
    for number in range(20):
        policy = "balanced" if number % 2 else "best-fit"
        assert rm.reload(
            configuration(queue("a"), queue("b"), topology=["block", "rack"], gangplacement=policy)
        )
        assert placed(rm, "app") == []
    gc.collect()
    alive = [one for one in gc.get_objects() if type(one) is TreeDomain and "left" in one.path]
    assert len(alive) < 5


def test_gang_finds_an_empty_rack_after_equal_gangs_that_request_more_than_their_size() -> None:
    rm = racks(blocks=1, per_block=2, nodes=1)
    for number in range(4):
        rm.gang(f"g{number}", "Atomic", tags={TAG: "rack"}, gpu=4)
        rm.task(f"g{number}", "m", "workers", 5, gpu=1)
    rm.schedule()
    assert [len(placed(rm, f"g{number}")) for number in range(4)] == [4, 4, 4, 4]
