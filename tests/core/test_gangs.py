"""Gangs with placeholders: room is gathered first, then real tasks take it over."""

from __future__ import annotations

import pytest

from tests.core.ear import Ear
from tests.core.gangs import GangRM
from tests.core.kit import configuration, document, partition, queue, with_plugins
from yunikorn import api
from yunikorn.interface.messages import Allocation, NodeAction, TerminationType
from yunikorn.resources import Resource

MINUTE = 60


def ready(count: int = 3, style: str = "", *, nodes: int = 2, seconds: float = 0) -> GangRM:
    """Two nodes of 10; a gang of `count` placeholders of 2, all of them placed."""
    rm = GangRM(configuration(queue("a"), queue("b")))
    for number in range(nodes):
        rm.node(f"n{number + 1}", vcore=10)
    rm.gang("app", style, seconds=seconds, vcore=2 * count)
    rm.task("app", "ph", "workers", count, placeholder=True, vcore=2)
    assert len(rm.schedule()) == count
    rm.heard()
    return rm


# -- gathering ---------------------------------------------------------------------------------------------


def test_an_application_starts_when_all_its_placeholders_have_their_place() -> None:
    rm = GangRM(configuration(queue("a")))
    rm.node("n1", vcore=10)
    rm.gang("app", vcore=6)
    assert rm.state() == "New"
    rm.task("app", "p1", "workers", 2, placeholder=True, vcore=2)
    assert rm.state() == "Accepted"
    assert rm.schedule() == [("app", "p1", "n1")] * 2
    assert rm.state() == "Accepted"
    placed = rm.heard().new_allocations[0]
    assert (placed.placeholder, placed.task_group_name) == (True, "workers")
    rm.task("app", "p2", "driver", placeholder=True, vcore=2)
    assert rm.schedule() == [("app", "p2", "n1")]
    assert rm.state() == "Starting"
    assert rm.used() == {"vcore": 6}
    assert rm.counts("app", "workers") == (2, 0, 0)
    assert rm.counts("app", "driver") == (1, 0, 0)


def test_a_placeholder_without_a_task_group_is_a_task_like_any_other() -> None:
    rm = GangRM()
    rm.node("n1", vcore=10)
    rm.app()
    rm.task("app", "t", "", placeholder=True, vcore=1)
    assert rm.schedule() == [("app", "t", "n1")]
    assert rm.state() == "Starting"
    assert not rm.heard().new_allocations[0].placeholder


def test_a_gang_that_did_not_announce_its_size_starts_when_none_of_its_placeholders_waits() -> None:
    rm = GangRM()
    rm.node("n1", vcore=3)
    rm.app()
    rm.task("app", "ph", "workers", 2, placeholder=True, vcore=2)
    assert rm.schedule() == [("app", "ph", "n1")]
    assert rm.state() == "Accepted"
    rm.node("n2", vcore=3)
    assert rm.schedule() == [("app", "ph", "n2")]
    assert rm.state() == "Starting"


@pytest.mark.parametrize("policy", ["fifo", "stateaware", "fair"])
def test_placeholders_need_a_policy_that_lets_one_gang_gather_before_the_next(policy: str) -> None:
    rm = GangRM(configuration(queue("a", properties={"application.sort.policy": policy})))
    rm.gang("app", vcore=6)
    refused = [one.reason for one in rm.heard().rejected_applications]
    if policy == "fair":
        assert refused == [
            "queue root.a cannot run application app with task group request: unsupported sort type 'fair', "
            "placeholders need one of fifo, stateaware"
        ]
    else:
        assert refused == []


