"""The end of gangs with placeholders: completed, timed out, or after a failure."""

from __future__ import annotations

import attrs
import pytest

from tests.core.gangs import GangRM, picky, ready
from tests.core.kit import configuration, queue
from yunikorn.interface.messages import Allocation, NodeAction, TerminationType
from yunikorn.resources import Resource

MINUTE = 60


# -- timeouts ---------------------------------------------------------------------------------------------


def half(style: str, seconds: float = MINUTE, tags: dict[str, str] | None = None) -> GangRM:
    """Return an RM with two of three placeholders placed, and a pending ask without a task group."""
    rm = GangRM()
    rm.node("n1", vcore=5)
    rm.gang("app", style, seconds=seconds, tags=tags, vcore=6)
    rm.task("app", "ph", "workers", 3, placeholder=True, vcore=2)
    assert len(rm.schedule()) == 2
    rm.task("app", "big", "", vcore=4)
    assert rm.schedule() == []
    rm.take_response()
    return rm


def test_incomplete_soft_gang_releases_its_placeholders_and_continues_without() -> None:
    rm = half("Soft")
    rm.pass_time(MINUTE - 1)
    assert rm.state() == "Accepted"
    rm.pass_time(1)
    assert rm.state() == "Resuming"
    received = rm.take_response()
    assert [one.allocation_key for one in received.released_allocations] == ["ph", "ph"]
    assert [(one.allocation_key, one.message) for one in received.released_allocation_asks] == [
        ("ph", "releasing pending placeholders on placeholder timeout")
    ]
    assert received.updated_applications[0].message == "ResourceReservationTimeout"
    # Capacity is free when the RM confirms; then real tasks run as in any application.
    assert rm.schedule() == []
    assert rm.confirmed() == []
    assert rm.state() == "Accepted"
    assert rm.find_queue().running == 0
    assert rm.counts("app", "workers") == (3, 0, 3)
    assert rm.schedule() == [("app", "big", "n1")]
    assert rm.state() == "Starting"


@pytest.mark.parametrize(
    ("style", "state"),
    [("hard", "Failing"), ("HARD", "Failing"), ("soft", "Resuming"), ("sOFt", "Resuming"), ("", "Resuming")],
)
def test_gang_style_ignores_case(style: str, state: str) -> None:
    rm = half(style)
    rm.pass_time(MINUTE)
    assert rm.state() == state


def test_unknown_style_is_soft_and_reported_in_the_response() -> None:
    rm = GangRM()
    rm.gang("app", "rigid", seconds=MINUTE, vcore=6)
    received = rm.take_response()
    assert [one.application_id for one in received.accepted_applications] == ["app"]
    message = "unknown gang scheduling style 'rigid', Soft is used instead; known: Soft, Hard, Atomic"
    assert [(one.application_id, one.state, one.message) for one in received.updated_applications] == [
        ("app", "New", message)
    ]
    rm.gang("other", "Soft", vcore=6)
    rm.gang("third", vcore=6)
    assert rm.take_response().updated_applications == []
    rm.node("n1", vcore=4)
    rm.task("app", "ph", "workers", 3, placeholder=True, vcore=2)
    assert len(rm.schedule()) == 2
    rm.pass_time(MINUTE)
    assert rm.state() == "Resuming"


def test_style_applies_to_a_gang_without_announced_size() -> None:
    rm = GangRM()
    rm.node("n1", vcore=3)
    rm.gang("app", "hard")
    rm.task("app", "ph", "workers", 2, placeholder=True, vcore=2)
    assert len(rm.schedule()) == 1
    rm.pass_time(15 * MINUTE)
    assert rm.state() == "Failing"


def test_real_tasks_of_a_soft_gang_survive_its_timeout() -> None:
    rm = GangRM()
    rm.node("n1", vcore=3)
    rm.gang("app", "Soft", seconds=MINUTE, vcore=4)
    rm.task("app", "small", "workers", placeholder=True, vcore=1)
    rm.task("app", "large", "others", placeholder=True, vcore=3)
    rm.task("app", "t", "others", vcore=3)
    assert rm.schedule() == [("app", "small", "n1")]
    rm.pass_time(MINUTE)
    assert rm.schedule() == []
    rm.confirmed()
    assert rm.schedule() == [("app", "t", "n1")]
    assert rm.state() == "Starting"


