"""Steps of elastic gangs: how many members they have, and growth by whole steps only."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.core.event_collector import EventCollector
from tests.core.gangs import GangRM
from tests.core.kit import configuration, partition, queue
from tests.topology.racks import domains, racks, reason_of
from yunikorn.explain.explanations import failed_attempts
from yunikorn.explain.suggested_fixes import suggested_fixes
from yunikorn.interface.messages import Allocation, TerminationType
from yunikorn.model.attempt_log import NO_ROOM
from yunikorn.model.gang import step_of
from yunikorn.resources import Resource

STEP, TOPOLOGY = "yunikorn.apache.org/gang-step", "yunikorn.apache.org/gang-topology"
SLICES = {"slices": [{"size": 4, "level": "rack"}]}


def cluster(**keys: Any) -> GangRM:
    """Return an RM without nodes."""
    return GangRM(configuration(queue("a"), queue("b"), **keys))


# -- the tag ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "topology", "steps"),
    [
        ("", None, (1, 1)),
        ("4", None, (4, 4)),
        ('{"workers": 4}', None, (4, 1)),
        ('{"workers": 4, "": 2}', None, (4, 2)),
        ("", SLICES, (4, 4)),
        ("6", SLICES, (8, 8)),
        ('{"workers": 8}', SLICES, (8, 4)),
        ("", {"groups": {"workers": {"slices": [{"size": 2, "level": "rack"}]}}}, (2, 1)),
    ],
)
def test_step_is_that_of_the_tag_or_a_slice(text: str, topology: Any, steps: tuple[int, int]) -> None:
    rm = cluster(topology=["rack"])
    tags = {STEP: text} if text else {}
    rm.gang("g", "Atomic", tags=tags | ({TOPOLOGY: json.dumps(topology)} if topology else {}), vcore=4)
    app = rm.find_app("g")
    assert (step_of(app, "workers"), step_of(app, "others")) == steps


@pytest.mark.parametrize(
    "text", ["0", "-1", "true", "1.0", "x", "[2]", '{"a": 0}', '{"a": "2"}', "null", "200001", "[" * 20_000]
)
def test_step_that_is_no_number_is_refused(text: str) -> None:
    rm = cluster()
    rm.gang("g", "Atomic", tags={STEP: text}, vcore=4)
    (rejected,) = rm.entries("rejected_applications")
    assert rejected.reason == (
        f"tag {STEP}: expected a number from 1 to 200000, or such numbers by task group as JSON"
    )


def test_step_of_a_gang_with_placeholders_is_refused() -> None:
    rm = cluster()
    rm.gang("g", "Soft", tags={STEP: "4"}, vcore=4)
    (rejected,) = rm.entries("rejected_applications")
    why = "a gang of style Soft does not grow, one of style Atomic does"
    assert rejected.reason == f"failed to place application g: tag {STEP}: {why}"


# -- growth -----------------------------------------------------------------------------------------------


def members(rm: GangRM, *numbers: int, app_id: str = "g", size: int = 1, group: str = "workers") -> None:
    """Send an ask for each number."""
    for number in numbers:
        rm.task(app_id, f"m{number}", group, vcore=size)


def grown(room: int = 16, step: str = "4", count: int = 4, **keys: Any) -> GangRM:
    """Return a gang of 4 that runs on a node with this room, with `count` members to follow."""
    rm = cluster(**keys)
    rm.node("n1", vcore=room)
    rm.gang("g", "Atomic", tags={STEP: step}, vcore=4)
    members(rm, *range(4 + count))
    return rm


def keys(rm: GangRM) -> list[str]:
    """Schedule, and return the keys of what was placed."""
    return [key for _, key, _ in rm.schedule()]


@pytest.mark.parametrize(("room", "placed"), [(7, 4), (8, 8), (11, 8), (12, 12)])
def test_growth_is_by_whole_steps(room: int, placed: int) -> None:
    rm = grown(room, count=8)
    assert keys(rm) == [f"m{number}" for number in range(placed)]
    rm.node("n2", vcore=12 - placed)
    assert len(keys(rm)) == 12 - placed


def test_each_step_is_one_decision() -> None:
    rm = grown(count=8)
    assert [len(rm.schedule(1)) for _ in range(4)] == [4, 4, 4, 0]


def test_step_takes_replicas_of_one_ask_or_of_several() -> None:
    rm = cluster()
    rm.node("n1", vcore=10)
    rm.gang("g", "Atomic", tags={STEP: "3"}, vcore=3)
    for key, count in (("a", 4), ("b", 1), ("c", 4)):
        rm.task("g", key, "workers", count, vcore=1)
    assert keys(rm) == ["a", "a", "a", "a", "b", "c", "c", "c", "c"]


def test_task_groups_grow_by_steps_of_their_own() -> None:
    rm = cluster()
    rm.node("n1", vcore=8)
    rm.gang("g", "Atomic", tags={STEP: '{"workers": 4, "pairs": 2}'}, vcore=2)
    rm.task("g", "head", "head", 3, vcore=1)
    members(rm, 0, size=1)
    rm.task("g", "p", "pairs", 3, vcore=2)
    members(rm, 1, 2, 3, 4)
    assert keys(rm) == ["head", "head", "head", "m0", "m1", "m2", "m3"]
    rm.node("n2", vcore=7)
    assert keys(rm) == ["p", "p"]


def test_members_that_are_no_whole_step_wait_for_the_rest() -> None:
    rm = grown(count=3)
    assert len(keys(rm)) == 4
    ask = rm.find_app("g").asks["m4"]
    assert reason_of(rm, "g", "m4") == (
        "its step is incomplete: its members of a step are 4, and 3 have been requested"
    )
    assert [*suggested_fixes(rm.at_work(), ask)] == ["submit 1 further request of task group workers"]
    members(rm, 7)
    assert keys(rm) == ["m4", "m5", "m6", "m7"]


def test_explanation_names_the_step() -> None:
    rm = grown(6)
    assert len(keys(rm)) == 4
    assert reason_of(rm, "g", "m4") == (
        "the cluster is full (requested vcore 4m for a step of 4, available vcore 2m); "
        "no room for its whole step at once (requested vcore 4m; room for 2 of 4 members)"
    )


def test_quota_with_room_for_half_a_step() -> None:
    rm = GangRM(configuration(queue("a", resources={"max": {"vcore": "6m"}})))
    rm.node("n1", vcore=16)
    rm.gang("g", "Atomic", tags={STEP: "4"}, vcore=4)
    members(rm, *range(8))
    assert len(keys(rm)) == 4
    assert reason_of(rm, "g", "m4") == (
        "over the quota of queue root.a (requested vcore 4m for a step of 4, available vcore 2m)"
    )
    rm.reload(configuration(queue("a", resources={"max": {"vcore": "8m"}})))
    assert len(keys(rm)) == 4


def test_limit_of_a_user_with_room_for_half_a_step() -> None:
    limits = [{"limit": "", "users": ["user"], "maxresources": {"vcore": "6m"}}]
    rm = GangRM(configuration(queue("a", limits=limits)))
    rm.node("n1", vcore=16)
    rm.gang("g", "Atomic", tags={STEP: "4"}, vcore=4)
    members(rm, *range(8))
    assert len(keys(rm)) == 4
    assert "requested vcore 4m for a step of 4, available vcore 2m" in reason_of(rm, "g", "m4")
    rm.app("other")
    rm.ask("other", vcore=2)
    assert keys(rm) == ["ask"]


def test_event_says_once_that_a_step_has_no_room() -> None:
    collector = EventCollector()
    text = collector.text(partition(queue("a")))
    rm = GangRM(scheduler=collector.rm(partition(queue("a"))).scheduler, config=text, rm_id="gangs")
    rm.node("n1", vcore=6)
    rm.gang("g", "Atomic", tags={STEP: "4"}, vcore=4)
    members(rm, *range(8))
    rm.schedule()
    rm.pass_time(700)
    rm.schedule()
    assert collector.messages("step of g") == [
        "Step of application 'g' (4 members, vcore 4m) has no room: vcore 2m left in queue root"
    ]


def test_last_members_of_a_step_that_are_released_end_the_attempt() -> None:
    rm = grown(4)
    assert len(keys(rm)) == 4
    rm.release_ask("g", "m7")
    rm.node("n2", vcore=8)
    assert keys(rm) == []
    members(rm, 8)
    assert keys(rm) == ["m4", "m5", "m6", "m8"]


def test_application_with_a_step_that_waits_can_be_removed() -> None:
    rm = grown(4)
    rm.schedule()
    rm.remove_app("g")
    rm.node("n2", vcore=8)
    assert rm.schedule() == []
    assert rm.used() == {}


def test_members_that_change_their_size_wait_as_a_step() -> None:
    rm = grown(10)
    rm.schedule(1)
    for number in range(4, 8):
        rm.task("g", f"m{number}", "workers", vcore=2)
    assert keys(rm) == []
    rm.node("n2", vcore=2)
    assert len(keys(rm)) == 4


# -- replacements -----------------------------------------------------------------------------------------


def test_replacement_is_placed_alone() -> None:
    rm = grown(8, count=8)
    assert len(keys(rm)) == 8
    rm.release("g", key="m5")
    assert keys(rm) == []
    members(rm, 20)
    assert keys(rm) == ["m20"]


def test_growth_does_not_take_the_place_of_one_that_ended() -> None:
    rm = grown(8, count=8)
    assert len(keys(rm)) == 8
    for number in range(4):
        assert keys(rm) == []
        rm.release("g", key=f"m{number}")
    assert keys(rm) == ["m8", "m9", "m10", "m11"]


def test_replacement_that_came_before_the_end_is_placed_then() -> None:
    rm = grown(9)
    assert len(keys(rm)) == 8
    members(rm, 20)
    assert keys(rm) == []
    rm.release("g", key="m5")
    assert keys(rm) == ["m20"]


def test_replacement_that_waits_for_long_holds_back_others_and_a_step_does_not() -> None:
    rm = grown(8)
    assert len(keys(rm)) == 8
    rm.release("g", key="m5")
    rm.app("other")
    rm.ask("other", "one", vcore=1)
    assert keys(rm) == ["one"]
    members(rm, 20)
    assert keys(rm) == []
    rm.pass_time(601)
    rm.ask("other", "two", vcore=1)
    rm.release("other", key="one")
    assert keys(rm) == ["m20"]

    members(rm, *range(30, 34))
    assert keys(rm) == []
    rm.pass_time(601)
    rm.node("n2", vcore=2)
    assert keys(rm) == ["two"]


def test_member_that_the_rm_cannot_start_is_placed_again_alone() -> None:
    rm = grown(8)
    assert len(keys(rm)) == 8
    uuid = next(one.uuid for one in rm.running.values() if one.allocation_key == "m6")
    rm.release("g", uuid, termination=TerminationType.SCHEDULING_FAILED_ON_RM)
    rm.node("n2", vcore=1)
    rm.pass_time(60)
    assert keys(rm) == ["m6"]


@pytest.mark.parametrize("node_first", [True, False])
def test_step_of_which_a_part_was_recovered_is_completed_one_by_one(node_first: bool) -> None:
    rm = cluster()
    rm.gang("g", "Atomic", tags={STEP: "4"}, vcore=4)
    existing = [
        Allocation(f"m{n}", "g", f"u{n}", "n1", Resource(vcore=1), task_group_name="workers")
        for n in range(10)
    ]
    if node_first:
        rm.node("n1", existing=existing, vcore=13)
    members(rm, *range(10, 16))
    if not node_first:
        rm.node("n1", existing=existing, vcore=13)
    assert len(keys(rm)) == 2
    rm.node("n2", vcore=3)
    assert len(keys(rm)) == 4


def test_reload_keeps_the_step_whole() -> None:
    rm = grown(6)
    assert len(keys(rm)) == 4
    rm.reload(configuration(queue("a"), queue("b"), queue("c")))
    assert keys(rm) == []
    rm.node("n2", vcore=2)
    assert len(keys(rm)) == 4


def test_preempted_step_grows_again_as_a_step() -> None:
    of_b = queue("b", resources={"guaranteed": {"vcore": 4}})
    rm = GangRM(configuration(queue("a"), of_b))
    rm.node("n1", vcore=12)
    rm.gang("g", "Atomic", tags={STEP: "4"}, vcore=4)
    members(rm, *range(12))
    assert len(keys(rm)) == 12
    rm.app("urgent", "root.b")
    rm.ask("urgent", vcore=1)
    rm.pass_time(31)
    rm.schedule()
    ended = sorted(one.allocation_key for one in rm.evicted.values())
    assert len(ended) == 4
    for number, uuid in enumerate(list(rm.evicted)):
        rm.confirm(uuid)
        rm.task("g", f"again{number}", "workers", vcore=1)
        assert "again" not in "".join(keys(rm))
    rm.release("urgent", key="ask")
    assert keys(rm) == [f"again{number}" for number in range(4)]


def test_gang_that_is_preempted_as_a_whole_starts_as_a_whole() -> None:
    of_b = queue("b", resources={"guaranteed": {"vcore": 8}})
    rm = GangRM(configuration(queue("a"), of_b))
    rm.node("n1", vcore=8)
    rm.gang("g", "Atomic", tags={STEP: "2"}, vcore=4)
    members(rm, *range(8))
    assert len(keys(rm)) == 8
    rm.app("urgent", "root.b")
    rm.ask("urgent", vcore=7)
    rm.pass_time(31)
    rm.schedule()
    assert len(rm.evicted) == 8
    for number in range(8):
        rm.task("g", f"again{number}", "workers", vcore=1)
    rm.confirm()
    assert keys(rm) == ["ask"]
    rm.node("n2", vcore=2)
    assert keys(rm) == []
    rm.node("n3", vcore=1)
    assert keys(rm) == ["again0", "again1", "again2", "again3"]
    rm.release("urgent", key="ask")
    assert len(keys(rm)) == 4


# -- domains ----------------------------------------------------------------------------------------------


def on_racks(topology: Any, count: int, **keys: Any) -> GangRM:
    """Return an elastic gang of 4 on racks of 2 nodes with 8 gpu, with `count` members in all."""
    rm = racks(**keys)
    rm.gang("g", "Atomic", tags={TOPOLOGY: json.dumps(topology)}, gpu=4)
    for number in range(count):
        rm.task("g", f"m{number}", "workers", gpu=4)
    return rm


def places(rm: GangRM) -> dict[str, str]:
    """Schedule, and return the nodes by key."""
    return {key: node for _, key, node in rm.schedule()}


def test_step_is_a_slice_in_one_domain() -> None:
    rm = racks()
    rm.gang("g", "Atomic", tags={TOPOLOGY: json.dumps({"slices": [{"size": 3, "level": "rack"}]})}, gpu=12)
    for number in range(12):
        rm.task("g", f"m{number}", "workers", gpu=4)
    found = places(rm)
    for first in range(0, 12, 3):
        assert len(domains([found[f"m{first + one}"] for one in range(3)])) == 1


def test_step_waits_for_a_domain_though_the_cluster_has_room() -> None:
    rm = racks(blocks=1)
    rm.gang("g", "Atomic", tags={TOPOLOGY: json.dumps({"slices": [{"size": 2, "level": "rack"}]})}, gpu=16)
    for rack in (1, 2):
        rm.app(f"f{rack}", "root.b")
        tags = {"yunikorn.apache.org/requiredNode": f"b1-r{rack}-n1"}
        rm.ask(f"f{rack}", f"f{rack}", gpu=8, tags=tags)
    rm.schedule()
    rm.node("b1-r3-n1", {"block": "b1", "rack": "r3"}, gpu=8)
    for number in range(4):
        rm.task("g", f"m{number}", "workers", gpu=8)
    assert places(rm) == {}
    rm.release("f1", key="f1")
    assert domains([*places(rm).values()]) == ["b1-r1"]
    assert "room for 0 of 2 members" in reason_of(rm, "g", "m2")
    rm.release("f2", key="f2")
    assert domains([*places(rm).values()]) == ["b1-r2"]


def test_step_is_not_tried_again_for_room_in_other_domains() -> None:
    rm = cluster(topology=["rack"])
    for name, rack in (("n1", "r1"), ("n2", "r2")):
        rm.node(name, {"rack": rack}, vcore=4)
        rm.app(name, "root.b")
        rm.ask(name, name, 3, tags={"yunikorn.apache.org/requiredNode": name}, vcore=1)
    assert len(keys(rm)) == 6
    rm.node("n3", {"rack": "r2"}, vcore=9)
    rm.gang("g", "Atomic", tags={TOPOLOGY: "rack", STEP: "2"}, vcore=1)
    rm.task("g", "m0", "workers", vcore=1, tags={"yunikorn.apache.org/requiredNode": "n1"})
    members(rm, 1, 2)
    assert keys(rm) == ["m0"]

    def tried(node: str) -> int:
        """Let a task end on a node, and return how often no node was found for the step."""
        rm.release(node, next(uuid for uuid, one in rm.running.items() if one.application_id == node))
        placed.extend(keys(rm))
        found = failed_attempts(rm.at_work(), rm.find_app("g").asks["m1"]) if not placed else []
        return {one.reason: one.number for one in found}.get(NO_ROOM, 0)

    placed: list[str] = []
    assert [tried("n2") for _ in range(3)] == [1, 1, 1]
    assert tried("n1") == 2
    assert tried("n1") == 0
    assert placed == ["m1", "m2"]


@pytest.mark.parametrize(
    "topology",
    [
        {"required": "rack", "slices": [{"size": 2, "level": "host"}]},
        {"required": "block", "groups": {"workers": {"required": "rack"}}},
        {"required": "block", "preferred": ["rack"]},
    ],
)
def test_step_follows_those_that_run(topology: Any) -> None:
    rm = racks(topology=["block", "rack", "host"])
    for block in (1, 2):
        for rack in (1, 2):
            for node in (1, 2):
                name = f"b{block}-r{rack}-n{node}"
                rm.change_node(name, attributes={"block": f"b{block}", "rack": f"r{rack}", "host": name})
    rm.gang("g", "Atomic", tags={TOPOLOGY: json.dumps(topology), STEP: "2"}, gpu=8)
    for number in range(6):
        rm.task("g", f"m{number}", "workers", gpu=4)
    found = places(rm)
    inner = (
        2
        if "rack" in (topology["required"], topology.get("groups", {}).get("workers", {}).get("required"))
        else 1
    )
    assert len(found) == (4 if inner == 2 else 6)
    assert len(domains([*found.values()], inner)) == 1


def test_replacement_holds_back_others_whatever_waits_in_another_task_group() -> None:
    rm = cluster()
    rm.node("n1", vcore=5)
    rm.gang("g", "Atomic", tags={STEP: "2"}, vcore=4)
    for group in ("a", "b"):
        rm.task("g", group, group, 2, vcore=1)
    rm.app("other")
    rm.ask("other", "one", vcore=1)
    assert len(keys(rm)) == 5
    rm.release("g", uuid="a#1")
    rm.task("g", "again", "a", vcore=2)
    assert keys(rm) == []
    rm.pass_time(601)
    rm.task("g", "half", "b", vcore=1)
    rm.ask("other", "two", vcore=1)
    assert keys(rm) == []
    assert reason_of(rm, "other", "two").startswith("an overdue gang has precedence")
    rm.release_ask("g", "again")
    rm.app("large")
    rm.ask("large", vcore=2)
    rm.ask("other", "three", vcore=1)
    assert keys(rm) == ["two"]