def test_a_gang_larger_than_what_its_queues_may_ever_have_is_refused_with_the_numbers() -> None:
    rm = GangRM(
        configuration(
            queue("p", queue("a", resources={"max": {"vcore": "8"}}), resources={"max": {"memory": "100"}})
        )
    )
    rm.gang("fits", queue_name="root.p.a", vcore=8000, memory=100, gpu=4)
    rm.gang("large", queue_name="root.p.a", vcore=8001)
    rm.gang("wide", queue_name="root.p.a", vcore=1, memory=101)
    heard = rm.heard()
    assert [one.application_id for one in heard.accepted_applications] == ["fits"]
    assert [one.reason for one in heard.rejected_applications] == [
        f"queue root.p.a cannot run application {app}: task group request {amount} larger than max queue "
        "allocation memory 100, vcore 8000"
        for app, amount in (("large", "vcore 8001"), ("wide", "memory 101, vcore 1"))
    ]


def test_a_gang_larger_than_the_cluster_is_told_so_at_once_and_runs_when_the_cluster_has_grown() -> None:
    ear = Ear()
    rm = ear.rm(partition(queue("a")))
    told = GangRM(scheduler=rm.scheduler, config=ear.text(partition(queue("a"))), rm_id="gangs")
    told.node("n1", vcore=4)
    told.gang("app", vcore=6)
    assert ear.messages("app")[-1] == (
        "the gang takes vcore 6, and all nodes together have vcore 4: it cannot run until more join"
    )
    told.task("app", "ph", "workers", 3, placeholder=True, vcore=2)
    assert len(told.schedule()) == 2
    told.node("n2", vcore=4)
    assert len(told.schedule()) == 1
    assert told.state() == "Starting"


def test_a_half_placed_gang_counts_as_a_running_application() -> None:
    rm = GangRM(configuration(queue("a", maxapplications=1), queue("b")))
    rm.node("n1", vcore=3)
    rm.gang("gang", vcore=4)
    rm.task("gang", "ph", "workers", 2, placeholder=True, vcore=2)
    assert rm.schedule() == [("gang", "ph", "n1")]
    assert rm.state("gang") == "Accepted"
    assert rm.find_queue().running == 1
    rm.app("other")
    rm.ask("other", vcore=1)
    assert rm.schedule() == []
    # The gang itself goes on, and when it gives up what it has, the other may run.
    rm.remove_app("gang")
    assert rm.find_queue().running == 0
    assert rm.schedule() == [("other", "ask", "n1")]


# -- taking over -------------------------------------------------------------------------------------------


def test_real_tasks_take_the_places_of_placeholders_in_two_steps() -> None:
    rm = ready(2)
    where = {one.uuid: one.node_id for one in rm.running.values()}
    rm.task("app", "t", "workers", 2, vcore=2)
    assert rm.schedule() == []
    assert rm.told() == [("ph", "PLACEHOLDER_REPLACED")] * 2
    # Until the placeholders are confirmed to be gone they are what counts.
    assert rm.used() == {"vcore": 4}
    assert rm.find_app().pending == {"vcore": 0}
    assert rm.counts("app", "workers") == (2, 0, 0)
    assert rm.confirmed() == [("app", "t", node) for node in where.values()]
    assert rm.counts("app", "workers") == (2, 2, 0)
    assert rm.used() == {"vcore": 4}
    assert all(one.task_group_name == "workers" and not one.placeholder for one in rm.running.values())
    # All placeholders let it start, and its first real task goes without; the second lets it run.
    assert rm.state() == "Running"


def test_the_first_real_task_in_a_placeholders_place_leaves_the_application_starting() -> None:
    rm = ready(2)
    rm.task("app", "t", "workers", vcore=2)
    rm.schedule()
    rm.confirmed()
    assert rm.state() == "Starting"


def test_real_tasks_wait_for_their_placeholders_even_where_there_is_room() -> None:
    rm = GangRM()
    rm.gang("app", vcore=4)
    rm.task("app", "ph", "workers", 2, placeholder=True, vcore=2)
    rm.task("app", "t", "workers", 2, vcore=2)
    rm.node("n1", vcore=100)
    # The first placeholder is replaced as soon as it has its place, and so is the second.
    assert rm.schedule() == [("app", "ph", "n1"), ("app", "ph", "n1")]
    assert rm.told() == [("ph", "PLACEHOLDER_REPLACED")] * 2
    assert rm.confirmed() == [("app", "t", "n1")] * 2