def test_soft_gang_without_real_tasks_waits_for_them_after_its_timeout() -> None:
    rm = GangRM(configuration(queue("a", maxapplications=1), queue("b")))
    rm.node("n1", vcore=3)
    rm.gang("app", "Soft", seconds=MINUTE, vcore=4)
    rm.task("app", "ph", "workers", 2, placeholder=True, vcore=2)
    rm.schedule()
    rm.pass_time(MINUTE)
    rm.confirmed()
    assert rm.state() == "Accepted"
    assert rm.find_queue().running == 0
    # Late real tasks are placed as well, and the application ends like any other.
    rm.pass_time(4 * 24 * 60 * MINUTE)
    assert rm.state() == "Accepted"
    rm.task("app", "t", "workers", vcore=2)
    assert rm.take_response().rejected_allocations == []
    assert rm.schedule() == [("app", "t", "n1")]
    assert rm.state() == "Starting"
    rm.release("app", key="t")
    assert rm.state() == "Completing"


@pytest.mark.parametrize("priorities", ["enabled", "disabled"])
def test_gang_waiting_for_its_tasks_blocks_no_other_application(
    priorities: str,
) -> None:
    policy = {"application.sort.policy": "stateaware", "application.sort.priority": priorities}
    rm = GangRM(configuration(queue("a", properties=policy)))
    rm.node("n1", vcore=3)
    rm.gang("app", "Soft", seconds=MINUTE, vcore=4)
    rm.task("app", "ph", "workers", 2, placeholder=True, vcore=2)
    rm.schedule()
    rm.app("next")
    rm.ask("next", "t", vcore=3)
    rm.pass_time(MINUTE)
    rm.confirmed()
    assert rm.state() == "Accepted"
    assert rm.schedule() == [("next", "t", "n1")]
    # Tasks of the gang wait for their position again.
    rm.task("app", "t", "workers", vcore=1)
    rm.node("n2", vcore=1)
    assert rm.schedule() == []
    rm.pass_time(5 * MINUTE)
    assert rm.schedule() == [("app", "t", "n2")]


def test_complete_soft_gang_without_tasks_completes_like_an_idle_application() -> None:
    rm = ready(3, "Soft", seconds=MINUTE)
    rm.pass_time(MINUTE)
    assert rm.reported() == [("ph", "TIMEOUT")] * 3
    assert rm.state() == "Starting"
    rm.confirmed()
    assert rm.state() == "Completing"
    rm.task("app", "t", "workers", vcore=2)
    assert [key for _, key, _ in rm.schedule()] == ["t"]
    assert rm.state() == "Running"


@pytest.mark.parametrize("minutes", [1, 6])
def test_complete_hard_gang_without_tasks_fails(minutes: int) -> None:
    rm = ready(3, "Hard", seconds=minutes * MINUTE)
    assert rm.state() == "Starting"
    rm.task("app", "large", "", vcore=11)
    assert rm.schedule() == []
    rm.pass_time(minutes * MINUTE - 1)
    assert rm.state() == ("Starting" if minutes == 1 else "Running")
    assert rm.evicted == {}
    rm.take_response()
    rm.pass_time(1)
    assert rm.state() == "Failing"
    received = rm.take_response()
    assert received.updated_applications[0].message == "ResourceReservationTimeout"
    assert [one.allocation_key for one in received.released_allocations] == ["ph"] * 3
    assert [one.allocation_key for one in received.released_allocation_asks] == ["large"]
    rm.confirm()
    assert rm.state() == "Failed"
    assert rm.find_app().reason == "ResourceReservationTimeout"
    assert rm.used() == {}


def test_hard_gang_survives_its_timeout_with_a_task_replacing_a_placeholder() -> None:
    rm = ready(3, "Hard", seconds=MINUTE)
    rm.task("app", "t", "workers", vcore=2)
    rm.schedule()
    rm.take_response()
    rm.pass_time(MINUTE)
    assert rm.reported() == [("ph", "TIMEOUT")] * 2
    assert [key for _, key, _ in rm.confirmed()] == ["t"]
    assert rm.state() == "Starting"
    assert rm.used() == {"vcore": 2}


