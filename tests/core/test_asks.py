"""The life of asks and allocations (docs/decisions/archive/0026 to 0029)."""

from __future__ import annotations

import pytest

from tests.core.kit import RM, configuration, document, partition, queue
from yunikorn.errors import StateError
from yunikorn.interface.messages import (
    Allocation,
    AllocationAsk,
    AllocationAskRelease,
    AllocationReleasesRequest,
    NewNodeInfo,
    TerminationType,
)
from yunikorn.resources import Resource


def one_node(vcore: int = 10) -> RM:
    rm = RM()
    rm.node(vcore=vcore)
    rm.app()
    return rm


def ask_state(rm: RM, key: str = "ask") -> str:
    return rm.find_app().asks[key].state


# -- states --------------------------------------------------------------------------------------------------


def test_an_ask_is_pending_until_its_last_allocation() -> None:
    rm = one_node()
    rm.ask(count=3, vcore=1)
    for _ in range(2):
        rm.schedule(1)
        assert ask_state(rm) == "Pending"
    rm.schedule(1)
    assert ask_state(rm) == "Allocated"


def test_each_replica_is_a_separate_allocation_with_the_key_of_the_ask() -> None:
    rm = one_node()
    rm.ask(count=3, vcore=1, tags={"a": "b"}, priority=7)
    rm.schedule()
    made = list(rm.running.values())
    assert {one.allocation_key for one in made} == {"ask"}
    assert len({one.uuid for one in made}) == 3
    assert {one.node_id for one in made} == {"n1"}
    assert {one.queue_name for one in made} == {"root.a"}
    assert {one.partition_name for one in made} == {"default"}
    assert all(one.resource_per_alloc == {"vcore": 1} for one in made)
    assert all(one.allocation_tags == {"a": "b"} and one.priority == 7 for one in made)


@pytest.mark.parametrize(
    ("termination", "state"),
    [
        (TerminationType.STOPPED_BY_RM, "Completed"),
        (TerminationType.TIMEOUT, "Expired"),
        (TerminationType.PREEMPTED_BY_SCHEDULER, "Preempted"),
    ],
)
def test_terminations_of_an_allocation(termination: TerminationType, state: str) -> None:
    rm = one_node()
    rm.ask(vcore=1)
    rm.schedule()
    (allocation,) = rm.find_app().allocations.values()
    assert allocation.state == "Allocated"
    rm.release(uuid=allocation.uuid, termination=termination)
    assert allocation.state == state
    assert rm.find_node().allocated == {}


def test_an_ended_allocation_cannot_end_again() -> None:
    rm = one_node()
    rm.ask(vcore=1)
    rm.schedule()
    (allocation,) = rm.find_app().allocations.values()
    rm.release(uuid=allocation.uuid)
    with pytest.raises(StateError, match=rf"allocation {allocation.uuid} of application app is Completed"):
        allocation.end("timeout")


def test_releases_by_the_rm_are_confirmed_and_its_confirmations_are_not() -> None:
    rm = one_node()
    rm.ask(count=2, vcore=1)
    rm.schedule()
    first, second = rm.running
    rm.take_response()
    rm.release(uuid=first)
    (echo,) = rm.take_response().released_allocations
    assert (echo.uuid, echo.allocation_key, echo.termination_type) == (
        first,
        "ask",
        TerminationType.STOPPED_BY_RM,
    )
    assert echo.message == "allocation remove as per RM request"
    rm.release(uuid=second, termination=TerminationType.TIMEOUT)
    assert rm.take_response().released_allocations == []


# -- updates -------------------------------------------------------------------------------------------------


def test_update_sets_the_pending_replicas_and_keeps_allocations() -> None:
    rm = one_node()
    rm.ask(count=3, vcore=1)
    rm.schedule(2)
    rm.ask(count=5, vcore=1)
    assert rm.find_app().asks["ask"].pending == 5
    assert len(rm.running) == 2
    assert rm.find_queue().pending == {"vcore": 5}
    rm.ask(count=1, vcore=1)
    assert len(rm.schedule()) == 1


def test_an_update_of_an_allocated_ask_makes_it_pending_again() -> None:
    rm = one_node()
    rm.ask(vcore=1)
    rm.schedule()
    rm.ask(count=2, vcore=1)
    assert ask_state(rm) == "Pending"
    assert len(rm.schedule()) == 2
    assert len(rm.running) == 3


def test_an_update_may_change_the_amount() -> None:
    rm = one_node(vcore=4)
    rm.ask(vcore=100)
    assert rm.schedule() == []
    rm.ask(vcore=3)
    assert rm.find_queue().pending == {"vcore": 3}
    assert len(rm.schedule()) == 1
    assert rm.find_node().available == {"vcore": 1}


