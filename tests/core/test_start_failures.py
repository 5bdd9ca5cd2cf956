"""Requests whose tasks the RM could not start wait again (docs/decisions/archive/0120)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.core.book_keepers import Ledger, check_books
from tests.core.gangs import GangRM
from tests.core.kit import RM, configuration, queue, with_plugins
from tests.service.recording.collecting_listener import CollectingListener
from yunikorn.clock import ManualClock
from yunikorn.interface.messages import (
    Allocation,
    AllocationRelease,
    AllocationReleasesRequest,
    EventRecord,
    EventRecordType,
    PreemptionPolicy,
    TerminationType,
)
from yunikorn.resources import Resource
from yunikorn_service.recording.recording_reader import read_recording
from yunikorn_service.recording.recording_scheduler import RecordingScheduler
from yunikorn_service.recording.recording_writer import RecordingWriter
from yunikorn_service.recording.replayer import Replay

FAILED = TerminationType.SCHEDULING_FAILED_ON_RM


def fail(rm: RM, key: str = "", app_id: str = "app", *, uuid: str = "", message: str = "") -> None:
    """Report that an allocation could not be started."""
    gone = AllocationRelease(app_id, uuid, "", FAILED, message, key)
    rm.update(releases=AllocationReleasesRequest([gone]))


def cluster(*nodes: str, config: str = "", kind: type[RM] = RM, **keys: Any) -> Any:
    rm = kind(config or configuration(predicates=["ledger"]), with_plugins(predicates=[Ledger]), **keys)
    for name in nodes or ("n1", "n2", "n3"):
        rm.node(name, vcore=4)
    return rm


def started(rm: RM, vcore: int = 2) -> str:
    """Submit an application with one request, and return the node."""
    rm.app()
    rm.ask(key="k", vcore=vcore)
    [(_, _, node)] = rm.schedule()
    return node


def used(rm: RM) -> tuple[dict[str, int], dict[str, int]]:
    """Return what the queue has allocated and pending."""
    at = rm.find_queue()
    return {k: v for k, v in at.allocated.items() if v}, {k: v for k, v in at.pending.items() if v}


def test_the_request_waits_again_and_runs_elsewhere() -> None:
    rm = cluster()
    node = started(rm)
    [uuid] = rm.running
    fail(rm, "k", message="volume is gone")
    [answer] = rm.responses[-1].released_allocations
    assert (answer.uuid, answer.allocation_key) == (uuid, "k")
    assert (answer.termination_type, answer.message) == (FAILED, "volume is gone")
    assert not rm.running
    assert used(rm) == ({}, {"vcore": 2})
    assert rm.find_node(node).available == {"vcore": 4}
    assert rm.state() == "Starting"
    check_books(rm.at_work())
    [(_, key, other)] = rm.schedule()
    assert (key, other != node) == ("k", True)
    assert used(rm) == ({"vcore": 2}, {})
    check_books(rm.at_work())


def test_the_request_keeps_its_place_in_the_order() -> None:
    rm = cluster("n1", "n2")
    started(rm)
    rm.clock.set(5)
    for number in range(8):
        rm.ask(key=f"later{number}", vcore=2)
    fail(rm, "k")
    assert [key for _, key, _ in rm.schedule(2)] == ["k", "later0"]


def test_a_failure_by_uuid_and_of_one_replica() -> None:
    rm = cluster()
    rm.app()
    rm.ask(key="k", count=3, vcore=1)
    rm.schedule()
    one, two, three = rm.running
    fail(rm, uuid=two)
    assert list(rm.running) == [one, three]
    assert len(rm.schedule()) == 1
    fail(rm, "k")
    assert not rm.running
    assert rm.schedule() == []
    rm.pass_time(20)
    assert len(rm.schedule()) == 3
    check_books(rm.at_work())


def test_a_node_is_avoided_for_a_while_and_used_again() -> None:
    rm = cluster("n1")
    started(rm)
    fail(rm, "k")
    assert rm.schedule() == []
    [reason] = rm.scheduler.explain("rm", "default", "app")["k"].reasons[:1]
    assert reason.detail == "could not be started (once), at last on node n1; avoided for up to 10s: n1"
    rm.pass_time(9.9)
    assert rm.schedule() == []
    rm.pass_time(0.2)
    assert rm.schedule() == [("app", "k", "n1")]
    fail(rm, "k", message="again")
    rm.pass_time(19)
    assert rm.schedule() == []
    rm.pass_time(1.1)
    assert rm.schedule() == [("app", "k", "n1")]


def test_a_request_that_fails_everywhere_pauses_longer_and_longer() -> None:
    rm = cluster(*(f"n{number}" for number in range(30)))
    started(rm)
    now, waits = 0.0, []
    for _ in range(12):
        fail(rm, "k")
        waited = 0.0
        while not rm.schedule():
            rm.pass_time(0.5)
            waited += 0.5
        waits.append(waited)
        now += waited
    assert waits == [0, 1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60]


def test_others_are_placed_during_the_pause() -> None:
    rm = cluster("n1")
    started(rm, vcore=4)
    fail(rm, "k")
    rm.ask(key="other", vcore=4)
    assert [key for _, key, _ in rm.schedule()] == ["other"]


def test_a_request_that_avoids_a_node_reserves_none_of_them() -> None:
    rm = cluster("n1")
    started(rm, vcore=4)
    rm.ask(key="other", vcore=3)
    fail(rm, "k")
    assert [key for _, key, _ in rm.schedule()] == ["other"]
    rm.pass_time(5)
    rm.schedule()
    assert not rm.find_node().reservations
    rm.ask(key="small", vcore=1)
    assert [key for _, key, _ in rm.schedule()] == ["small"]


def test_a_required_node_is_not_avoided_but_the_request_pauses() -> None:
    rm = cluster("n1", "n2")
    rm.app()
    rm.ask(key="k", vcore=1, tags={"yunikorn.apache.org/requiredNode": "n1"})
    assert rm.schedule() == [("app", "k", "n1")]
    fail(rm, "k")
    assert rm.schedule() == []
    rm.pass_time(1)
    assert rm.schedule() == [("app", "k", "n1")]


def test_the_quota_and_the_limits_are_given_back() -> None:
    limits = [{"limit": "one", "users": ["user"], "maxresources": {"vcore": "2m"}}]
    rm = cluster(config=configuration(queue("a", limits=limits)))
    started(rm)
    rm.ask(key="more", vcore=2)
    assert rm.schedule() == []
    fail(rm, "k")
    assert [key for _, key, _ in rm.schedule()] == ["k"]
    rm.release(key="k")
    assert [key for _, key, _ in rm.schedule()] == ["more"]


def test_a_recovered_allocation_waits_with_its_creation_time() -> None:
    rm = cluster("n1")
    rm.clock.set(500 * 10**9)
    rm.app()
    old = Allocation("old", "app", "u1", "n2", Resource(vcore=2), priority=3)
    old.allocation_tags = {"creationTime": "100", "zone": "a"}
    rm.node("n2", existing=[old], vcore=4)
    fail(rm, uuid="u1")
    ask = rm.find_app().asks["old"]
    assert (ask.created, ask.priority, ask.pending) == (100 * 10**9, 3, 1)
    assert dict(ask.tags) == {"creationTime": "100", "zone": "a"}
    assert rm.schedule() == [("app", "old", "n1")]
    check_books(rm.at_work())
    rm.release_ask(key="old")
    rm.release(key="old")
    assert rm.state() == "Completing"


def test_a_resized_allocation_waits_with_its_size() -> None:
    rm = cluster()
    started(rm)
    [one] = rm.running.values()
    rm.update(allocations=[Allocation("k", "app", one.uuid, one.node_id, Resource(vcore=3))])
    fail(rm, "k")
    assert used(rm) == ({}, {"vcore": 3})
    rm.schedule()
    assert used(rm) == ({"vcore": 3}, {})


def test_an_allocation_whose_request_was_withdrawn_waits_again() -> None:
    rm = cluster()
    started(rm)
    rm.release_ask(key="k")
    fail(rm, "k")
    assert rm.find_app().asks["k"].pending == 1
    assert len(rm.schedule()) == 1


def test_a_failing_application_gets_no_request_back() -> None:
    rm = cluster()
    started(rm)
    [uuid] = rm.running
    rm.scheduler.fail_application("rm", "default", "app", "because")
    rm.responses.clear()
    fail(rm, uuid=uuid)
    assert not rm.find_app().asks
    assert rm.state() == "Failed"


def test_unknown_allocations_are_answered() -> None:
    rm = cluster()
    started(rm)
    fail(rm, "nothing")
    fail(rm, uuid="nothing#1")
    fail(rm, "k", app_id="nobody")
    assert len(rm.running) == 1
    assert [one.termination_type.name for one in rm.entries("released_allocations")] == ["STOPPED_BY_RM"] * 3


def test_a_victim_that_could_not_be_started_ends() -> None:
    config = configuration(
        queue("a", resources={"guaranteed": {"vcore": "4m"}}, properties={"preemption.delay": "1s"}),
        queue("b"),
    )
    rm = cluster("n1", config=config)
    rm.app("victim", "root.b")
    rm.ask("victim", "v", count=4, vcore=1)
    rm.schedule()
    rm.app()
    rm.ask(key="k", vcore=1, policy=PreemptionPolicy())
    rm.schedule()
    rm.pass_time(20)
    rm.schedule()
    [uuid] = rm.evicted
    fail(rm, app_id="victim", uuid=uuid)
    assert "v" in rm.find_app("victim").asks
    assert rm.find_app("victim").asks["v"].pending == 0
    assert [key for _, key, _ in rm.schedule()] == ["k"]


def test_events_and_decisions_name_the_failure() -> None:
    class Listening(RM):
        def send_events(self, events: Sequence[EventRecord]) -> None:
            seen.extend(events)

    seen: list[EventRecord] = []
    rm = cluster(kind=Listening)
    node = started(rm)
    seen.clear()
    fail(rm, "k", message="no such volume")
    [found] = [one for one in seen if one.reason == "SchedulingFailedOnRM"]
    assert (found.type, found.object_id, found.group_id) == (EventRecordType.REQUEST, "k", "app")
    assert f"could not be started (once), at last on node {node}: no such volume" in found.message
    ended = [one for one in seen if one.type == EventRecordType.APP and "no such volume" in one.message]
    assert len(ended) == 1


# -- gangs ------------------------------------------------------------------------------------------------


def gang(*nodes: str, style: str = "Soft", seconds: float = 60, count: int = 2) -> Any:
    rm = cluster(*(nodes or ("n1", "n2", "n3")), kind=GangRM)
    rm.gang("app", style, vcore=count, seconds=seconds)
    for number in range(count):
        rm.task("app", f"p{number}", "g", placeholder=True, vcore=1)
    return rm


def test_a_placeholder_waits_again() -> None:
    rm = gang()
    rm.schedule(1)
    assert rm.state() == "Accepted"
    fail(rm, "p0")
    assert rm.counts("app", "g") == (2, 0, 0)
    check_books(rm.at_work())
    assert {key for _, key, _ in rm.schedule()} == {"p0", "p1"}
    assert rm.state() == "Starting"
    check_books(rm.at_work())


def test_a_placeholder_that_fails_again_and_again_does_not_prolong_the_gang() -> None:
    rm = gang("n1", seconds=15)
    rm.schedule()
    fail(rm, "p0")
    fail(rm, "p1")
    rm.pass_time(11)
    assert len(rm.schedule()) == 2
    rm.pass_time(4.1)
    assert {key for key, kind in rm.reported() if kind == "TIMEOUT"} == {"p0", "p1"}


def test_a_real_task_takes_another_placeholder_or_any_room() -> None:
    rm = gang(count=2)
    rm.schedule()
    rm.task("app", "real", "g", vcore=1)
    rm.schedule()
    [(_, key, node)] = rm.confirmed()
    assert key == "real"
    fail(rm, "real")
    check_books(rm.at_work())
    # The other placeholder is on another node, or gives its place up for a node with room.
    rm.schedule()
    [(_, key, other)] = rm.confirmed()
    assert (key, other != node) == ("real", True)
    assert rm.counts("app", "g") == (2, 2, 0)
    fail(rm, "real")
    rm.pass_time(1)
    [(_, key, third)] = rm.schedule()
    assert key == "real"
    assert third not in (node, other)
    check_books(rm.at_work())


def test_a_placeholder_that_is_being_replaced_ends() -> None:
    rm = gang(count=1)
    rm.schedule()
    rm.task("app", "real", "g", vcore=1)
    rm.schedule()
    [uuid] = rm.evicted
    rm.take_response()
    fail(rm, uuid=uuid)
    rm.evicted.clear()
    rm.running.pop(uuid, None)
    assert [one.allocation_key for one in rm.take_response().new_allocations] == ["real"]
    assert rm.counts("app", "g") == (1, 1, 0)
    check_books(rm.at_work())


@pytest.mark.parametrize("key", ["m0", "m1"])
def test_a_member_of_an_atomic_gang_waits_alone(key: str) -> None:
    rm = cluster(kind=GangRM)
    rm.gang("app", "Atomic", vcore=2)
    for number in range(2):
        rm.task("app", f"m{number}", "g", vcore=1)
    assert len(rm.schedule()) == 2
    fail(rm, key)
    assert [name for _, name, _ in rm.schedule()] == [key]
    check_books(rm.at_work())


# -- recordings -------------------------------------------------------------------------------------------


def test_a_recording_repeats_failures_and_foreign_tasks(tmp_path: Path) -> None:
    file, registry = tmp_path / "run.jsonl", with_plugins(predicates=[Ledger])
    scheduler = RecordingScheduler(RecordingWriter(file, print), registry, ManualClock(10**18))
    rm = RM(configuration(predicates=["ledger"]), scheduler=scheduler)
    for name in ("n1", "n2"):
        rm.node(name, vcore=4)
    foreign = Allocation(
        "pod", "", "", "n1", Resource(vcore=1), allocation_tags={"foreign": "default", "a": "b"}
    )
    rm.update(allocations=[foreign])
    started(rm)
    for _ in range(4):
        fail(rm, "k", message="no volume")
        rm.schedule()
        rm.pass_time(15)
        rm.schedule()
    listener = CollectingListener()
    replay = Replay(read_recording(file).lines, registry, listener)
    replay.run()
    assert str(replay.comparison.first or "") == ""
    assert listener.of("rm") == rm.responses
    assert [one.termination_type for one in rm.entries("released_allocations")] == [FAILED] * 4