def test_tasks_of_a_group_that_come_before_its_placeholders_wait_for_them_from_then_on() -> None:
    rm = GangRM()
    rm.gang("app", vcore=2)
    rm.task("app", "t", "workers", vcore=2)
    rm.task("app", "ph", "workers", placeholder=True, vcore=2)
    rm.node("n1", vcore=10)
    assert rm.schedule() == [("app", "ph", "n1")]
    assert rm.confirmed() == [("app", "t", "n1")]


def test_tasks_beyond_the_placeholders_are_scheduled_like_any_once_all_places_are_taken() -> None:
    rm = ready(1)
    rm.task("app", "t", "workers", 3, vcore=2)
    assert rm.schedule() == []
    assert rm.confirmed() == [("app", "t", "n1")]
    assert rm.schedule() == [("app", "t", "n2"), ("app", "t", "n1")]
    assert rm.used() == {"vcore": 6}


def test_tasks_without_a_group_or_of_a_group_without_placeholders_do_not_wait() -> None:
    rm = ready(2)
    rm.ask("app", "driver", vcore=1)
    rm.task("app", "other", "others", vcore=1)
    assert [key for _, key, _ in rm.schedule()] == ["driver", "other"]
    assert rm.state() == "Running"


def test_tasks_take_places_in_their_order() -> None:
    rm = ready(2)
    rm.task("app", "late", "workers", vcore=2, priority=0)
    rm.task("app", "urgent", "workers", vcore=2, priority=5)
    rm.task("app", "early", "workers", vcore=2, tags={"creationTime": "0"})
    rm.schedule()
    assert [key for _, key, _ in rm.confirmed()] == ["urgent", "late"]
    assert [key for _, key, _ in rm.schedule()] == ["early"]


def test_a_smaller_task_leaves_the_rest_of_the_place_free() -> None:
    rm = ready(2)
    rm.task("app", "t", "workers", vcore=1)
    rm.schedule()
    assert rm.used() == {"vcore": 4}
    rm.confirmed()
    assert rm.used() == {"vcore": 3}
    partition = rm.at_work().partition
    usage = partition.usage.of("user", "user", "root.a")
    assert usage is not None
    assert usage.usage == {"vcore": 3}


def test_placeholders_that_are_too_small_are_released_and_the_task_is_scheduled_like_any() -> None:
    ear = Ear()
    text = ear.text(partition(queue("a")))
    rm = GangRM(scheduler=ear.rm(partition(queue("a"))).scheduler, config=text, rm_id="gangs")
    rm.node("n1", vcore=10)
    rm.gang("app", vcore=4)
    rm.task("app", "ph", "workers", 2, placeholder=True, vcore=2)
    rm.schedule()
    rm.heard()
    rm.task("app", "t", "workers", vcore=3)
    assert rm.schedule() == []
    released = rm.heard().released_allocations
    assert [(one.allocation_key, one.termination_type, one.message) for one in released] == [
        ("ph", TerminationType.TIMEOUT, "cancel placeholder: resource incompatible")
    ] * 2
    assert ear.messages("ph") == [
        "Task group 'workers' in application 'app': allocation resources 'vcore 3' are not matching "
        f"placeholder 'vcore 2' allocation with ID 'ph#{number}'"
        for number in (1, 2)
    ]
    assert rm.schedule() == []
    assert rm.confirmed() == []
    assert rm.counts("app", "workers") == (2, 0, 2)
    assert rm.schedule() == [("app", "t", "n1")]


class Keep(api.Predicate):
    """Real tasks that shun a node do not run there."""

    name = "keep"

    def check(self, ask: api.Ask, node: api.Node) -> str | None:
        return "shunned" if ask.tags.get("not") == node.id else None


