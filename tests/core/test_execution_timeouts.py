"""Execution timeouts of applications and of the allocations of an ask (docs/decisions/archive/0022)."""

from __future__ import annotations

from tests.core.kit import RM
from yunikorn.interface.messages import (
    AddApplicationRequest,
    AllocationAsk,
    TerminationType,
    UserGroupInformation,
)
from yunikorn.resources import Resource


def submit(rm: RM, app_id: str = "app", seconds: float = 60) -> None:
    """Submit an application with an execution timeout."""
    owner = UserGroupInformation("user", ["group"])
    timeout = round(seconds * 1000)
    rm.update(
        new_applications=[AddApplicationRequest(app_id, "root.a", ugi=owner, execution_timeout_ms=timeout)]
    )


def ask(rm: RM, key: str, seconds: float, count: int = 1, app_id: str = "app", memory: int = 1) -> None:
    """Send an ask whose allocations have an execution timeout."""
    rm.update(
        asks=[
            AllocationAsk(
                key,
                app_id,
                resource_ask=Resource(memory=memory),
                max_allocations=count,
                execution_timeout_ms=round(seconds * 1000),
            )
        ]
    )


def ends(rm: RM) -> list[tuple[str, TerminationType]]:
    """Return key and reason of each allocation released since the last call."""
    return [(one.allocation_key, one.termination_type) for one in rm.take_response().released_allocations]


def test_application_fails_after_its_execution_timeout() -> None:
    rm = RM()
    rm.node(memory=2)
    submit(rm, seconds=60)
    rm.ask(key="here", count=2, memory=1)
    rm.ask(key="waits", memory=1)
    assert rm.schedule() == [("app", "here", "n1"), ("app", "here", "n1")]
    rm.pass_time(59)
    rm.take_response()
    assert rm.state() == "Running"

    rm.pass_time(1)
    assert rm.state() == "Failing"
    assert rm.find_node().available == {"memory": 0}
    rm.confirm()
    received = rm.take_response()
    assert [one.state for one in received.updated_applications] == ["Failing", "Failed"]
    assert "execution timeout of 60s" in received.updated_applications[0].message
    assert [(one.allocation_key, one.termination_type) for one in received.released_allocations] == [
        ("here", TerminationType.TIMEOUT),
        ("here", TerminationType.TIMEOUT),
    ]
    assert [(one.allocation_key, one.termination_type) for one in received.released_allocation_asks] == [
        ("waits", TerminationType.TIMEOUT)
    ]
    assert rm.find_node().available == {"memory": 2}
    assert rm.state() == "Failed"


def test_execution_timeout_starts_with_the_first_allocation() -> None:
    rm = RM()
    submit(rm, seconds=60)
    rm.ask(memory=1)
    rm.schedule()
    rm.pass_time(1000)
    assert rm.state() == "Accepted"
    rm.node(memory=1)
    rm.schedule()
    rm.pass_time(59)
    assert rm.state() == "Starting"
    rm.pass_time(1)
    rm.confirm()
    assert rm.state() == "Failed"


def test_resumed_application_continues_with_its_remaining_execution_time() -> None:
    rm = RM()
    rm.node(memory=1)
    submit(rm, seconds=60)
    rm.ask(key="first", memory=1)
    rm.schedule()
    rm.pass_time(40)
    rm.release(uuid=next(iter(rm.running)))
    assert rm.state() == "Completing"
    rm.pass_time(10)
    rm.ask(key="second", memory=1)
    rm.schedule()
    assert rm.state() == "Running"
    rm.pass_time(9)
    assert rm.state() == "Running"
    rm.pass_time(1)
    rm.confirm()
    assert rm.state() == "Failed"


def test_application_that_ended_in_time_does_not_time_out() -> None:
    rm = RM()
    rm.node(memory=1)
    submit(rm, seconds=60)
    rm.ask(memory=1)
    rm.schedule()
    rm.release(uuid=next(iter(rm.running)))
    rm.pass_time(30)
    assert rm.state() == "Completed"
    rm.pass_time(100)
    assert rm.state() == "Completed"