def test_an_update_may_change_the_priority() -> None:
    rm = one_node(vcore=1)
    rm.ask(key="first", vcore=1)
    rm.ask(key="second", vcore=1)
    rm.ask(key="second", vcore=1, priority=5)
    assert rm.find_app().priority == 5
    assert rm.schedule() == [("app", "second", "n1")]


def test_update_keeps_the_position_among_equal_priorities() -> None:
    rm = one_node(vcore=1)
    for key in ("first", "second"):
        rm.ask(key=key, vcore=1)
        rm.pass_time(1)
    rm.ask(key="first", vcore=1, count=2)
    assert rm.schedule() == [("app", "first", "n1")]


def test_an_update_with_another_amount_long_after_the_first_allocation() -> None:
    """In between, enough other sizes come and go that the class of the ask is forgotten."""
    rm = one_node(vcore=10_000)
    rm.ask(key="old", vcore=1)
    rm.schedule()
    for size in range(2, 700):
        rm.ask(key="brief", vcore=size)
        rm.release_ask(key="brief")
    rm.ask(key="other", vcore=5000)
    rm.ask(key="old", count=2, vcore=1)
    assert sorted(rm.schedule()) == [("app", "old", "n1"), ("app", "old", "n1"), ("app", "other", "n1")]
    assert rm.find_node().available == {"vcore": 10_000 - 5000 - 3}


# -- release of asks -----------------------------------------------------------------------------------------


def test_released_ask_is_no_longer_pending_and_its_allocations_stay() -> None:
    rm = one_node(vcore=1)
    rm.ask(count=3, vcore=1)
    rm.schedule()
    rm.release_ask(key="ask")
    assert rm.find_queue().waiting == 0
    assert rm.find_queue().pending.get("vcore", 0) == 0
    assert len(rm.running) == 1


def test_release_without_key_ends_all_asks_of_the_application() -> None:
    rm = one_node(vcore=1)
    for key in ("one", "two"):
        rm.ask(key=key, vcore=5)
    rm.release_ask()
    assert rm.find_app().asks == {}


def test_release_by_key_alone_searches_the_partition() -> None:
    rm = one_node(vcore=1)
    rm.app("other")
    rm.ask("app", "mine", vcore=5)
    rm.ask("other", "theirs", vcore=5)
    rm.release_ask("", "theirs")
    assert list(rm.find_app("app").asks) == ["mine"]
    assert rm.find_app("other").asks == {}


def test_release_without_application_and_key_is_rejected() -> None:
    rm = one_node()
    rm.ask(vcore=100)
    rm.take_response()
    rm.update(releases=AllocationReleasesRequest([], [AllocationAskRelease()]))
    (refused,) = rm.take_response().rejected_allocations
    assert refused.reason == "an ask release needs an application id or an allocation key"
    assert list(rm.find_app().asks) == ["ask"]


def test_release_of_unknown_ask_is_answered_without_effect() -> None:
    rm = one_node()
    rm.ask(vcore=1)
    rm.schedule()
    rm.take_response()
    rm.release_ask("nobody", "ask")
    rm.release_ask("nobody")
    rm.release_ask("app", "nothing")
    rm.release_ask("", "nothing")
    rm.release("nobody", uuid="nothing")
    rm.release("app", uuid="nothing")
    rm.release("app", key="nothing")
    received = rm.take_response()
    unknown = "is unknown or no longer exists: nothing was released"
    assert [
        (one.application_id, one.allocation_key, one.message) for one in received.released_allocation_asks
    ] == [
        ("nobody", "ask", f"allocation key 'ask' {unknown}"),
        ("nobody", "", f"application 'nobody' {unknown}"),
        ("app", "nothing", f"allocation key 'nothing' {unknown}"),
        ("", "nothing", f"allocation key 'nothing' {unknown}"),
    ]
    assert [one.message for one in received.released_allocations] == [
        f"allocation 'nothing' {unknown}",
        f"allocation 'nothing' {unknown}",
        f"allocation key 'nothing' {unknown}",
    ]
    assert rm.at_work().partition.unknown_releases.releases == 7
    assert len(rm.running) == len(rm.find_app().allocations) == 1


# -- allocations by key --------------------------------------------------------------------------------------


def test_a_release_by_key_ends_its_allocations_and_the_ask() -> None:
    rm = one_node(vcore=2)
    rm.ask(key="one", count=9, vcore=1)
    rm.schedule()
    rm.ask(key="two", vcore=1)
    rm.release(key="one")
    assert rm.running == {}
    assert rm.schedule() == [("app", "two", "n1")]


