"""Permit policies: permitted, refused and held placements, and the default `together`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.core.kit import configuration, document, partition, queue, with_plugins
from tests.plugins.permit_kit import (
    PENDING,
    PLACED,
    REGISTRY,
    WAIT,
    Gate,
    PermitRM,
    Second,
    booked,
    clear,
    cluster,
    holding,
    is_silent,
)
from yunikorn.api import Event, EventSink, Wait
from yunikorn.cli.main import main
from yunikorn.interface.messages import Allocation, AllocationAsk, NodeAction, TerminationType
from yunikorn.resources import Resource
from yunikorn_service.scheduling_state_reporter import SchedulingStateReporter

_ = pytest.fixture(autouse=True)(clear)


# -- answers ----------------------------------------------------------------------------------------------


def test_permitted_placement_is_announced_at_once() -> None:
    rm = cluster()
    rm.app()
    rm.ask(vcore=1)
    assert rm.schedule() == [("app", "ask", "n1")]
    assert Gate.asked == ["ask"]
    assert booked(rm) == PLACED
    assert rm.state() == "Starting"


def test_refused_placement_leaves_no_trace_and_waits_for_a_change() -> None:
    rm = cluster()
    Gate.answers["ask"] = "no licence"
    rm.app()
    rm.ask(vcore=1)
    before = rm.find_app().waiting_since
    assert rm.schedule() == []
    assert booked(rm) == PENDING
    assert rm.find_app().waiting_since == before
    assert rm.state() == "Accepted"
    assert is_silent(rm.take_response())
    assert rm.schedule() == []
    assert Gate.asked == ["ask"], "nothing has changed"
    assert rm.why() == ["permit policy gate refuses the placement: no licence"]
    Gate.answers.clear()
    rm.node("n2", vcore=1)
    assert rm.schedule() == [("app", "ask", "n1")]


def test_held_placement_is_booked_and_announced_when_it_is_permitted() -> None:
    rm = holding()
    assert booked(rm) == PLACED
    assert rm.state() == "Accepted"
    assert is_silent(rm.take_response())
    assert rm.after(9) == []
    assert Gate.asked == ["ask"]
    assert rm.after(1) == []
    assert Gate.asked == ["ask", "ask"]
    Gate.answers.clear()
    assert rm.after(10) == [("app", "ask", "n1")]
    assert rm.state() == "Starting"
    assert booked(rm) == PLACED
    assert rm.held() == []


def test_held_placement_keeps_its_room() -> None:
    rm = holding()
    Gate.answers["large"] = None
    rm.ask(key="large", vcore=4)
    assert rm.schedule() == []
    assert rm.held() == ["ask"]


def test_placement_is_taken_back_after_the_timeout() -> None:
    rm = holding()
    assert rm.after(99) == []
    assert rm.held() == ["ask"]
    rm.pass_time(1)
    assert booked(rm) == PENDING
    assert is_silent(rm.take_response())
    [why] = rm.why()
    assert why == "permit policy gate did not permit the placement within 100s: the quota server is busy"
    asked = len(Gate.asked)
    rm.schedule()
    rm.schedule()
    assert len(Gate.asked) == asked, "nothing has changed"
    Gate.answers.clear()
    rm.node("n2", vcore=1)
    assert rm.schedule() == [("app", "ask", "n1")]


def test_policies_are_asked_in_order_and_each_permits_once() -> None:
    rm = cluster(policies=("gate", "second"))
    Second.answers["*"] = WAIT
    rm.app()
    rm.ask(vcore=1)
    rm.schedule()
    assert (Gate.asked, Second.asked) == (["ask"], ["ask"])
    Second.answers.clear()
    assert rm.after(10) == [("app", "ask", "n1")]
    assert (Gate.asked, Second.asked) == (["ask"], ["ask", "ask"])


@pytest.mark.parametrize("answer", [7, b"no", object(), Wait("x", ""), Wait(1, 2), True])  # type: ignore[arg-type]
def test_wrong_answer_holds_the_placement_for_a_minute(answer: Any) -> None:
    rm = cluster()
    Gate.answers["*"] = answer
    rm.app()
    rm.ask(vcore=1)
    assert rm.schedule() == []
    assert rm.held() == ["ask"]
    assert any("permitting" in one for one in rm.failures())
    Gate.answers.clear()
    assert rm.after(59) == []
    assert rm.after(1) == [("app", "ask", "n1")]


# -- groups -----------------------------------------------------------------------------------------------


def test_permission_lets_the_held_placements_of_the_group_go() -> None:
    rm = cluster()
    rm.node("n2", vcore=4)
    Gate.answers["*"] = lambda one: None if sum(Gate.counts.values()) >= 3 else Wait(1000, "alone")
    for app in ("app", "other"):
        rm.app(app)
    rm.ask("app", "a", tags={"group": "g"}, vcore=1)
    rm.ask("other", "b", tags={"group": "g"}, vcore=1)
    assert rm.schedule() == []
    rm.ask("other", "c", tags={"group": "g"}, vcore=1)
    assert [key for _, key, _ in rm.schedule()] == ["c", "a", "b"]


def test_new_held_placement_leads_to_questions_about_its_group_only() -> None:
    rm = cluster()
    leader = lambda one: None if Gate.counts.get("worker") else Wait(1000, "no worker")  # noqa: E731
    Gate.answers.update(leader=leader, worker=lambda one: Wait(1000, "no") if "leader" in rm.held() else None)
    rm.app()
    rm.ask(key="leader", tags={"group": "g"}, vcore=1)
    assert rm.schedule() == []
    rm.ask(key="worker", tags={"group": "g"}, vcore=1)
    assert [key for _, key, _ in rm.schedule()] == ["leader", "worker"]


def test_many_held_placements_cost_nothing_per_decision() -> None:
    rm = cluster()
    rm.node("n2", vcore=2000)
    Gate.answers["*"] = Wait(50, "held")
    Gate.answers["free"] = None
    rm.app()
    rm.ask(key="many", count=500, tags={"group": "g"}, vcore=1)
    rm.schedule()
    asked = len(Gate.asked)
    assert asked <= 600
    rm.ask(key="free", count=100, tags={"group": "g"}, vcore=1)
    rm.schedule()
    assert len(Gate.asked) - asked <= 300, "one of the group for each, and its own"


# -- together ---------------------------------------------------------------------------------------------


def test_together_waits_for_all_of_several_applications() -> None:
    rm = cluster(policies=("together",))
    tags = {"together": "job", "together-count": "3"}
    for number in range(3):
        rm.app(f"app{number}")
        assert rm.held() == [f"t{one}" for one in range(number)]
        rm.ask(f"app{number}", f"t{number}", tags=tags, vcore=1)
        made = rm.schedule()
    assert [key for _, key, _ in made] == ["t2", "t0", "t1"]
    rm.ask("app0", "later", tags=tags, vcore=1)
    assert rm.schedule() == [("app0", "later", "n1")], "the group runs"


def test_together_refuses_an_invalid_count() -> None:
    rm = cluster(policies=("together",))
    rm.app()
    rm.ask(tags={"together": "job", "together-count": "many"}, vcore=1)
    assert rm.schedule() == []
    assert "is 'many' instead of a number of tasks" in rm.why()[0]


# -- other reasons for an end -----------------------------------------------------------------------------


def test_rm_withdraws_a_held_request() -> None:
    rm = holding()
    rm.release_ask()
    response = rm.take_response()
    assert [one.allocation_key for one in response.released_allocation_asks] == ["ask"]
    assert is_silent(response)
    assert booked(rm) == ({}, {}, 4, 0)


@pytest.mark.parametrize("key", ["", "ask"])
def test_release_of_all_allocations_or_by_key_ends_a_held_request(key: str) -> None:
    rm = holding()
    rm.release(key=key)
    response = rm.take_response()
    assert [one.allocation_key for one in response.released_allocation_asks] == ["ask"]
    assert is_silent(response)
    assert booked(rm) == ({}, {}, 4, 0)


def test_rm_cannot_name_a_held_placement_by_its_uuid() -> None:
    rm = holding()
    [uuid] = rm.find_app().allocations
    rm.release(uuid=uuid)
    [answer] = rm.take_response().released_allocations
    assert "is unknown" in answer.message
    assert rm.held() == ["ask"]
    rm.release(termination=TerminationType.TIMEOUT)
    assert rm.held() == ["ask"]


def test_removed_application_ends_silently() -> None:
    rm = holding()
    rm.remove_app("app")
    assert is_silent(rm.take_response())
    assert booked(rm) == ({}, {}, 4, 0)
    assert rm.after(1000) == []


@pytest.mark.parametrize("action", [NodeAction.DRAIN_NODE, NodeAction.DECOMMISSION])
def test_lost_node_makes_the_request_pending_again(action: NodeAction) -> None:
    rm = holding()
    rm.change_node("n1", action)
    assert is_silent(rm.take_response())
    assert rm.find_queue().allocated == {"vcore": 0}
    Gate.answers.clear()
    rm.node("n2", vcore=4)
    assert rm.schedule() == [("app", "ask", "n2")]


def test_stopped_queue_announces_nothing() -> None:
    rm = holding()
    rm.scheduler.stop_queue("rm", "default", "root.a")
    Gate.answers.clear()
    assert rm.after(60) == []
    assert rm.held() == ["ask"]
    rm.scheduler.start_queue("rm", "default", "root.a")
    assert rm.after(60) == [("app", "ask", "n1")]


def test_timeout_passes_in_a_stopped_queue() -> None:
    rm = holding()
    rm.scheduler.stop_queue("rm", "default", "root.a")
    assert rm.after(100) == []
    assert rm.held() == []
    assert booked(rm) == PENDING


def test_changed_request_is_placed_anew() -> None:
    rm = holding()
    rm.ask(vcore=2)
    assert rm.held() == []
    assert booked(rm) == ({}, {"vcore": 2}, 4, 0)
    Gate.answers.clear()
    assert rm.schedule() == [("app", "ask", "n1")]


def test_rm_places_a_held_request_itself() -> None:
    rm = holding()
    rm.update(allocations=[Allocation("ask", "app", "own", "n1", Resource(vcore=2))])
    assert rm.held() == []
    assert rm.since(0) == [("app", "ask", "n1")]
    assert booked(rm) == ({"vcore": 2}, {}, 2, 1)


def test_other_policies_and_none_after_a_reload() -> None:
    rm = holding()
    Second.answers["*"] = WAIT
    rm.reload(configuration(queue("a"), queue("b"), permits=["second"]))
    assert rm.held() == ["ask"]
    assert Second.asked == ["ask"]
    rm.reload(configuration(queue("a"), queue("b")))
    assert rm.held() == []
    assert rm.since(0) == [("app", "ask", "n1")]
    rm.ask(key="next", vcore=1)
    assert rm.schedule() == [("app", "next", "n1")]


def test_reconnected_rm_is_asked_for_nothing_that_was_held() -> None:
    rm = holding()
    again = PermitRM(configuration(queue("a"), permits=["gate"]), scheduler=rm.scheduler)
    again.node("n1", vcore=4)
    again.app()
    assert again.held() == []
    again.ask(vcore=1)
    again.schedule()
    assert again.held() == ["ask"]
    assert is_silent(rm.take_response())


def test_allocations_of_the_rm_are_not_asked_about() -> None:
    rm = cluster()
    Gate.answers["*"] = "never"
    rm.app()
    rm.update(allocations=[Allocation("own", "app", "u1", "n1", Resource(vcore=1))])
    assert rm.since(0) == [("app", "own", "n1")]
    assert Gate.asked == []
    assert Gate.counts == {"own": 1}


# -- limits, timeouts, preemption -------------------------------------------------------------------------


def test_application_with_a_held_placement_takes_its_place_among_running_applications() -> None:
    rm = holding()
    text = configuration(queue("a", maxapplications=1), permits=["gate"])
    rm = PermitRM(text, REGISTRY)
    rm.node("n1", vcore=4)
    for app in ("app", "other"):
        rm.app(app)
        rm.ask(app, "ask", vcore=1)
    rm.schedule()
    assert rm.held() == ["ask"]
    Gate.answers["*"] = "never"
    assert rm.after(10) == []
    assert rm.find_queue().running == 0


def test_execution_timeout_starts_with_the_permission() -> None:
    rm = holding()
    rm.release_ask()
    rm.update(asks=[AllocationAsk("timed", "app", "", Resource(vcore=1), 1, execution_timeout_ms=20_000)])
    rm.schedule()
    assert rm.held() == ["timed"]
    assert rm.after(19) == []
    Gate.answers.clear()
    assert rm.after(1) == [("app", "timed", "n1")]
    rm.take_response()
    rm.pass_time(19)
    assert is_silent(rm.take_response())
    rm.pass_time(1)
    assert [one.allocation_key for one in rm.take_response().released_allocations] == ["timed"]


def test_execution_timeout_of_a_task_permitted_at_once_ends_with_the_task() -> None:
    rm = cluster()
    rm.app()
    rm.update(asks=[AllocationAsk("timed", "app", "", Resource(vcore=1), 1, execution_timeout_ms=20_000)])
    assert rm.schedule() == [("app", "timed", "n1")]
    rm.release(key="timed")
    rm.take_response()
    rm.pass_time(100)
    assert is_silent(rm.take_response())
    assert rm.failures() == [], "the RM received the release of a task that does not run"


def test_preempted_placement_is_taken_back_and_its_room_used_at_once() -> None:
    guaranteed = queue("a", resources={"guaranteed": {"vcore": "4"}}, properties={"preemption.delay": "1s"})
    text = configuration(guaranteed, queue("b"), permits=["gate"], preemption={"enabled": True})
    rm = PermitRM(text, REGISTRY)
    rm.node("n1", vcore=4)
    Gate.answers["*"] = Wait(50, "held")
    Gate.answers["urgent"] = None
    rm.app("low", "root.b")
    rm.ask("low", "low", count=4, vcore=1)
    rm.schedule()
    assert rm.held() == ["low"] * 4
    rm.app("high", "root.a")
    rm.ask("high", "urgent", vcore=4)
    assert rm.after(30) == [("high", "urgent", "n1")]
    assert rm.held() == []
    assert rm.entries("released_allocations") == []
    assert rm.find_queue("root.b").pending["vcore"] == 4


# -- reports ----------------------------------------------------------------------------------------------


def test_explanation_names_node_policy_and_reason() -> None:
    rm = holding()
    rm.pass_time(4)
    assert rm.why() == [
        "placed on node n1 4s ago, held by permit policy gate: the quota server is busy; asked again in 6s"
    ]
    [(app, count, reason)] = rm.scheduler.first_reasons("rm")
    assert (app, count, reason.check) == ("app", 1, "permit")


def test_events_report_hold_permission_and_refusal() -> None:
    events: list[Event] = []

    class Recorder(EventSink):
        """Records all events."""

        name = "recorder"

        def send(self, batch: Sequence[Event]) -> None:
            events.extend(batch)

    text = document(partition(queue("a"), permits=["gate"]), events={"sinks": ["recorder"]})
    rm = PermitRM(text, with_plugins(permit_policies=[Gate], event_sinks=[Recorder]))
    rm.node("n1", vcore=4)
    rm.app()
    Gate.answers["*"] = WAIT
    rm.ask(vcore=1)
    rm.schedule()
    assert "NEW_ALLOC" not in [one.detail for one in events]
    Gate.answers.clear()
    rm.after(10)
    Gate.answers["other"] = "never"
    rm.ask(key="other", vcore=1)
    rm.schedule()
    placed = "Placement of request"
    held = "held by permit policy gate: the quota server is busy"
    assert [one.message for one in events if one.reason.startswith("Permit")] == [
        f"{placed} 'ask' on node 'n1' is {held}",
        f"{placed} 'ask' on node 'n1' is permitted after it was {held}",
        f"{placed} 'other' on node 'n1' is taken back: permit policy gate refuses the placement: never",
    ]
    assert len([one for one in events if one.type == "APP" and one.detail == "APP_ALLOC"]) == 1


@pytest.mark.parametrize("answer", [WAIT, "never"])
def test_scheduling_states_say_skipped_and_not_that_nodes_are_lacking(answer: Any) -> None:
    rm = cluster()
    reporter = SchedulingStateReporter(rm.at_work())
    rm.at_work().report_states(reporter)
    Gate.answers["*"] = answer
    rm.app()
    rm.ask(vcore=1)
    rm.schedule()
    rm.after(2)
    states = [(one.state, one.reason) for one in reporter.drain()]
    refused = "permit policy gate refuses the placement: never"
    assert states == ([] if answer is WAIT else [("SKIPPED", refused)])
    Gate.answers.clear()
    rm.node("n2", vcore=1)
    rm.after(10)
    assert [one.state for one in reporter.drain()] == ["SCHEDULED"]


def test_waiting_time_of_a_simulation_ends_with_the_permission(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = {"runtime": "30s", "resources": {"vcore": 1}}
    task["tags"] = {"together": "job", "together-count": "2"}
    apps = [
        {"id": name, "queue": "root.a", "submit": f"{at}s", "tasks": [task]}
        for name, at in (("early", 0), ("late", 20))
    ]
    nodes = [{"name": "n", "resources": {"vcore": 4}}]
    paths = {"--workload": tmp_path / "workload.yaml", "--config": tmp_path / "queues.yaml"}
    paths["--workload"].write_text(json.dumps({"nodes": nodes, "applications": apps}))
    paths["--config"].write_text(configuration(queue("a"), permits=["together"]))
    options = [str(one) for option in paths.items() for one in option]
    assert main(["simulate", *options, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["task_wait"]["max"], report["task_wait"]["mean"]) == (20, 10)
    assert report["times"]["makespan"] == 50
