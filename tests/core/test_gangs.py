"""Gangs with placeholders: placeholders gather room, then real tasks replace them."""

from __future__ import annotations

import pytest

from tests.core.event_collector import EventCollector
from tests.core.gangs import GangRM, picky, ready
from tests.core.kit import configuration, partition, queue, with_plugins
from yunikorn import api
from yunikorn.interface.messages import TerminationType

MINUTE = 60


# -- placing placeholders ----------------------------------------------------------------------------------


def test_application_starts_when_all_its_placeholders_are_allocated() -> None:
    rm = GangRM(configuration(queue("a")))
    rm.node("n1", vcore=10)
    rm.gang("app", vcore=6)
    assert rm.state() == "New"
    rm.task("app", "p1", "workers", 2, placeholder=True, vcore=2)
    assert rm.state() == "Accepted"
    assert rm.schedule() == [("app", "p1", "n1")] * 2
    assert rm.state() == "Accepted"
    placed = rm.take_response().new_allocations[0]
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
    assert not rm.take_response().new_allocations[0].placeholder


def test_gang_without_announced_size_starts_when_no_placeholder_is_pending() -> None:
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
def test_placeholders_need_fifo_or_stateaware(policy: str) -> None:
    rm = GangRM(configuration(queue("a", properties={"application.sort.policy": policy})))
    rm.gang("app", vcore=6)
    refused = [one.reason for one in rm.take_response().rejected_applications]
    if policy == "fair":
        assert refused == [
            "queue root.a cannot run application app with task group request: unsupported sort type 'fair', "
            "placeholders need one of fifo, stateaware"
        ]
    else:
        assert refused == []


class Latest(api.AppSortPolicy):
    """Sorts applications by submission, latest first, and lets gangs run."""

    name = "latest"
    gangs = True

    def key(self, app: api.Application) -> int:
        return -app.submitted


class Cautious(api.AppSortPolicy):
    """Raises where it is asked about gangs."""

    name = "cautious"

    @property
    def gangs(self) -> bool:  # type: ignore[override]
        raise RuntimeError("no answer")

    def key(self, app: api.Application) -> int:
        return app.submitted


@pytest.mark.parametrize(("policy", "accepted"), [("latest", True), ("cautious", False), ("fair", False)])
def test_policy_says_itself_that_gangs_may_run_under_it(policy: str, accepted: bool) -> None:
    config = configuration(queue("a", properties={"application.sort.policy": policy}))
    rm = GangRM(config, registry=with_plugins(app_sort_policies=[Latest, Cautious]))
    rm.gang("app", vcore=6)
    refused = [one.reason for one in rm.take_response().rejected_applications]
    if accepted:
        assert refused == []
    else:
        assert refused[0].endswith("placeholders need one of fifo, stateaware, latest")


def test_gang_larger_than_its_queue_quota_is_rejected_with_the_amounts() -> None:
    rm = GangRM(
        configuration(
            queue("p", queue("a", resources={"max": {"vcore": "8"}}), resources={"max": {"memory": "100"}})
        )
    )
    rm.gang("fits", queue_name="root.p.a", vcore=8000, memory=100, gpu=4)
    rm.gang("large", queue_name="root.p.a", vcore=8001)
    rm.gang("wide", queue_name="root.p.a", vcore=1, memory=101)
    received = rm.take_response()
    assert [one.application_id for one in received.accepted_applications] == ["fits"]
    assert [one.reason for one in received.rejected_applications] == [
        f"queue root.p.a cannot run application {app}: task group request {amount} larger than max queue "
        "allocation memory 100, vcore 8"
        for app, amount in (("large", "vcore 8001m"), ("wide", "memory 101, vcore 1m"))
    ]


def test_gang_larger_than_the_cluster_is_reported_and_runs_after_growth() -> None:
    collector = EventCollector()
    rm = collector.rm(partition(queue("a")))
    reported = GangRM(scheduler=rm.scheduler, config=collector.text(partition(queue("a"))), rm_id="gangs")
    reported.node("n1", vcore=4)
    reported.gang("app", vcore=6)
    assert collector.messages("app")[-1] == (
        "the gang needs vcore 6m, and all nodes together have vcore 4m: it cannot run until nodes are added"
    )
    reported.task("app", "ph", "workers", 3, placeholder=True, vcore=2)
    assert len(reported.schedule()) == 2
    reported.node("n2", vcore=4)
    assert len(reported.schedule()) == 1
    assert reported.state() == "Starting"


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
    # The gang itself continues, and when it releases capacity the other application may run.
    rm.remove_app("gang")
    assert rm.find_queue().running == 0
    assert rm.schedule() == [("other", "ask", "n1")]


# -- replacing placeholders --------------------------------------------------------------------------------


def test_real_tasks_replace_placeholders_in_two_steps() -> None:
    rm = ready(2)
    where = {one.uuid: one.node_id for one in rm.running.values()}
    rm.task("app", "t", "workers", 2, vcore=2)
    assert rm.schedule() == []
    assert rm.reported() == [("ph", "PLACEHOLDER_REPLACED")] * 2
    # Placeholders count until their release is confirmed.
    assert rm.used() == {"vcore": 4}
    assert rm.find_app().pending == {"vcore": 0}
    assert rm.counts("app", "workers") == (2, 0, 0)
    assert rm.confirmed() == [("app", "t", node) for node in where.values()]
    assert rm.counts("app", "workers") == (2, 2, 0)
    assert rm.used() == {"vcore": 4}
    assert all(one.task_group_name == "workers" and not one.placeholder for one in rm.running.values())
    # All placeholders start the application; its first real task needs none, and the second makes it Running.
    assert rm.state() == "Running"


