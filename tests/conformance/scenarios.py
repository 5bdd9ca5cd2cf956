"""Histories for every transport. Each asserts its outcome; all transports must give equal responses."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import attrs

from tests.conformance.scenario_rm import Predicate, ScenarioRM, request
from tests.core.kit import configuration, queue
from yunikorn.interface.constants import FORCE_TAG, FOREIGN_TAG, REQUIRED_NODE_TAG
from yunikorn.interface.messages import (
    AddApplicationRequest,
    Allocation,
    NewNodeInfo,
    NodeAction,
    PredicatesArgs,
    PreemptionMode,
    PreemptionPolicy,
    RemoveApplicationRequest,
    UpdateNodeInfo,
    UserGroupInformation,
)
from yunikorn.resources import Resource

Run = Callable[[ScenarioRM], None]
BY_SUSPENDING = {"name": "standard", "mode": "suspend"}
TWO = configuration(queue("a"), queue("b"))


@attrs.frozen
class Scenario:
    """A history with its configuration, and a predicate of the resource manager, if any."""

    name: str
    config: str
    run: Run
    predicate: Predicate | None = None


SCENARIOS: list[Scenario] = []


def scenario(config: str = TWO, predicate: Predicate | None = None) -> Callable[[Run], Run]:
    """Add a history to the suite."""

    def add(run: Run) -> Run:
        SCENARIOS.append(Scenario(run.__name__.replace("_", " "), config, run, predicate))
        return run

    return add


# -- placements ----------------------------------------------------------------------------------------


@scenario()
def asks_are_placed_in_order_of_their_application(rm: ScenarioRM) -> None:
    rm.node("n1", vcore=2)
    rm.app("one")
    assert rm.ask("one", "x", "y", "z", vcore=1) == ["x@n1", "y@n1"]
    assert rm.node("n2", vcore=1) == ["z@n2"]


@scenario(configuration(queue("a", properties={"application.sort.policy": "fair"}), queue("b")))
def fair_order_alternates_queues_and_applications(rm: ScenarioRM) -> None:
    for app, where in (("one", "root.a"), ("two", "root.a"), ("three", "root.b")):
        rm.app(app, where)
        rm.ask(app, *[f"{app}-{number}" for number in range(4)], vcore=1)
    placed = rm.node("n1", vcore=6)
    assert len(placed) == 6
    assert sum(key.startswith("three") for key in placed) == 3


@scenario()
def higher_priorities_are_placed_first(rm: ScenarioRM) -> None:
    rm.app("one")
    for key, priority in (("low", -1), ("high", 10), ("middle", 0)):
        rm.ask("one", key, vcore=1, fields={"priority": priority})
    assert rm.node("n1", vcore=2) == ["high@n1", "middle@n1"]
    assert [entry[4] for entry in rm.history["placed"]] == [10, 0]


@scenario(configuration(queue("a", resources={"max": {"vcore": "2"}}), queue("b")))
def asks_over_quota_wait_for_releases(rm: ScenarioRM) -> None:
    rm.node("n1", vcore=10_000)
    rm.app("one")
    assert rm.ask("one", "x", "y", "z", vcore=1000) == ["x@n1", "y@n1"]
    assert rm.end("x") == ["z@n1"]


@scenario()
def required_nodes_and_allocation_tags(rm: ScenarioRM) -> None:
    for name in ("n1", "n2", "n3"):
        rm.node(name, vcore=2)
    rm.app("one")
    tags = {REQUIRED_NODE_TAG: "n2", "kubernetes.io/meta/namespace": "lab"}
    assert rm.ask("one", "x", vcore=1, fields={"tags": tags}) == ["x@n2"]
    assert rm.history["placed"][-1][-1] == tags


@scenario(configuration(queue("a"), limits=[{"limit": "", "users": ["ann"], "maxresources": {"vcore": "1"}}]))
def user_limits_apply(rm: ScenarioRM) -> None:
    rm.node("n1", vcore=10_000)
    rm.app("hers", user="ann")
    rm.app("his", user="bob")
    assert rm.ask("hers", "h1", "h2", vcore=1000) == ["h1@n1"]
    assert rm.ask("his", "b1", "b2", vcore=1000) == ["b1@n1", "b2@n1"]
    assert rm.end("h1") == ["h2@n1"]


def _not_warm(args: PredicatesArgs) -> str | None:
    return "it is too warm" if args.node_id == "warm" and args.allocation_key != "hardy" else None


@scenario(predicate=_not_warm)
def rm_predicates_are_called(rm: ScenarioRM) -> None:
    rm.app("one")
    rm.node("warm", vcore=4)
    assert rm.ask("one", "x", "hardy", vcore=1) == ["hardy@warm"]
    assert rm.node("cool", vcore=4) == ["x@cool"]


@scenario()
def repeated_ask_replaces_the_first(rm: ScenarioRM) -> None:
    rm.app("one")
    rm.ask("one", "x", vcore=5)
    rm.ask("one", "x", vcore=1)
    assert rm.node("n1", vcore=1) == ["x@n1"]


@scenario()
def reservations_prevent_starvation_of_large_asks(rm: ScenarioRM) -> None:
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
def random_operations(rm: ScenarioRM) -> None:
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
def invalid_entries_are_rejected_individually(rm: ScenarioRM) -> None:
    rm.node("n1", vcore=4)
    rm.node("n1", vcore=4)
    rm.node("", vcore=4)
    rm.app("one")
    rm.app("one")
    rm.app("lost", "root.nowhere")
    rm.app("one\nmore")
    rm.send(
        asks=[request("one", "neg", vcore=-1), request("one", "good", vcore=1), request("two", "x", vcore=1)]
    )
    rm.ask("one", "nothing")
    rm.ask("one", "k" * 2000, vcore=1)
    assert rm.places == {"good": "n1"}
    assert [entry[:2] for entry in rm.reported("nodes")] == [
        ("accepted", "n1"),
        ("refused", "n1"),
        ("refused", ""),
    ]
    refused = [entry[1] for entry in rm.reported("applications") if entry[0] == "refused"]
    assert refused == ["one", "lost", "one\nmore"]
    assert sorted(str(entry[1])[:7] for entry in rm.reported("asks refused")) == [
        "kkkkkkk",
        "neg",
        "nothing",
        "x",
    ]
    assert all(str(entry[2]) for entry in rm.reported("asks refused"))


@scenario()
def wrong_partition_is_rejected(rm: ScenarioRM) -> None:
    rm.app("one", partition_name="gpu")
    rm.node("n1", {"si/node-partition": "gpu"}, vcore=1)
    rm.app("two")
    rm.ask("two", "x", vcore=1, fields={"partition_name": "gpu"})
    assert len(rm.reported("asks refused")) == 1
    assert rm.places == {}


# -- releases ------------------------------------------------------------------------------------------


@scenario()
def ended_allocations_are_confirmed_and_free_resources(rm: ScenarioRM) -> None:
    rm.node("n1", vcore=1)
    rm.app("one")
    rm.ask("one", "x", "y", vcore=1)
    assert rm.end("x") == ["y@n1"]
    unknown = Allocation("never", "one")
    rm.release(unknown)
    assert [entry[:3] for entry in rm.reported("ended")] == [
        ("one", "x", "STOPPED_BY_RM"),
        ("one", "never", "STOPPED_BY_RM"),
    ]


@scenario()
def asks_are_released(rm: ScenarioRM) -> None:
    rm.app("one")
    rm.ask("one", "x", "y", vcore=1)
    rm.release_asks("one", "x")
    assert rm.node("n1", vcore=5) == ["y@n1"]
    assert rm.history["ended"] == [("one", "x", "STOPPED_BY_RM", "ask released as per RM request")]


@scenario()
def release_by_key_ends_the_ask_and_returns_its_message(rm: ScenarioRM) -> None:
    rm.node("n1", vcore=1)
    rm.app("one")
    rm.ask("one", "x", "y", vcore=1)
    rm.release(Allocation("y", "one"), why="the driver is gone")
    rm.release(rm.running["x"], why="it has done its work")
    rm.release_asks("one", "never", why="a mistake")
    unknown = "allocation key 'never' is unknown or no longer exists: nothing was released"
    assert rm.history["ended"] == [
        ("one", "y", "STOPPED_BY_RM", "the driver is gone"),
        ("one", "x", "STOPPED_BY_RM", "it has done its work"),
        ("one", "never", "STOPPED_BY_RM", unknown),
    ]


@scenario()
def removed_application_loses_asks_and_allocations(rm: ScenarioRM) -> None:
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
def application_execution_timeout(rm: ScenarioRM) -> None:
    rm.node("n1", vcore=2)
    rm.app("one", execution_timeout_ms=60_000)
    rm.ask("one", "x", vcore=1)
    rm.pass_time(61)
    assert ("one", "x", "TIMEOUT") in rm.reported("ended")
    rm.confirm()
    assert rm.places == {}
    assert any(str(entry[2]).startswith("Fail") for entry in rm.reported("applications") if entry[0] == "is")


# -- nodes ----------------------------------------------------------------------------------------------


@scenario()
def nodes_are_drained_and_made_schedulable(rm: ScenarioRM) -> None:
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
def changes_in_a_drain_action_are_applied(rm: ScenarioRM) -> None:
    rm.node("n1", vcore=2)
    rm.app("one")
    rm.change("n1", NodeAction.DRAIN_NODE, vcore=4)
    assert rm.ask("one", "x", vcore=3) == []
    assert rm.change("n1", NodeAction.DRAIN_TO_SCHEDULABLE) == ["x@n1"]
    rm.change("n1", NodeAction.DRAIN_NODE)
    assert rm.ask("one", "y", vcore=3) == []
    assert rm.change("n1", NodeAction.DRAIN_TO_SCHEDULABLE, vcore=6) == ["y@n1"]


@scenario()
def known_objects_are_removed_before_new_registration(rm: ScenarioRM) -> None:
    rm.node("n1", vcore=2)
    rm.app("one")
    rm.ask("one", "x", vcore=1)
    again = AddApplicationRequest("one", "root.a", ugi=UserGroupInformation("ann", ["ann"]))
    rm.send(remove_applications=[RemoveApplicationRequest("one")], new_applications=[again])
    assert rm.reported("ended") == [("one", "x", "STOPPED_BY_RM")]
    assert rm.ask("one", "y", vcore=1) == ["y@n1"]
    gone = [UpdateNodeInfo("n1", NodeAction.DRAIN_NODE), UpdateNodeInfo("n1", NodeAction.DECOMMISSION)]
    rm.send(updated_nodes=gone, new_schedulable_nodes=[NewNodeInfo("n1", {}, Resource(vcore=8))])
    assert rm.reported("ended")[1:] == [("one", "y", "STOPPED_BY_RM")]
    assert rm.reported("nodes") == [("accepted", "n1")] * 2
    assert rm.ask("one", "z", vcore=8) == ["z@n1"]


@scenario()
def objects_added_and_removed_in_one_update_are_gone(rm: ScenarioRM) -> None:
    gone = [UpdateNodeInfo("n1", NodeAction.DECOMMISSION)]
    rm.send(updated_nodes=gone, new_schedulable_nodes=[NewNodeInfo("n1", {}, Resource(vcore=8))])
    rm.app("one")
    assert rm.ask("one", "x", vcore=1) == []
    again = AddApplicationRequest("two", "root.a", ugi=UserGroupInformation("ann", ["ann"]))
    rm.send(remove_applications=[RemoveApplicationRequest("two")], new_applications=[again])
    rm.ask("two", "x", vcore=1)
    assert rm.reported("asks refused") == [("two", "x", "failed to find application two")]


@scenario()
def removed_nodes_end_their_allocations(rm: ScenarioRM) -> None:
    rm.node("n1", vcore=2)
    rm.app("one")
    rm.ask("one", "x", "y", vcore=1)
    rm.change("n1", NodeAction.DECOMMISSION)
    assert sorted(str(entry[1]) for entry in rm.reported("ended")) == ["x", "y"]
    rm.change("n1", NodeAction.DRAIN_NODE)
    assert rm.node("n1", vcore=2) == []


@scenario()
def nodes_are_resized(rm: ScenarioRM) -> None:
    rm.node("n1", vcore=1)
    rm.app("one")
    assert rm.ask("one", "x", "y", "z", vcore=1) == ["x@n1"]
    assert rm.change("n1", NodeAction.UPDATE, vcore=2) == ["y@n1"]
    assert rm.change("n1", NodeAction.UPDATE, vcore=1) == []
    assert rm.end("x") == []
    assert rm.change("n1", NodeAction.UPDATE, vcore=2) == ["z@n1"]


@scenario()
def foreign_allocations_use_resources(rm: ScenarioRM) -> None:
    rm.node("n1", vcore=3)
    rm.app("one")
    size = Resource(vcore=2)
    tags = {FOREIGN_TAG: "default"}
    rm.send(allocations=[Allocation("theirs", "", "", "n1", size, allocation_tags=tags)])
    assert rm.ask("one", "x", "y", vcore=1) == ["x@n1"]
    assert rm.running.pop("theirs", None) is None
    assert rm.release(Allocation("theirs", "")) == ["y@n1"]


# -- preemption -----------------------------------------------------------------------------------------


@scenario(configuration(queue("a", resources={"guaranteed": {"memory": "4"}}), queue("b")))
def preemption_restores_a_guarantee(rm: ScenarioRM) -> None:
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
    assert {entry[2] for entry in rm.reported("ended")} == {"PREEMPTED_BY_SCHEDULER"}
    assert rm.confirm(victims[0]) == []
    (placed,) = rm.confirm()
    assert placed.startswith("y@")


@scenario(configuration(queue("a"), preemption={"policy": BY_SUSPENDING, "shrunknodes": True}))
def victims_are_told_to_continue_later(rm: ScenarioRM) -> None:
    rm.node("n1", memory=2)
    rm.app("one")
    rm.ask("one", "x", "y", memory=1)
    rm.send(updated_nodes=[UpdateNodeInfo("n1", schedulable_resource=Resource(memory=1))])
    (victim,) = rm.to_confirm
    assert victim.preemption_mode is PreemptionMode.SUSPEND
    assert rm.confirm() == []


# -- gangs ----------------------------------------------------------------------------------------------

GANG = {"task_group_name": "workers"}
PLACEHOLDER = {**GANG, "placeholder": True}
HARD: dict[str, Any] = {"execution_timeout_ms": 30_000, "gang_scheduling_style": "Hard"}
SOFT: dict[str, Any] = {"execution_timeout_ms": 30_000, "gang_scheduling_style": "Soft"}


@scenario()
def real_tasks_replace_placeholders(rm: ScenarioRM) -> None:
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
def placeholders_time_out(rm: ScenarioRM) -> None:
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
def atomic_gangs_are_placed_as_a_whole(rm: ScenarioRM) -> None:
    rm.node("n1", vcore=3)
    rm.app("gang", placeholder_ask=Resource(vcore=4), gang_scheduling_style="Atomic")
    assert rm.ask("gang", "m1", "m2", "m3", "m4", vcore=1, fields=GANG) == []
    assert len(rm.node("n2", vcore=1)) == 4


# -- recovery -------------------------------------------------------------------------------------------


@scenario()
def registering_again_recovers_all_state(rm: ScenarioRM) -> None:
    nodes = [NewNodeInfo(name, schedulable_resource=Resource(vcore=2)) for name in ("n1", "n2")]
    rm.send(new_schedulable_nodes=nodes)
    owner = UserGroupInformation("ann", ["ann"])
    apps = [AddApplicationRequest("one", "root.a", ugi=owner)]
    rm.send(new_applications=apps)
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
def forced_application_is_recovered_without_a_queue(rm: ScenarioRM) -> None:
    rm.app("lost", "root.nowhere")
    rm.app("found", "root.nowhere", tags={FORCE_TAG: "true"})
    rm.node("n1", vcore=1)
    assert rm.ask("found", "x", vcore=1) == ["x@n1"]