def test_hard_gang_with_ended_tasks_continues_with_pending_ones() -> None:
    rm = ready(3, "Hard", seconds=MINUTE)
    rm.task("app", "t", "workers", vcore=2)
    rm.schedule()
    rm.confirmed()
    rm.task("app", "large", "", vcore=11)
    rm.release("app", key="t")
    rm.take_response()
    rm.pass_time(MINUTE)
    assert rm.reported() == [("ph", "TIMEOUT")] * 2
    rm.confirmed()
    assert rm.state() == "Starting"
    rm.node("n3", vcore=11)
    assert rm.schedule() == [("app", "large", "n3")]


@pytest.mark.parametrize("style", ["Soft", "Hard"])
def test_incomplete_gang_stays_accepted_with_its_first_real_task(style: str) -> None:
    rm = half(style)
    rm.task("app", "t", "workers", vcore=2)
    rm.schedule()
    rm.confirmed()
    assert rm.state() == "Accepted"
    assert rm.find_queue().running == 1
    assert rm.used() == {"vcore": 4}
    rm.task("app", "next", "workers", vcore=2)
    rm.schedule()
    rm.confirmed()
    assert rm.state() == "Starting"


@pytest.mark.parametrize("style", ["Soft", "Hard"])
def test_incomplete_gang_continues_with_its_first_real_task_after_its_timeout(style: str) -> None:
    rm = half(style)
    rm.task("app", "t", "workers", vcore=2)
    rm.schedule()
    rm.confirmed()
    rm.take_response()
    rm.pass_time(MINUTE)
    received = rm.take_response()
    assert [(one.allocation_key, one.termination_type.name) for one in received.released_allocations] == [
        ("ph", "TIMEOUT")
    ]
    assert [one.allocation_key for one in received.released_allocation_asks] == ["ph"]
    assert rm.state() == "Starting"
    rm.confirmed()
    assert rm.used() == {"vcore": 2}
    rm.node("n2", vcore=4)
    assert rm.schedule() == [("app", "big", "n2")]


def test_incomplete_hard_gang_fails_at_its_timeout() -> None:
    rm = half("Hard")
    rm.pass_time(MINUTE)
    assert rm.state() == "Failing"
    received = rm.take_response()
    assert sorted(one.allocation_key for one in received.released_allocation_asks) == ["big", "ph"]
    rm.ask("app", "more", vcore=1)
    assert (
        rm.take_response().rejected_allocations[0].reason
        == "application app is failing and accepts no new requests"
    )
    rm.confirm(next(iter(rm.evicted)))
    assert rm.state() == "Failing"
    rm.confirm()
    assert rm.state() == "Failed"
    assert rm.find_app().reason == "ResourceReservationTimeout"
    assert rm.used() == {}
    assert rm.find_queue().running == 0


def test_default_gang_timeout_is_fifteen_minutes() -> None:
    rm = half("Soft", seconds=0)
    rm.pass_time(15 * MINUTE - 1)
    assert rm.state() == "Accepted"
    rm.pass_time(1)
    assert rm.state() == "Resuming"


def test_a_gang_that_was_created_before_a_restart_keeps_its_deadline() -> None:
    rm = GangRM()
    rm.pass_time(100)
    rm.node("n1", vcore=5)
    for app_id, created in (("old", "70"), ("overdue", "1"), ("unclear", "soon")):
        rm.gang(app_id, seconds=MINUTE, tags={"yunikorn.apache.org/creationTime": created}, vcore=6)
        rm.task(app_id, "ph", "workers", 6, placeholder=True, vcore=1)
    rm.schedule(1)
    rm.find_app("overdue")
    rm.pass_time(29)
    assert rm.state("old") == "Accepted"
    rm.pass_time(1)
    assert rm.state("old") == "Resuming"
    rm.confirmed()
    rm.remove_app("old")
    rm.schedule()
    rm.pass_time(0.001)
    assert rm.state("overdue") == "Resuming"


def test_unused_placeholders_are_released_at_the_timeout() -> None:
    rm = ready(3, seconds=MINUTE)
    rm.task("app", "t", "workers", vcore=2)
    rm.schedule()
    rm.confirmed()
    rm.pass_time(MINUTE)
    assert rm.reported() == [("ph", "TIMEOUT")] * 2
    assert rm.state() == "Starting"
    rm.confirmed()
    assert rm.counts("app", "workers") == (3, 1, 2)
    assert rm.used() == {"vcore": 2}
    rm.task("app", "more", "workers", vcore=2)
    assert [key for _, key, _ in rm.schedule()] == ["more"]


