"""Histories for every door. Each asserts its outcome; the responses must be equal at all doors."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import attrs

from tests.conformance.story import Predicate, Story, request
from tests.core.kit import configuration, queue
from yunikorn.interface.constants import FORCE_TAG, FOREIGN_TAG, REQUIRED_NODE_TAG
from yunikorn.interface.messages import (
    AddApplicationRequest,
    Allocation,
    NewNodeInfo,
    NodeAction,
    PredicatesArgs,
    PreemptionPolicy,
    RemoveApplicationRequest,
    UpdateNodeInfo,
    UserGroupInformation,
)
from yunikorn.resources import Resource

Tell = Callable[[Story], None]
TWO = configuration(queue("a"), queue("b"))


@attrs.frozen
class Scenario:
    """A history with its configuration, and a predicate of the resource manager, if any."""

    name: str
    config: str
    tell: Tell
    predicate: Predicate | None = None


SCENARIOS: list[Scenario] = []


def scenario(config: str = TWO, predicate: Predicate | None = None) -> Callable[[Tell], Tell]:
    """Add a history to the suite."""

    def add(tell: Tell) -> Tell:
        SCENARIOS.append(Scenario(tell.__name__.replace("_", " "), config, tell, predicate))
        return tell

    return add


# -- placements ----------------------------------------------------------------------------------------


@scenario()
def requests_are_placed_in_the_order_of_their_application(rm: Story) -> None:
    rm.node("n1", vcore=2)
    rm.app("one")
    assert rm.ask("one", "x", "y", "z", vcore=1) == ["x@n1", "y@n1"]
    assert rm.node("n2", vcore=1) == ["z@n2"]


@scenario(configuration(queue("a", properties={"application.sort.policy": "fair"}), queue("b")))
def queues_and_applications_take_turns(rm: Story) -> None:
    for app, where in (("one", "root.a"), ("two", "root.a"), ("three", "root.b")):
        rm.app(app, where)
        rm.ask(app, *[f"{app}-{number}" for number in range(4)], vcore=1)
    placed = rm.node("n1", vcore=6)
    assert len(placed) == 6
    assert sum(key.startswith("three") for key in placed) == 3


@scenario()
def priorities_come_first(rm: Story) -> None:
    rm.app("one")
    for key, priority in (("low", -1), ("high", 10), ("middle", 0)):
        rm.ask("one", key, vcore=1, fields={"priority": priority})
    assert rm.node("n1", vcore=2) == ["high@n1", "middle@n1"]
    assert [entry[4] for entry in rm.history["placed"]] == [10, 0]


@scenario(configuration(queue("a", resources={"max": {"vcore": "2"}}), queue("b")))
def quotas_hold_until_there_is_room_below_them(rm: Story) -> None:
    rm.node("n1", vcore=10_000)
    rm.app("one")
    assert rm.ask("one", "x", "y", "z", vcore=1000) == ["x@n1", "y@n1"]
    assert rm.end("x") == ["z@n1"]


@scenario()
def nodes_may_be_required_and_tags_come_back(rm: Story) -> None:
    for name in ("n1", "n2", "n3"):
        rm.node(name, vcore=2)
    rm.app("one")
    tags = {REQUIRED_NODE_TAG: "n2", "kubernetes.io/meta/namespace": "lab"}
    assert rm.ask("one", "x", vcore=1, fields={"tags": tags}) == ["x@n2"]
    assert rm.history["placed"][-1][-1] == tags


@scenario(configuration(queue("a"), limits=[{"limit": "", "users": ["ann"], "maxresources": {"vcore": "1"}}]))
def users_have_limits(rm: Story) -> None:
    rm.node("n1", vcore=10_000)
    rm.app("hers", user="ann")
    rm.app("his", user="bob")
    assert rm.ask("hers", "h1", "h2", vcore=1000) == ["h1@n1"]
    assert rm.ask("his", "b1", "b2", vcore=1000) == ["b1@n1", "b2@n1"]
    assert rm.end("h1") == ["h2@n1"]


def _not_warm(args: PredicatesArgs) -> str | None:
    return "it is too warm" if args.node_id == "warm" and args.allocation_key != "hardy" else None


@scenario(predicate=_not_warm)
def predicates_of_the_rm_are_asked(rm: Story) -> None:
    rm.app("one")
    rm.node("warm", vcore=4)
    assert rm.ask("one", "x", "hardy", vcore=1) == ["hardy@warm"]
    assert rm.node("cool", vcore=4) == ["x@cool"]


@scenario()
def the_same_ask_again_replaces_the_first(rm: Story) -> None:
    rm.app("one")
    rm.ask("one", "x", vcore=5)
    rm.ask("one", "x", vcore=1)
    assert rm.node("n1", vcore=1) == ["x@n1"]


@scenario()
def reservations_keep_small_requests_from_starving_a_large_one(rm: Story) -> None:
    rm.node("n1", vcore=4)
    rm.app("one")
    rm.ask("one", "s1", "s2", "s3", "s4", vcore=1)
    rm.ask("one", "large", vcore=4)
    rm.pass_time(60)
    rm.app("two", "root.b")
    rm.ask("two", "t1", "t2", "t3", vcore=1)
    placed = []
    for key in ("s1", "s2", "s3", "s4"):
        placed += rm.end(key)
    assert placed == ["large@n1"]


@scenario(
    configuration(
        queue("a", resources={"guaranteed": {"vcore": "20m"}}),
        queue("b", properties={"application.sort.policy": "fair"}, resources={"max": {"vcore": "30m"}}),
        queue("c", properties={"application.sort.policy": "stateaware"}),
        nodesortpolicy={"type": "binpacking"},
    )
)
def much_happens_at_random(rm: Story) -> None:
    dice = random.Random(11)
    for number in range(6):
        rm.node(f"n{number}", vcore=8 + number, memory=16)
    apps: list[str] = []
    for round_number in range(40):
        choice = dice.random()
        if choice < 0.2 or not apps:
            apps.append(f"app-{round_number}")
            rm.app(apps[-1], f"root.{dice.choice('abc')}", dice.choice(["ann", "bob"]))
        elif choice < 0.65:
            keys = [f"{round_number}-{number}" for number in range(dice.randint(1, 6))]
            size = {"vcore": dice.randint(1, 4), "memory": dice.randint(1, 5)}
            rm.ask(dice.choice(apps), *keys, fields={"priority": dice.choice([0, 0, 3])}, **size)
        elif choice < 0.9 and rm.running:
            rm.end(*dice.sample(sorted(rm.running), min(3, len(rm.running))))
        elif choice < 0.95:
            gone = apps.pop(dice.randrange(len(apps)))
            rm.remove(gone)
        else:
            rm.pass_time(40)
    assert len(rm.history["placed"]) > 40


# -- refusals ------------------------------------------------------------------------------------------


@scenario()
def what_makes_no_sense_is_refused_alone(rm: Story) -> None:
    rm.node("n1", vcore=4)
    rm.node("n1", vcore=4)
    rm.node("", vcore=4)
    rm.app("one")
    rm.app("one")
    rm.app("lost", "root.nowhere")
    rm.app("one\nmore")
    rm.say(
        asks=[request("one", "neg", vcore=-1), request("one", "good", vcore=1), request("two", "x", vcore=1)]
    )
    rm.ask("one", "nothing")
    rm.ask("one", "k" * 2000, vcore=1)
    assert rm.places == {"good": "n1"}
    assert [entry[:2] for entry in rm.told("nodes")] == [
        ("accepted", "n1"),
        ("refused", "n1"),
        ("refused", ""),
    ]
    refused = [entry[1] for entry in rm.told("applications") if entry[0] == "refused"]
    assert refused == ["one", "lost", "one\nmore"]
    assert sorted(str(entry[1])[:7] for entry in rm.told("asks refused")) == [
        "kkkkkkk",
        "neg",
        "nothing",
        "x",
    ]
    assert all(str(entry[2]) for entry in rm.told("asks refused"))


@scenario()
def who_says_the_wrong_partition_hears_it(rm: Story) -> None:
    rm.app("one", partition_name="gpu")
    rm.node("n1", {"si/node-partition": "gpu"}, vcore=1)
    rm.app("two")
    rm.ask("two", "x", vcore=1, fields={"partition_name": "gpu"})
    assert len(rm.told("asks refused")) == 1
    assert rm.places == {}


# -- releases ------------------------------------------------------------------------------------------


@scenario()
def what_ends_is_confirmed_and_its_room_is_used(rm: Story) -> None:
    rm.node("n1", vcore=1)
    rm.app("one")
    rm.ask("one", "x", "y", vcore=1)
    assert rm.end("x") == ["y@n1"]
    unknown = Allocation("never", "one")
    rm.release(unknown)
    assert [entry[:3] for entry in rm.told("ended")] == [
        ("one", "x", "STOPPED_BY_RM"),
        ("one", "never", "STOPPED_BY_RM"),
    ]


@scenario()
def asks_are_taken_back(rm: Story) -> None:
    rm.app("one")
    rm.ask("one", "x", "y", vcore=1)
    rm.take_back("one", "x")
    assert rm.node("n1", vcore=5) == ["y@n1"]
    assert rm.history["ended"] == [("one", "x", "STOPPED_BY_RM", "ask released as per RM request")]


@scenario()
def a_release_by_key_ends_the_ask_and_its_message_comes_back(rm: Story) -> None:
    rm.node("n1", vcore=1)
    rm.app("one")
    rm.ask("one", "x", "y", vcore=1)
    rm.release(Allocation("y", "one"), why="the driver is gone")
    rm.release(rm.running["x"], why="it has done its work")
    rm.take_back("one", "never", why="a mistake")
    unknown = "allocation key 'never' is unknown or no longer exists: nothing was released"
    assert rm.history["ended"] == [
        ("one", "y", "STOPPED_BY_RM", "the driver is gone"),
        ("one", "x", "STOPPED_BY_RM", "it has done its work"),
        ("one", "never", "STOPPED_BY_RM", unknown),
    ]


@scenario()
def an_application_goes_with_all_that_belongs_to_it(rm: Story) -> None:
    rm.node("n1", vcore=2)
    rm.app("one")
    rm.app("two", "root.b")
    rm.ask("one", "x1", "x2", "x3", vcore=1)
    rm.ask("two", "y", vcore=1)
    assert rm.remove("one") == ["y@n1"]
    rm.remove("one")
    rm.app("one")
    rm.ask("one", "x1", vcore=1)
    assert rm.places == {"y": "n1", "x1": "n1"}


@scenario()
def an_application_has_its_time(rm: Story) -> None:
    rm.node("n1", vcore=2)
    rm.app("one", execution_timeout_ms=60_000)
    rm.ask("one", "x", vcore=1)
    rm.pass_time(61)
    assert ("one", "x", "TIMEOUT") in rm.told("ended")
    rm.confirm()
    assert rm.places == {}
    assert any(str(entry[2]).startswith("Fail") for entry in rm.told("applications") if entry[0] == "is")


# -- nodes ----------------------------------------------------------------------------------------------


@scenario()
def nodes_are_drained_and_come_back(rm: Story) -> None:
    rm.node("n1", vcore=2)
    rm.app("one")
    rm.ask("one", "x", vcore=1)
    rm.change("n1", NodeAction.DRAIN_NODE)
    assert rm.ask("one", "y", vcore=1) == []
    rm.node("n2", drained=True, vcore=2)
    assert rm.places == {"x": "n1"}
    assert rm.change("n1", NodeAction.DRAIN_TO_SCHEDULABLE) == ["y@n1"]
    assert rm.ask("one", "z", vcore=1) == []
    assert rm.change("n2", NodeAction.DRAIN_TO_SCHEDULABLE) == ["z@n2"]


@scenario()
def what_comes_with_a_drain_is_applied(rm: Story) -> None:
    rm.node("n1", vcore=2)
    rm.app("one")
    rm.change("n1", NodeAction.DRAIN_NODE, vcore=4)
    assert rm.ask("one", "x", vcore=3) == []
    assert rm.change("n1", NodeAction.DRAIN_TO_SCHEDULABLE) == ["x@n1"]
    rm.change("n1", NodeAction.DRAIN_NODE)
    assert rm.ask("one", "y", vcore=3) == []
    assert rm.change("n1", NodeAction.DRAIN_TO_SCHEDULABLE, vcore=6) == ["y@n1"]


@scenario()
def what_is_known_is_removed_before_it_is_registered_again(rm: Story) -> None:
    rm.node("n1", vcore=2)
    rm.app("one")
    rm.ask("one", "x", vcore=1)
    again = AddApplicationRequest("one", "root.a", ugi=UserGroupInformation("ann", ["ann"]))
    rm.say(remove_applications=[RemoveApplicationRequest("one")], new_applications=[again])
    assert rm.told("ended") == [("one", "x", "STOPPED_BY_RM")]
    assert rm.ask("one", "y", vcore=1) == ["y@n1"]
    gone = [UpdateNodeInfo("n1", NodeAction.DRAIN_NODE), UpdateNodeInfo("n1", NodeAction.DECOMMISSION)]
    rm.say(updated_nodes=gone, new_schedulable_nodes=[NewNodeInfo("n1", {}, Resource(vcore=8))])
    assert rm.told("ended")[1:] == [("one", "y", "STOPPED_BY_RM")]
    assert rm.told("nodes") == [("accepted", "n1")] * 2
    assert rm.ask("one", "z", vcore=8) == ["z@n1"]


@scenario()
def what_came_and_went_within_one_update_is_gone(rm: Story) -> None:
    gone = [UpdateNodeInfo("n1", NodeAction.DECOMMISSION)]
    rm.say(updated_nodes=gone, new_schedulable_nodes=[NewNodeInfo("n1", {}, Resource(vcore=8))])
    rm.app("one")
    assert rm.ask("one", "x", vcore=1) == []
    again = AddApplicationRequest("two", "root.a", ugi=UserGroupInformation("ann", ["ann"]))
    rm.say(remove_applications=[RemoveApplicationRequest("two")], new_applications=[again])
    rm.ask("two", "x", vcore=1)
    assert rm.told("asks refused") == [("two", "x", "failed to find application two")]


@scenario()
def nodes_leave_with_what_runs_on_them(rm: Story) -> None:
    rm.node("n1", vcore=2)
    rm.app("one")
    rm.ask("one", "x", "y", vcore=1)
    rm.change("n1", NodeAction.DECOMMISSION)
    assert sorted(str(entry[1]) for entry in rm.told("ended")) == ["x", "y"]
    rm.change("n1", NodeAction.DRAIN_NODE)
    assert rm.node("n1", vcore=2) == []


@scenario()
def nodes_grow_and_shrink(rm: Story) -> None:
    rm.node("n1", vcore=1)
    rm.app("one")
    assert rm.ask("one", "x", "y", "z", vcore=1) == ["x@n1"]
    assert rm.change("n1", NodeAction.UPDATE, vcore=2) == ["y@n1"]
    assert rm.change("n1", NodeAction.UPDATE, vcore=1) == []
    assert rm.end("x") == []
    assert rm.change("n1", NodeAction.UPDATE, vcore=2) == ["z@n1"]


@scenario()
def what_others_run_takes_room(rm: Story) -> None:
    rm.node("n1", vcore=3)
    rm.app("one")
    size = Resource(vcore=2)
    tags = {FOREIGN_TAG: "default"}
    rm.say(allocations=[Allocation("theirs", "", "", "n1", size, allocation_tags=tags)])
    assert rm.ask("one", "x", "y", vcore=1) == ["x@n1"]
    assert rm.running.pop("theirs", None) is None
    assert rm.release(Allocation("theirs", "")) == ["y@n1"]


# -- preemption -----------------------------------------------------------------------------------------


@scenario(configuration(queue("a", resources={"guaranteed": {"memory": "4"}}), queue("b")))
def a_guarantee_is_restored(rm: Story) -> None:
    rm.node("n1", memory=4)
    rm.node("n2", memory=4)
    rm.app("big", "root.b")
    rm.ask("big", *[f"x{number}" for number in range(8)], memory=1)
    kept = PreemptionPolicy(allow_preempt_self=False)
    rm.app("late")
    rm.ask("late", "y", memory=2, fields={"preemption_policy": kept})
    rm.pass_time(31)
    victims = [one.allocation_key for one in rm.to_confirm]
    assert len(victims) == 2
    assert {entry[2] for entry in rm.told("ended")} == {"PREEMPTED_BY_SCHEDULER"}
    assert rm.confirm(victims[0]) == []
    (placed,) = rm.confirm()
    assert placed.startswith("y@")


# -- gangs ----------------------------------------------------------------------------------------------

GANG = {"task_group_name": "workers"}
PLACEHOLDER = {**GANG, "placeholder": True}
HARD: dict[str, Any] = {"execution_timeout_ms": 30_000, "gang_scheduling_style": "Hard"}
SOFT: dict[str, Any] = {"execution_timeout_ms": 30_000, "gang_scheduling_style": "Soft"}


@scenario()
def real_tasks_take_the_places_of_placeholders(rm: Story) -> None:
    rm.node("n1", vcore=4)
    rm.node("n2", vcore=4)
    rm.app("gang", placeholder_ask=Resource(vcore=4))
    assert len(rm.ask("gang", "p1", "p2", vcore=2, fields=PLACEHOLDER)) == 2
    where = dict(rm.places)
    assert rm.ask("gang", "t1", "t2", vcore=2, fields=GANG) == []
    assert [(one.allocation_key, one.termination_type.name) for one in rm.to_confirm] == [
        ("p1", "PLACEHOLDER_REPLACED"),
        ("p2", "PLACEHOLDER_REPLACED"),
    ]
    assert rm.confirm() == [f"t1@{where['p1']}", f"t2@{where['p2']}"]
    assert rm.places == {"t1": where["p1"], "t2": where["p2"]}
    assert [entry[-2] for entry in rm.history["placed"]] == [True, True, False, False]


@scenario()
def placeholders_give_up_after_their_time(rm: Story) -> None:
    rm.node("n1", vcore=2)
    rm.app("hard", placeholder_ask=Resource(vcore=4), **HARD)
    assert rm.ask("hard", "p1", "p2", vcore=2, fields=PLACEHOLDER) == ["p1@n1"]
    rm.pass_time(31)
    rm.confirm()
    rm.app("soft", placeholder_ask=Resource(vcore=4), **SOFT)
    assert rm.ask("soft", "q1", "q2", vcore=2, fields=PLACEHOLDER) == ["q1@n1"]
    rm.pass_time(31)
    rm.confirm()
    assert rm.ask("soft", "t", vcore=2, fields=GANG) == ["t@n1"]


@scenario()
def atomic_gangs_come_whole_or_not_at_all(rm: Story) -> None:
    rm.node("n1", vcore=3)
    rm.app("gang", placeholder_ask=Resource(vcore=4), gang_scheduling_style="Atomic")
    assert rm.ask("gang", "m1", "m2", "m3", "m4", vcore=1, fields=GANG) == []
    assert len(rm.node("n2", vcore=1)) == 4


# -- recovery -------------------------------------------------------------------------------------------


@scenario()
def who_registers_again_and_reports_has_everything_as_before(rm: Story) -> None:
    nodes = [NewNodeInfo(name, schedulable_resource=Resource(vcore=2)) for name in ("n1", "n2")]
    rm.say(new_schedulable_nodes=nodes)
    owner = UserGroupInformation("ann", ["ann"])
    apps = [AddApplicationRequest("one", "root.a", ugi=owner)]
    rm.say(new_applications=apps)
    rm.ask("one", "x", "y", "z", vcore=1)
    before = rm.places
    assert len(before) == 3
    rm.come_back(apps, nodes)
    assert rm.places == before
    assert len(rm.ask("one", "u", "v", vcore=1)) == 1
    (room,) = [name for name in ("n1", "n2") if list(before.values()).count(name) == 1]
    assert rm.places["u"] == room
    assert rm.end("x") == [f"v@{before['x']}"]


@scenario()
def an_application_may_be_forced_back_where_no_queue_takes_it(rm: Story) -> None:
    rm.app("lost", "root.nowhere")
    rm.app("found", "root.nowhere", tags={FORCE_TAG: "true"})
    rm.node("n1", vcore=1)
    assert rm.ask("found", "x", vcore=1) == ["x@n1"]