def picky() -> GangRM:
    text = document(partition(queue("a"), predicates=[{"name": "keep"}]))
    rm = GangRM(text, with_plugins(predicates=[Keep]))
    rm.node("n1", vcore=4)
    rm.gang("app", vcore=4)
    rm.task("app", "ph", "workers", 2, placeholder=True, vcore=2)
    rm.schedule()
    rm.node("n2", vcore=2)
    rm.heard()
    return rm


def test_a_task_that_may_not_run_where_its_placeholder_is_takes_another_node() -> None:
    rm = picky()
    rm.task("app", "t", "workers", vcore=2, tags={"not": "n1"})
    assert rm.schedule() == []
    assert rm.told() == [("ph", "PLACEHOLDER_REPLACED")]
    # Its room on the new node is taken at once; the queue counts it once.
    assert rm.find_node("n2").available == {"vcore": 0}
    assert rm.find_node("n1").available == {"vcore": 0}
    assert rm.used() == {"vcore": 4}
    assert rm.confirmed() == [("app", "t", "n2")]
    assert rm.find_node("n1").available == {"vcore": 2}
    assert rm.used() == {"vcore": 4}


def test_a_task_that_finds_no_node_at_all_waits_with_its_placeholder_until_one_comes() -> None:
    rm = picky()
    rm.app("filler")
    rm.ask("filler", "f", vcore=2)
    assert rm.schedule() == [("filler", "f", "n2")]
    rm.task("app", "t", "workers", vcore=2, tags={"not": "n1"})
    assert rm.schedule() == []
    assert rm.told() == []
    rm.release("filler", key="f")
    assert rm.schedule() == []
    assert rm.confirmed() == [("app", "t", "n2")]


def test_a_task_that_is_taken_back_while_its_place_is_made_is_forgotten() -> None:
    rm = ready(1)
    rm.task("app", "t", "workers", vcore=2)
    rm.schedule()
    rm.release_ask("app", "t")
    assert rm.confirmed() == []
    assert rm.used() == {}
    assert rm.counts("app", "workers") == (1, 0, 1)
    rm.pass_time(31)
    assert rm.state() == "Completed"


def test_confirmations_that_nobody_waits_for_are_harmless() -> None:
    rm = ready(1)
    rm.release("app", "nonsense", termination=TerminationType.PLACEHOLDER_REPLACED)
    uuid = next(iter(rm.running))
    rm.release("app", uuid, termination=TerminationType.PLACEHOLDER_REPLACED)
    assert rm.used() == {"vcore": 2}
    assert rm.counts("app", "workers") == (1, 0, 0)


def test_a_confirmation_may_name_the_ask_instead_of_the_allocation() -> None:
    rm = ready(2)
    rm.task("app", "t", "workers", vcore=2)
    rm.schedule()
    rm.release("app", key="ph", termination=TerminationType.PLACEHOLDER_REPLACED)
    assert rm.counts("app", "workers") == (2, 1, 0)
    assert rm.used() == {"vcore": 4}


# -- time --------------------------------------------------------------------------------------------------


def half(style: str, seconds: float = MINUTE, tags: dict[str, str] | None = None) -> GangRM:
    """A gang of three of which two have their place; a real task waits, and one without a group."""
    rm = GangRM()
    rm.node("n1", vcore=5)
    rm.gang("app", style, seconds=seconds, tags=tags, vcore=6)
    rm.task("app", "ph", "workers", 3, placeholder=True, vcore=2)
    assert len(rm.schedule()) == 2
    rm.task("app", "big", "", vcore=4)
    assert rm.schedule() == []
    rm.heard()
    return rm