def test_application_completes_with_its_last_real_task_and_releases_placeholders() -> None:
    rm = ready(3)
    rm.task("app", "t", "workers", vcore=2)
    rm.schedule()
    rm.confirmed()
    rm.release("app", key="t")
    assert rm.state() == "Completing"
    rm.take_response()
    rm.pass_time(30)
    assert rm.reported() == [("ph", "TIMEOUT")] * 2
    assert rm.state() == "Completing"
    rm.confirm()
    assert rm.state() == "Completed"
    assert rm.scheduler.next_timer() is not None


# -- failures ---------------------------------------------------------------------------------------------


def test_removal_of_the_node_of_placeholder_and_task_makes_the_task_pending() -> None:
    rm = ready(1)
    rm.task("app", "t", "workers", vcore=2)
    rm.schedule()
    rm.take_response()
    rm.change_node("n1", NodeAction.DECOMMISSION)
    assert rm.reported() == [("ph", "STOPPED_BY_RM")]
    assert rm.counts("app", "workers") == (1, 0, 1)
    assert rm.schedule() == [("app", "t", "n2")]
    assert rm.used() == {"vcore": 2}


def test_removal_of_the_placeholders_node_commits_a_task_on_another_node() -> None:
    rm = picky()
    rm.task("app", "t", "workers", vcore=2, tags={"not": "n1"})
    rm.schedule()
    rm.take_response()
    rm.change_node("n1", NodeAction.DECOMMISSION)
    received = rm.take_response()
    assert [one.termination_type.name for one in received.released_allocations] == ["STOPPED_BY_RM"] * 2
    assert [(one.allocation_key, one.node_id) for one in received.new_allocations] == [("t", "n2")]
    assert rm.used() == {"vcore": 2}
    assert rm.counts("app", "workers") == (2, 1, 1)


def test_removal_of_the_tasks_node_before_its_placeholder_makes_the_task_pending() -> None:
    rm = picky()
    rm.task("app", "t", "workers", vcore=2, tags={"not": "n1"})
    rm.schedule()
    rm.take_response()
    rm.change_node("n2", NodeAction.DECOMMISSION)
    assert rm.reported() == []
    assert rm.find_app().pending == {"vcore": 2}
    # The placeholder is being released already, so no task replaces it.
    assert rm.confirmed() == []
    assert rm.counts("app", "workers") == (2, 0, 1)
    rm.node("n3", vcore=2)
    rm.schedule()
    assert rm.confirmed() == [("app", "t", "n3")]


def test_application_can_be_removed_during_replacement() -> None:
    rm = picky()
    rm.task("app", "t", "workers", vcore=2, tags={"not": "n1"})
    rm.schedule()
    rm.remove_app("app")
    assert rm.find_node("n1").available == {"vcore": 4}
    assert rm.find_node("n2").available == {"vcore": 2}
    assert rm.used() == {}
    assert rm.find_queue().running == 0


def test_placeholders_released_by_the_rm_are_counted_and_tasks_run_without_them() -> None:
    rm = ready(2)
    for uuid in list(rm.running):
        rm.release("app", uuid)
    assert rm.counts("app", "workers") == (2, 0, 2)
    rm.task("app", "t", "workers", 2, vcore=2)
    assert len(rm.schedule()) == 2


def test_released_placeholder_asks_are_not_awaited() -> None:
    rm = GangRM()
    rm.gang("app", vcore=4)
    rm.task("app", "ph", "workers", 2, placeholder=True, vcore=2)
    rm.task("app", "t", "workers", vcore=2)
    rm.node("n1", vcore=1)
    assert rm.schedule() == []
    rm.release_ask("app", "ph")
    rm.node("n2", vcore=2)
    assert rm.schedule() == [("app", "t", "n2")]


def test_a_gang_is_recovered_with_its_placeholders() -> None:
    rm = GangRM()
    rm.gang("app", "Hard", seconds=MINUTE, vcore=4)
    existing = [
        Allocation(
            f"p{number}",
            "app",
            f"u{number}",
            f"n{number}",
            Resource(vcore=2),
            task_group_name="workers",
            placeholder=True,
        )
        for number in (1, 2)
    ]
    rm.running = {one.uuid: one for one in existing}
    rm.node("n1", existing=existing[:1], vcore=10)
    assert rm.state() == "Accepted"
    assert rm.find_queue().running == 1
    rm.node("n2", existing=existing[1:], vcore=10)
    assert rm.state() == "Running"
    assert rm.counts("app", "workers") == (2, 0, 0)
    rm.task("app", "t", "workers", vcore=2)
    assert rm.schedule() == []
    assert rm.confirmed() == [("app", "t", "n1")]