def test_first_replacement_keeps_the_application_starting() -> None:
    rm = ready(2)
    rm.task("app", "t", "workers", vcore=2)
    rm.schedule()
    rm.confirmed()
    assert rm.state() == "Starting"


def test_real_tasks_wait_for_their_placeholders_despite_free_resources() -> None:
    rm = GangRM()
    rm.gang("app", vcore=4)
    rm.task("app", "ph", "workers", 2, placeholder=True, vcore=2)
    rm.task("app", "t", "workers", 2, vcore=2)
    rm.node("n1", vcore=100)
    # Each placeholder is replaced as soon as it is placed.
    assert rm.schedule() == [("app", "ph", "n1"), ("app", "ph", "n1")]
    assert rm.reported() == [("ph", "PLACEHOLDER_REPLACED")] * 2
    assert rm.confirmed() == [("app", "t", "n1")] * 2


def test_tasks_submitted_before_their_placeholders_wait_for_them() -> None:
    rm = GangRM()
    rm.gang("app", vcore=2)
    rm.task("app", "t", "workers", vcore=2)
    rm.task("app", "ph", "workers", placeholder=True, vcore=2)
    rm.node("n1", vcore=10)
    assert rm.schedule() == [("app", "ph", "n1")]
    assert rm.confirmed() == [("app", "t", "n1")]


def test_surplus_tasks_are_scheduled_normally_after_all_replacements() -> None:
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


def test_tasks_replace_placeholders_in_their_order() -> None:
    rm = ready(2)
    rm.task("app", "late", "workers", vcore=2, priority=0)
    rm.task("app", "urgent", "workers", vcore=2, priority=5)
    rm.task("app", "early", "workers", vcore=2, tags={"creationTime": "0"})
    rm.schedule()
    assert [key for _, key, _ in rm.confirmed()] == ["urgent", "late"]
    assert [key for _, key, _ in rm.schedule()] == ["early"]


def test_smaller_task_frees_the_rest_of_the_placeholder() -> None:
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


def test_too_small_placeholders_are_released_and_the_task_is_scheduled_normally() -> None:
    collector = EventCollector()
    text = collector.text(partition(queue("a")))
    rm = GangRM(scheduler=collector.rm(partition(queue("a"))).scheduler, config=text, rm_id="gangs")
    rm.node("n1", vcore=10)
    rm.gang("app", vcore=4)
    rm.task("app", "ph", "workers", 2, placeholder=True, vcore=2)
    rm.schedule()
    rm.take_response()
    rm.task("app", "t", "workers", vcore=3)
    assert rm.schedule() == []
    released = rm.take_response().released_allocations
    assert [(one.allocation_key, one.termination_type, one.message) for one in released] == [
        ("ph", TerminationType.TIMEOUT, "cancel placeholder: resource incompatible")
    ] * 2
    assert collector.messages("ph") == [
        "Task group 'workers' in application 'app': allocation resources 'vcore 3m' are not matching "
        f"placeholder 'vcore 2m' allocation with ID 'ph#{number}'"
        for number in (1, 2)
    ]
    assert rm.schedule() == []
    assert rm.confirmed() == []
    assert rm.counts("app", "workers") == (2, 0, 2)
    assert rm.schedule() == [("app", "t", "n1")]


def test_task_refused_on_its_placeholders_node_uses_another_node() -> None:
    rm = picky()
    rm.task("app", "t", "workers", vcore=2, tags={"not": "n1"})
    assert rm.schedule() == []
    assert rm.reported() == [("ph", "PLACEHOLDER_REPLACED")]
    # Its room on the new node is taken at once; the queue counts it once.
    assert rm.find_node("n2").available == {"vcore": 0}
    assert rm.find_node("n1").available == {"vcore": 0}
    assert rm.used() == {"vcore": 4}
    assert rm.confirmed() == [("app", "t", "n2")]
    assert rm.find_node("n1").available == {"vcore": 2}
    assert rm.used() == {"vcore": 4}


def test_task_without_a_node_keeps_its_placeholder_until_one_is_registered() -> None:
    rm = picky()
    rm.app("filler")
    rm.ask("filler", "f", vcore=2)
    assert rm.schedule() == [("filler", "f", "n2")]
    rm.task("app", "t", "workers", vcore=2, tags={"not": "n1"})
    assert rm.schedule() == []
    assert rm.reported() == []
    rm.release("filler", key="f")
    assert rm.schedule() == []
    assert rm.confirmed() == [("app", "t", "n2")]


def test_task_released_during_its_replacement_is_dropped() -> None:
    rm = ready(1)
    rm.task("app", "t", "workers", vcore=2)
    rm.schedule()
    rm.release_ask("app", "t")
    assert rm.confirmed() == []
    assert rm.used() == {}
    assert rm.counts("app", "workers") == (1, 0, 1)
    rm.pass_time(31)
    assert rm.state() == "Completed"


def test_unexpected_confirmations_have_no_effect() -> None:
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
