"""A callback that raises is contained and reported with its owner, and the RM is resynchronized."""

from __future__ import annotations

import pytest

from tests.core.kit import RM, configuration, queue
from yunikorn.interface.callback import OPTIONAL, ResourceManagerCallback, implements
from yunikorn.interface.messages import (
    NewNodeInfo,
    PredicatesArgs,
    RegisterResourceManagerRequest,
    SchedulerAction,
    UpdateContainerSchedulingStateRequest,
    UpdateRequest,
    UpdateResponse,
)


class Clumsy(RM):
    """Fails on responses while `broken`."""

    broken = False

    def recv_update_response(self, response: UpdateResponse) -> None:
        if self.broken:
            raise RuntimeError("I dropped it")
        super().recv_update_response(response)


@pytest.fixture
def rm() -> Clumsy:
    rm = Clumsy(configuration(queue("a")))
    rm.node("n1", vcore=4)
    rm.app("app", "root.a")
    return rm


def test_callback_that_raises_stops_neither_decisions_nor_caller(rm: Clumsy) -> None:
    rm.ask("app", "k", vcore=1)
    rm.broken = True
    assert rm.scheduler.schedule() == 1
    (failure,) = rm.scheduler.failures
    assert failure.plugin == "resource manager rm"
    expected = "callback of resource manager rm: handling a response: RuntimeError: I dropped it"
    assert failure.message == expected
    assert rm.scheduler.session_state("rm") == "Paused"
    assert "failed to handle a response" in rm.scheduler.session("rm").reason


def test_a_lost_response_causes_a_resync(rm: Clumsy) -> None:
    rm.broken = True
    rm.ask("app", "k", vcore=-1)
    rm.ask("app", "k2", vcore=1)
    rm.take_response()
    rm.scheduler.schedule()
    rm.broken = False
    rm.scheduler.schedule()
    (response,) = rm.responses
    assert response.action == SchedulerAction.RESYNC
    rm.scheduler.schedule()
    assert len(rm.responses) == 1


def test_other_rms_are_not_affected(rm: Clumsy) -> None:
    other = RM(configuration(queue("a")), scheduler=rm.scheduler, rm_id="other")
    other.node("n1", vcore=4)
    other.app("app", "root.a")
    rm.ask("app", "k", vcore=1)
    other.ask("app", "k", vcore=1)
    rm.broken = True
    rm.scheduler.schedule()
    assert [one.allocation_key for one in other.entries("new_allocations")] == ["k"]
    assert rm.scheduler.session_state("other") == "Running"


class FailingStates(Clumsy):
    """Fails on scheduling states."""

    def update_container_scheduling_state(self, request: UpdateContainerSchedulingStateRequest) -> None:
        raise SystemExit(3)


def test_failing_state_update_loses_one_report_only() -> None:
    rm = FailingStates(configuration(queue("a")))
    rm.node("n1", vcore=4)
    rm.app("app", "root.a")
    rm.ask("app", "k", vcore=1)
    rm.scheduler.schedule()
    assert [one.allocation_key for one in rm.entries("new_allocations")] == ["k"]
    (failure,) = rm.scheduler.failures
    assert (failure.operation, failure.count) == ("receiving the scheduling state of a request", 1)
    assert rm.scheduler.session_state("rm") == "Running"


def test_inherited_interface_methods_are_not_implemented() -> None:
    class Plain(ResourceManagerCallback):
        """Implements the required methods only."""

        def recv_update_response(self, response: UpdateResponse) -> None:
            pass

    class Curious(Plain):
        """Implements one optional method."""

        def predicates(self, args: PredicatesArgs) -> str | None:
            return None

    assert not [method for method in OPTIONAL if implements(Plain(), method)]
    assert [method for method in OPTIONAL if implements(Curious(), method)] == ["predicates"]


def test_callback_without_the_required_method_is_rejected() -> None:
    rm = RM(configuration(queue("a")))
    request = RegisterResourceManagerRequest("bare", config=configuration(queue("a")))
    rm.scheduler.register_resource_manager(request, ResourceManagerCallback())
    rm.scheduler.update(UpdateRequest("bare", new_schedulable_nodes=[NewNodeInfo("n1")]))
    (failure,) = rm.failures()
    assert failure.endswith("ResourceManagerCallback does not implement recv_update_response(response)")