def test_removed_application_leaves_no_timer() -> None:
    rm = RM()
    rm.node(memory=1)
    submit(rm, seconds=60)
    ask(rm, "task", seconds=30)
    rm.schedule()
    rm.remove_app("app")
    assert rm.scheduler.next_timer() is None


def test_each_allocation_of_an_ask_has_its_own_timeout() -> None:
    rm = RM()
    rm.node(memory=1)
    rm.app()
    ask(rm, "task", seconds=10, count=2)
    assert rm.schedule() == [("app", "task", "n1")]
    rm.pass_time(10)
    assert ends(rm) == [("task", TerminationType.TIMEOUT)]
    assert rm.schedule() == []
    rm.confirm()

    rm.pass_time(5)
    assert rm.schedule() == [("app", "task", "n1")]
    rm.take_response()
    rm.pass_time(9)
    assert ends(rm) == []
    rm.pass_time(1)
    assert ends(rm) == [("task", TerminationType.TIMEOUT)]
    rm.confirm()
    assert rm.state() == "Completing"


def test_expired_allocation_frees_its_resources() -> None:
    rm = RM()
    rm.node(memory=1)
    rm.app("first")
    rm.app("second")
    ask(rm, "task", seconds=10, app_id="first")
    rm.ask("second", "task", memory=1)
    assert rm.schedule() == [("first", "task", "n1")]
    allocation = next(iter(rm.find_node().allocations.values()))
    rm.pass_time(10)
    rm.confirm()
    assert allocation.state == "Expired"
    assert rm.schedule() == [("second", "task", "n1")]


def test_allocation_that_ended_in_time_does_not_time_out() -> None:
    rm = RM()
    rm.node(memory=2)
    rm.app()
    ask(rm, "task", seconds=10)
    rm.ask(key="other", memory=1)
    rm.schedule()
    rm.release(key="task")
    rm.take_response()
    rm.pass_time(20)
    assert ends(rm) == []
    assert [one.allocation_key for one in rm.running.values()] == ["other"]


def test_changed_timeout_applies_to_later_allocations() -> None:
    rm = RM()
    rm.node(memory=1)
    rm.app()
    ask(rm, "task", seconds=10, count=2)
    rm.schedule()
    ask(rm, "task", seconds=100, count=1)
    rm.pass_time(10)
    assert ends(rm) == [("task", TerminationType.TIMEOUT)]
    rm.confirm()
    rm.schedule()
    rm.take_response()
    rm.pass_time(99)
    assert ends(rm) == []
    rm.pass_time(1)
    assert ends(rm) == [("task", TerminationType.TIMEOUT)]


def test_expired_application_without_allocations_loses_its_asks() -> None:
    rm = RM()
    rm.node(memory=1)
    submit(rm, seconds=60)
    rm.ask(key="first", memory=1)
    rm.schedule()
    rm.ask(key="large", memory=9)
    rm.ask(key="huge", count=2, memory=99)
    rm.release(key="first")
    rm.take_response()
    rm.pass_time(60)
    received = rm.take_response()
    assert [one.allocation_key for one in received.released_allocation_asks] == ["large", "huge"]
    assert [one.state for one in received.updated_applications] == ["Failing", "Failed"]
    assert rm.find_queue().waiting == 0


def test_unexpired_timeouts_leave_no_timers() -> None:
    rm = RM()
    rm.node(memory=1)
    rm.app()
    for number in range(500):
        ask(rm, f"task{number}", seconds=86_400)
        rm.schedule()
        rm.release(key=f"task{number}")
    assert len(rm.at_work().partition.timers) < 200


def test_a_timeout_of_zero_or_less_means_none() -> None:
    rm = RM()
    rm.node(memory=2)
    submit(rm, seconds=-1)
    ask(rm, "ask", seconds=-1, count=2)
    assert rm.schedule() == [("app", "ask", "n1"), ("app", "ask", "n1")]
    rm.pass_time(1_000_000)
    assert (rm.state(), ends(rm)) == ("Running", [])
