"""Service that applications have received, and their ended tasks: exact, and independent of who reads it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.core.gangs import ready
from tests.core.kit import RM, configuration, queue
from yunikorn.clock import SECOND
from yunikorn.interface.messages import Allocation, NodeAction, TerminationType
from yunikorn.resources import Resource


def served(rm: RM, app_id: str = "app") -> Mapping[str, float]:
    return rm.find_app(app_id).past.served


def rm_with_tasks(count: int = 2) -> RM:
    rm = RM()
    rm.node(vcore=8, memory=100)
    rm.app()
    rm.ask(count=count, vcore=1, memory=10)
    rm.schedule()
    return rm


def test_running_and_ended_tasks_count() -> None:
    rm = rm_with_tasks()
    assert served(rm) == {}
    rm.pass_time(10)
    assert served(rm) == {"vcore": 20.0, "memory": 200.0}
    rm.release(uuid=next(iter(rm.running)))
    rm.pass_time(0.5)
    assert served(rm) == {"vcore": 20.5, "memory": 205.0}
    past = rm.find_app().past
    assert (past.ended, past.completed, past.completed_time) == (1, 1, 10 * SECOND)


@pytest.mark.parametrize(
    ("termination", "counts"),
    [
        (TerminationType.STOPPED_BY_RM, (1, 1)),
        (TerminationType.PREEMPTED_BY_SCHEDULER, (1, 0)),
        (TerminationType.TIMEOUT, (1, 0)),
        (TerminationType.SCHEDULING_FAILED_ON_RM, (0, 0)),
    ],
)
def test_only_tasks_that_the_resource_manager_ends_are_completed(
    termination: TerminationType, counts: tuple[int, int]
) -> None:
    rm = rm_with_tasks()
    rm.pass_time(10)
    rm.release(uuid=next(iter(rm.running)), termination=termination)
    past = rm.find_app().past
    assert (past.ended, past.completed) == counts
    assert past.served["vcore"] == 20


def test_tasks_that_are_lost_with_their_node_are_not_completed() -> None:
    rm = rm_with_tasks()
    rm.pass_time(10)
    rm.change_node("n1", NodeAction.DECOMMISSION)
    past = rm.find_app().past
    assert (past.ended, past.completed, past.served["vcore"]) == (2, 0, 20)


@pytest.mark.parametrize("read_before", [False, True])
def test_a_new_size_counts_from_its_time(read_before: bool) -> None:
    rm = rm_with_tasks(1)
    rm.pass_time(10)
    if read_before:
        assert served(rm)["vcore"] == 10
    (one,) = rm.running.values()
    rm.update(allocations=[Allocation(one.allocation_key, "app", one.uuid, "n1", Resource({"vcore": 5}))])
    assert served(rm)["vcore"] == 10
    rm.pass_time(10)
    assert served(rm) == {"vcore": 60.0, "memory": 100.0}
    rm.release(uuid=one.uuid)
    rm.pass_time(10)
    assert served(rm) == {"vcore": 60.0, "memory": 100.0}


def test_a_recovered_task_counts_from_its_creation() -> None:
    rm = RM()
    rm.pass_time(100)
    rm.app()
    tags = {"creationTime": "40"}
    existing = Allocation("a", "app", "u", "n1", Resource({"vcore": 1}), allocation_tags=tags)
    rm.node("n1", vcore=4, existing=[existing])
    assert served(rm) == {"vcore": 60.0}


def test_a_replaced_placeholder_hands_over_without_a_gap_or_an_overlap() -> None:
    rm = ready(2)
    rm.pass_time(10)
    rm.task("app", "real", "workers", vcore=2)
    rm.schedule()
    rm.pass_time(5)
    assert served(rm) == {"vcore": 60.0}
    rm.confirmed()
    rm.pass_time(10)
    assert served(rm) == {"vcore": 100.0}
    past = rm.find_app().past
    assert (past.ended, past.completed) == (0, 0)


def test_service_survives_a_reload() -> None:
    rm = rm_with_tasks()
    rm.pass_time(10)
    rm.release(uuid=next(iter(rm.running)))
    rm.reload(configuration(queue("a", properties={"application.sort.policy": "fair"})))
    rm.pass_time(10)
    assert served(rm)["vcore"] == 30