def test_a_soft_gang_that_does_not_come_together_gives_up_its_places_and_goes_on_without() -> None:
    rm = half("Soft")
    rm.pass_time(MINUTE - 1)
    assert rm.state() == "Accepted"
    rm.pass_time(1)
    assert rm.state() == "Resuming"
    heard = rm.heard()
    assert [one.allocation_key for one in heard.released_allocations] == ["ph", "ph"]
    assert [(one.allocation_key, one.message) for one in heard.released_allocation_asks] == [
        ("ph", "releasing pending placeholders on placeholder timeout")
    ]
    assert heard.updated_applications[0].message == "ResourceReservationTimeout"
    # The places are free when the resource manager says so; then what is real runs as in any application.
    assert rm.schedule() == []
    assert rm.confirmed() == []
    assert rm.state() == "Accepted"
    assert rm.find_queue().running == 0
    assert rm.counts("app", "workers") == (3, 0, 3)
    assert rm.schedule() == [("app", "big", "n1")]
    assert rm.state() == "Starting"


def test_an_unknown_style_is_soft() -> None:
    rm = half("hard")
    rm.pass_time(MINUTE)
    assert rm.state() == "Resuming"


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


def test_a_soft_gang_with_nothing_real_completes_after_its_timeout() -> None:
    rm = GangRM()
    rm.node("n1", vcore=3)
    rm.gang("app", "Soft", seconds=MINUTE, vcore=4)
    rm.task("app", "ph", "workers", 2, placeholder=True, vcore=2)
    rm.schedule()
    rm.pass_time(MINUTE)
    rm.confirmed()
    assert rm.state() == "Completing"


def test_a_hard_gang_that_does_not_come_together_fails() -> None:
    rm = half("Hard")
    rm.pass_time(MINUTE)
    assert rm.state() == "Failing"
    heard = rm.heard()
    assert sorted(one.allocation_key for one in heard.released_allocation_asks) == ["big", "ph"]
    rm.ask("app", "more", vcore=1)
    assert rm.heard().rejected_allocations[0].reason == "application app is failing: it takes no new requests"
    rm.confirm(next(iter(rm.evicted)))
    assert rm.state() == "Failing"
    rm.confirm()
    assert rm.state() == "Failed"
    assert rm.find_app().reason == "ResourceReservationTimeout"
    assert rm.used() == {}
    assert rm.find_queue().running == 0


def test_without_a_timeout_of_its_own_a_gang_has_fifteen_minutes() -> None:
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


def test_placeholders_that_nobody_took_are_released_when_their_time_is_up() -> None:
    rm = ready(3, seconds=MINUTE)
    rm.task("app", "t", "workers", vcore=2)
    rm.schedule()
    rm.confirmed()
    rm.pass_time(MINUTE)
    assert rm.told() == [("ph", "TIMEOUT")] * 2
    assert rm.state() == "Starting"
    rm.confirmed()
    assert rm.counts("app", "workers") == (3, 1, 2)
    assert rm.used() == {"vcore": 2}
    rm.task("app", "more", "workers", vcore=2)
    assert [key for _, key, _ in rm.schedule()] == ["more"]


def test_an_application_completes_with_its_last_real_task_and_gives_back_what_is_left() -> None:
    rm = ready(3)
    rm.task("app", "t", "workers", vcore=2)
    rm.schedule()
    rm.confirmed()
    rm.release("app", key="t")
    assert rm.state() == "Completing"
    rm.heard()
    rm.pass_time(30)
    assert rm.told() == [("ph", "TIMEOUT")] * 2
    assert rm.state() == "Completing"
    rm.confirm()
    assert rm.state() == "Completed"
    assert rm.scheduler.next_timer() is not None


# -- what goes wrong ---------------------------------------------------------------------------------------


def test_when_the_node_of_placeholder_and_task_goes_the_task_waits_again() -> None:
    rm = ready(1)
    rm.task("app", "t", "workers", vcore=2)
    rm.schedule()
    rm.heard()
    rm.change_node("n1", NodeAction.DECOMMISSION)
    assert rm.told() == [("ph", "STOPPED_BY_RM")]
    assert rm.counts("app", "workers") == (1, 0, 1)
    assert rm.schedule() == [("app", "t", "n2")]
    assert rm.used() == {"vcore": 2}