def test_a_release_without_key_ends_everything_of_the_application() -> None:
    rm = one_node(vcore=2)
    rm.ask(key="one", count=9, vcore=1)
    rm.schedule()
    rm.release()
    assert rm.running == {}
    assert rm.find_app().asks == {}
    assert rm.state() == "Completing"
    rm.pass_time(30)
    assert rm.state() == "Completed"


# -- refusals ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (AllocationAsk("k", "nobody", resource_ask=Resource(vcore=1)), "failed to find application nobody"),
        (AllocationAsk("k", "app", "gone", Resource(vcore=1)), "failed to find partition gone"),
        (AllocationAsk("k", "app"), "ask contains no resources"),
        (AllocationAsk("k", "app", resource_ask=Resource(vcore=0)), "ask contains no resources"),
        (AllocationAsk("k", "app", resource_ask=Resource(vcore=-1)), "ask contains negative resources"),
        (
            AllocationAsk("k", "app", resource_ask=Resource(vcore=1, memory=-1)),
            "ask contains negative resources",
        ),
        (
            AllocationAsk("k", "app", resource_ask=Resource(vcore=1), max_allocations=0),
            "maxAllocations is 0, it must be 1 or more",
        ),
        (
            AllocationAsk("k", "app", resource_ask=Resource(vcore=1), max_allocations=-2),
            "maxAllocations is -2, it must be 1 or more",
        ),
        (AllocationAsk("", "app", resource_ask=Resource(vcore=1)), "an ask needs an allocation key"),
        (
            AllocationAsk("k", "app", resource_ask=Resource(vcore=1), priority=2**31),
            f"priority {2**31} is out of range",
        ),
        (
            AllocationAsk("k", "app", resource_ask=Resource(vcore=1), priority_class_name="nonsense"),
            "unknown priority class 'nonsense'; known: none",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_invalid_ask_is_rejected_with_a_reason_and_others_are_accepted(
    entry: AllocationAsk, reason: str
) -> None:
    rm = one_node()
    rm.take_response()
    good = AllocationAsk("good", "app", resource_ask=Resource(vcore=1))
    rm.update(asks=[entry, good])
    (refused,) = rm.take_response().rejected_allocations
    assert (refused.allocation_key, refused.application_id) == (entry.allocation_key, entry.application_id)
    assert refused.reason == reason
    assert rm.schedule() == [("app", "good", "n1")]


@pytest.mark.parametrize("bad", [Resource(), Resource(vcore=-1)])
def test_invalid_update_leaves_the_ask_unchanged(bad: Resource) -> None:
    rm = one_node(vcore=0)
    rm.ask(count=2, vcore=1)
    rm.update(asks=[AllocationAsk("ask", "app", resource_ask=bad)])
    assert rm.find_app().asks["ask"].pending == 2
    assert rm.find_queue().pending == {"vcore": 2}


def test_ask_for_zero_of_a_type_does_not_need_the_type() -> None:
    """YuniKorn 1.9 passes the headroom check and fails at the increment."""
    rm = RM(configuration(queue("a", resources={"max": {"vcore": "1m"}})))
    rm.node(vcore=4, memory=4)
    rm.app()
    rm.ask(key="one", vcore=1)
    rm.schedule()
    rm.ask(key="two", vcore=0, memory=1, gpu=0)
    assert rm.schedule() == [("app", "two", "n1")]


def test_huge_amounts_are_accepted() -> None:
    rm = one_node()
    rm.ask(vcore=2**63 - 1, count=2**31 - 1)
    rm.ask(key="small", vcore=1)
    assert rm.schedule() == [("app", "small", "n1")]
    rm.release_ask(key="ask")
    assert rm.find_queue().pending.get("vcore", 0) == 0


# -- priority classes ----------------------------------------------------------------------------------------


def with_classes() -> RM:
    rm = RM(document(partition(queue("a")), priorityclasses={"high": 100, "low": -100}))
    rm.node(vcore=10)
    rm.app()
    return rm


def test_priority_class_sets_the_priority() -> None:
    rm = with_classes()
    for name in ("low", "high"):
        ask = AllocationAsk(name, "app", resource_ask=Resource(vcore=1), priority_class_name=name)
        rm.update(asks=[ask])
    rm.ask(key="plain", vcore=1)
    assert [key for _, key, _ in rm.schedule()] == ["high", "plain", "low"]
    assert {one.allocation_key: one.priority for one in rm.running.values()} == {
        "high": 100,
        "plain": 0,
        "low": -100,
    }


def test_a_running_allocation_may_have_a_priority_class_as_well() -> None:
    rm = with_classes()
    one = Allocation("k", "app", "u1", "", Resource(vcore=1), priority_class_name="high")
    other = Allocation("l", "app", "u2", "", Resource(vcore=1), priority_class_name="hihg")
    rm.update(
        new_schedulable_nodes=[
            NewNodeInfo("n2", schedulable_resource=Resource(vcore=2), existing_allocations=[one, other])
        ]
    )
    assert rm.at_work().partition.nodes["n2"].allocations["u1"].priority == 100
    (refused,) = rm.entries("rejected_allocations")
    assert (refused.allocation_key, refused.reason) == (
        "l",
        "unknown priority class 'hihg'; known: high, low",
    )


def test_a_placed_allocation_may_have_a_priority_class_as_well() -> None:
    rm = with_classes()
    asked = Allocation("k", "app", "", "", Resource(vcore=1), priority_class_name="high")
    rm.update(allocations=[asked])
    rm.schedule()
    assert [one.priority for one in rm.running.values()] == [100]


def test_unknown_priority_class_is_rejected_with_the_known_ones() -> None:
    rm = with_classes()
    ask = AllocationAsk("k", "app", resource_ask=Resource(vcore=1), priority_class_name="hihg")
    rm.update(asks=[ask])
    (refused,) = rm.entries("rejected_allocations")
    assert "unknown priority class 'hihg'" in refused.reason
    assert "high, low" in refused.reason


# -- asks without an application -----------------------------------------------------------------------------


def test_ask_without_application_creates_its_own_application() -> None:
    rm = RM(configuration(queue("default"), queue("a")))
    rm.node(vcore=3)
    rm.ask("", "alone", count=2, vcore=1)
    assert rm.schedule() == [("alone", "alone", "n1")] * 2
    assert rm.find_app("alone").queue is rm.find_queue("root.default")
    rm.ask("", "alone", count=1, vcore=1)
    assert rm.schedule() == [("alone", "alone", "n1")]
    rm.release("alone", key="alone")
    rm.pass_time(30)
    assert rm.state("alone") == "Completed"


def test_ask_without_application_is_rejected_once_if_no_queue_accepts_it() -> None:
    rm = RM(configuration(queue("a")))
    rm.ask("", "alone", vcore=1)
    (refused,) = rm.entries("rejected_allocations")
    assert refused.allocation_key == "alone"
    assert refused.reason.startswith(
        "the ask names no application, and no queue accepts an application created for it: "
    )
    assert "there is no queue root.default" in refused.reason
    assert rm.entries("rejected_applications") == [], "the RM has not submitted any"
    assert rm.at_work().partition.applications == {}


def test_ask_without_application_is_rejected_if_user_nobody_may_not_submit() -> None:
    closed = configuration(queue("default")).replace('"submitacl": "*"', '"submitacl": "ann"')
    rm = RM(closed)
    rm.ask("", "alone", vcore=1)
    (refused,) = rm.entries("rejected_allocations")
    assert "user 'nobody' may not submit to root.default" in refused.reason
    assert rm.entries("rejected_applications") == []


def test_an_update_of_an_ask_drops_its_reservation() -> None:
    rm = one_node(vcore=4)
    rm.ask(key="runs", vcore=4)
    rm.schedule()
    rm.ask(vcore=2, tags={"yunikorn.apache.org/requiredNode": "n1"})
    rm.schedule()
    asked = rm.find_app().asks["ask"]
    assert list(rm.find_node().reservations) == [asked]
    before = asked.ask_class
    rm.ask(vcore=1)
    assert asked.ask_class is not before
    assert before.reserving_ask is None, "another of the old kind may have its turn"
    assert not rm.find_node().reservations
    rm.release(key="runs")
    assert rm.schedule() == [("app", "ask", "n1")]


def test_release_by_key_after_updates_and_releases() -> None:
    rm = RM()
    rm.node(vcore=9)
    rm.app()
    rm.ask(key="twins", count=2, vcore=1)
    rm.ask(key="other", vcore=1)
    rm.schedule()
    rm.release(key="other")
    rm.ask(key="twins", count=1, vcore=1)
    rm.ask(key="other", vcore=1)
    rm.schedule()
    first = next(uuid for uuid, one in rm.running.items() if one.allocation_key == "twins")
    rm.release(uuid=first)
    assert sorted(one.allocation_key for one in rm.running.values()) == ["other", "twins", "twins"]
    rm.release(key="twins")
    assert [one.allocation_key for one in rm.running.values()] == ["other"]
    rm.release(key="twins")
    assert [one.allocation_key for one in rm.running.values()] == ["other"]