@pytest.mark.parametrize("driver_first", [False, True])
def test_a_recovered_gang_with_a_real_task_is_running(driver_first: bool) -> None:
    rm = GangRM()
    rm.gang("app", vcore=2)
    driver = Allocation("driver", "app", "u1", "n1", Resource(vcore=1), originator=True)
    worker = attrs.evolve(
        driver, allocation_key="ph", uuid="u2", originator=False, task_group_name="workers", placeholder=True
    )
    rm.node("n1", existing=[driver, worker] if driver_first else [worker, driver], vcore=10)
    assert rm.state() == "Running"


def test_a_recovered_gang_without_all_its_placeholders_is_still_accepted() -> None:
    rm = GangRM()
    rm.gang("app", vcore=2)
    one = Allocation("ph", "app", "u1", "n1", Resource(vcore=1), task_group_name="workers", placeholder=True)
    rm.node("n1", existing=[one], vcore=10)
    assert rm.state() == "Accepted"


@pytest.mark.parametrize("style", ["Soft", "Atomic"])
def test_a_gang_of_which_one_task_is_left_is_running_after_a_restart(style: str) -> None:
    rm = GangRM()
    rm.gang("app", style, vcore=2)
    left = Allocation("t", "app", "u1", "n1", Resource(vcore=1), task_group_name="workers")
    rm.node("n1", existing=[left], vcore=10)
    assert rm.state() == "Running"


def test_reload_keeps_gangs() -> None:
    rm = ready(2)
    rm.task("app", "t", "workers", 3, vcore=2)
    rm.schedule(1)
    rm.reload(configuration(queue("a", resources={"max": {"vcore": "3m"}}), queue("b")))
    # Placed placeholders are replaced despite the lower quota; the third task has to wait.
    rm.schedule()
    assert [key for _, key, _ in rm.confirmed()] == ["t", "t"]
    assert rm.schedule() == []
    rm.reload(configuration(queue("a"), queue("b")))
    assert rm.schedule() == [("app", "t", "n1")]


def test_invalid_creation_time_is_ignored() -> None:
    rm = GangRM()
    rm.node("n1", vcore=5)
    rm.gang("app", seconds=MINUTE, tags={"yunikorn.apache.org/creationTime": "9" * 5000}, vcore=6)
    rm.task("app", "ph", "workers", 6, placeholder=True, vcore=1)
    rm.schedule()
    rm.pass_time(59)
    assert rm.state("app") == "Accepted"
    rm.pass_time(1)
    assert rm.state("app") == "Resuming"


@pytest.mark.parametrize("style", ["Soft", "Hard"])
def test_placeholders_time_out_beside_a_running_driver(style: str) -> None:
    rm = GangRM()
    rm.node("n1", vcore=4)
    rm.gang("app", style, seconds=MINUTE, vcore=4)
    rm.ask("app", "driver", vcore=1)
    rm.task("app", "ph", "workers", 4, placeholder=True, vcore=1)
    assert len(rm.schedule()) == 4
    assert rm.state() == "Starting"
    rm.pass_time(59)
    assert not rm.evicted
    rm.pass_time(1)
    # Running tasks belong to no gang any more: the application continues without the rest of the
    # placeholders.
    assert len(rm.evicted) == 3
    assert rm.state() == "Starting"
    rm.confirm()
    rm.task("app", "task", "workers", 2, vcore=1)
    assert [key for _, key, _ in rm.schedule()] == ["task", "task"]


def test_tasks_of_a_failed_hard_gang_are_not_reported_as_timed_out() -> None:
    rm = half("Hard")
    rm.pass_time(MINUTE)
    reported = {one.allocation_key: one for one in rm.take_response().released_allocation_asks}
    assert reported["ph"].termination_type == TerminationType.TIMEOUT
    assert reported["big"].termination_type == TerminationType.STOPPED_BY_RM
    assert reported["big"].message == "application app failed: ResourceReservationTimeout"