def test_when_the_placeholders_node_goes_the_task_on_another_node_is_there_at_once() -> None:
    rm = picky()
    rm.task("app", "t", "workers", vcore=2, tags={"not": "n1"})
    rm.schedule()
    rm.heard()
    rm.change_node("n1", NodeAction.DECOMMISSION)
    heard = rm.heard()
    assert [one.termination_type.name for one in heard.released_allocations] == ["STOPPED_BY_RM"] * 2
    assert [(one.allocation_key, one.node_id) for one in heard.new_allocations] == [("t", "n2")]
    assert rm.used() == {"vcore": 2}
    assert rm.counts("app", "workers") == (2, 1, 1)


def test_when_the_tasks_node_goes_before_its_placeholder_the_task_waits_again() -> None:
    rm = picky()
    rm.task("app", "t", "workers", vcore=2, tags={"not": "n1"})
    rm.schedule()
    rm.heard()
    rm.change_node("n2", NodeAction.DECOMMISSION)
    assert rm.told() == []
    assert rm.find_app().pending == {"vcore": 2}
    # The placeholder is on its way out already, and no task takes its place.
    assert rm.confirmed() == []
    assert rm.counts("app", "workers") == (2, 0, 1)
    rm.node("n3", vcore=2)
    rm.schedule()
    assert rm.confirmed() == [("app", "t", "n3")]


def test_an_application_may_go_while_places_are_made() -> None:
    rm = picky()
    rm.task("app", "t", "workers", vcore=2, tags={"not": "n1"})
    rm.schedule()
    rm.remove_app("app")
    assert rm.find_node("n1").available == {"vcore": 4}
    assert rm.find_node("n2").available == {"vcore": 2}
    assert rm.used() == {}
    assert rm.find_queue().running == 0


def test_placeholders_that_the_resource_manager_stops_are_counted_and_their_tasks_run_without() -> None:
    rm = ready(2)
    for uuid in list(rm.running):
        rm.release("app", uuid)
    assert rm.counts("app", "workers") == (2, 0, 2)
    rm.task("app", "t", "workers", 2, vcore=2)
    assert len(rm.schedule()) == 2


def test_placeholder_asks_that_are_taken_back_are_not_waited_for() -> None:
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
            "n1",
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
    assert rm.state() == "Starting"
    assert rm.counts("app", "workers") == (2, 0, 0)
    rm.task("app", "t", "workers", vcore=2)
    assert rm.schedule() == []
    assert rm.confirmed() == [("app", "t", "n1")]


def test_a_reload_leaves_gangs_as_they_are() -> None:
    rm = ready(2)
    rm.task("app", "t", "workers", 3, vcore=2)
    rm.schedule(1)
    rm.reload(configuration(queue("a", resources={"max": {"vcore": "3m"}}), queue("b")))
    # Its places it has, whatever the quota is now; anything more it has not.
    rm.schedule()
    assert [key for _, key, _ in rm.confirmed()] == ["t", "t"]
    assert rm.schedule() == []
    rm.reload(configuration(queue("a"), queue("b")))
    assert rm.schedule() == [("app", "t", "n1")]


def test_a_creation_time_that_is_no_time_is_ignored() -> None:
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
def test_placeholders_have_their_time_also_beside_a_driver_that_runs(style: str) -> None:
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
    # What runs is no gang's: the application goes on, and nobody waits for the rest of the placeholders.
    assert len(rm.evicted) == 3
    assert rm.state() == "Starting"
    rm.confirm()
    rm.task("app", "task", "workers", 2, vcore=1)
    assert [key for _, key, _ in rm.schedule()] == ["task", "task"]
