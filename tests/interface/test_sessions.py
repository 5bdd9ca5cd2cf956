"""Sessions of resource managers: register, lose connection, reconnect, shut down (docs/decisions/0031)."""

from __future__ import annotations

import gc
import logging
import weakref

import pytest

from tests.core.kit import RM, configuration, document, partition, queue
from yunikorn.clock import SECOND
from yunikorn.errors import ConfigError, UsageError
from yunikorn.interface import session_state
from yunikorn.interface.messages import (
    AllocationAsk,
    NewNodeInfo,
    RegisterResourceManagerRequest,
    SchedulerAction,
    UpdateRequest,
    UpdateResponse,
)
from yunikorn.model.context import Timeouts
from yunikorn.resources import Resource
from yunikorn_commands.build import PURE, kind_of_build

RESYNC = SchedulerAction.RESYNC
WAIT = (Timeouts().session or 0) // SECOND


class Line:
    """The RM's end of a connection."""

    def __init__(self) -> None:
        self.received: list[UpdateResponse] = []

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Record the response."""
        self.received.append(response)

    def actions(self) -> list[SchedulerAction]:
        """Return the action of each response."""
        return [response.action for response in self.received]


def busy(**keys: object) -> RM:
    """Return an RM with one allocation and one pending ask."""
    rm = RM(configuration(queue("a")), **keys)  # type: ignore[arg-type]
    rm.node(vcore=1)
    rm.app()
    rm.ask(vcore=1, count=2)
    assert rm.schedule() == [("app", "ask", "n1")]
    rm.take_response()
    return rm


def register(rm: RM, callback: object = None) -> None:
    """Register again with the first registration's configuration."""
    request = RegisterResourceManagerRequest(rm.rm_id, config=configuration(queue("a")))
    rm.scheduler.register_resource_manager(request, callback or rm)  # type: ignore[arg-type]


# -- the connection is lost ----------------------------------------------------------------------------------


def test_a_paused_session_neither_decides_nor_answers() -> None:
    rm = busy()
    rm.scheduler.pause("rm", "the stream broke")
    assert rm.scheduler.session_state("rm") == "Paused"
    assert rm.scheduler.session("rm").reason == "the stream broke"
    rm.at_work().partition.update_node(rm.find_node(), Resource(vcore=5), None, None)
    assert rm.scheduler.schedule() == 0
    assert rm.responses == []
    assert rm.find_queue().allocated == {"vcore": 1}
    assert rm.find_queue().waiting == 1


def test_pausing_one_rm_does_not_affect_others() -> None:
    one = busy(rm_id="one")
    two = RM(rm_id="two", scheduler=one.scheduler)
    two.node(vcore=1)
    two.app()
    one.scheduler.pause("one")
    two.ask(vcore=1)
    assert two.schedule() == [("app", "ask", "n1")]
    assert [status.state for status in one.scheduler.sessions()] == ["Paused", "Running"]


def test_pausing_twice_has_no_effect() -> None:
    rm = busy()
    rm.scheduler.pause("rm", "first")
    rm.pass_time(WAIT - 1)
    rm.scheduler.pause("rm", "second")
    assert rm.scheduler.session("rm").reason == "first"
    rm.pass_time(1)
    assert rm.scheduler.session_state("rm") == "Stopped"


def test_timers_run_while_paused() -> None:
    """An application completes, and the RM receives its state after reconnecting."""
    rm = busy()
    rm.release_ask()
    rm.release()
    rm.take_response()
    rm.scheduler.pause("rm")
    rm.pass_time(30)
    assert rm.state() == "Completed"
    line = Line()
    rm.scheduler.reconnect("rm", line)
    (response,) = line.received
    assert response.action == RESYNC
    assert [update.state for update in response.updated_applications] == ["Completed"]


def test_returning_stream_receives_resync_once_and_registers_again() -> None:
    rm = busy()
    rm.scheduler.pause("rm")
    line = Line()
    rm.scheduler.reconnect("rm", line)
    rm.scheduler.schedule()
    rm.scheduler.fire_timers()
    assert line.actions() == [RESYNC]
    assert rm.responses == []
    assert rm.scheduler.session_state("rm") == "Paused"

    register(rm, line)
    assert rm.scheduler.session_state("rm") == "Running"
    rm.pass_time(10 * WAIT)
    assert rm.scheduler.session_state("rm") == "Running", "the old deadline is forgotten"
    assert line.actions() == [RESYNC]


def test_stream_that_replaces_a_live_one_receives_resync() -> None:
    """Responses to the first stream may be lost."""
    rm = busy()
    line = Line()
    rm.scheduler.reconnect("rm", line)
    assert line.actions() == [RESYNC]
    assert rm.scheduler.session_state("rm") == "Paused"


def test_a_returning_stream_has_the_whole_time_to_register() -> None:
    rm = busy()
    rm.scheduler.pause("rm")
    rm.pass_time(WAIT - 1)
    rm.scheduler.reconnect("rm", Line())
    rm.pass_time(WAIT - 1)
    assert rm.scheduler.session_state("rm") == "Paused"
    rm.pass_time(1)
    assert rm.scheduler.session_state("rm") == "Stopped"


def test_stream_lost_before_registration_receives_resync_again() -> None:
    rm = busy()
    first, second = Line(), Line()
    rm.scheduler.pause("rm")
    rm.scheduler.reconnect("rm", first)
    rm.scheduler.pause("rm")
    rm.scheduler.schedule()
    rm.scheduler.reconnect("rm", second)
    assert first.actions() == second.actions() == [RESYNC]


@pytest.mark.parametrize("reachable", [False, True])
def test_update_while_paused_is_rejected_with_resync(reachable: bool) -> None:
    rm = busy()
    line = Line()
    rm.scheduler.pause("rm")
    if reachable:
        rm.scheduler.reconnect("rm", line)
    rm.ask(key="late", vcore=1)
    rm.node("n2", vcore=5)
    assert list(rm.find_app().asks) == ["ask"]
    assert list(rm.at_work().partition.nodes) == ["n1"]
    assert line.actions() == ([RESYNC] * 3 if reachable else [])


def test_outbox_of_a_paused_session_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_state, "KEPT", 3)
    rm = RM(configuration(queue("a"), periods={"completing": "1s"}))
    for number in range(4):
        rm.app(f"app-{number}")
        rm.ask(f"app-{number}", vcore=1)
    rm.node(vcore=4)
    rm.schedule()
    for number in range(4):
        rm.release(f"app-{number}")
    rm.take_response()
    rm.scheduler.pause("rm")
    rm.pass_time(1)
    assert rm.at_work().partition.changes.outbox.is_empty
    line = Line()
    rm.scheduler.reconnect("rm", line)
    assert line.received == [UpdateResponse(RESYNC)], "RESYNC in the place of what was lost"


# -- stopped -------------------------------------------------------------------------------------------------


def test_a_session_that_is_paused_too_long_is_stopped() -> None:
    rm = busy()
    before = rm.at_work()
    rm.scheduler.pause("rm")
    rm.pass_time(WAIT)
    assert rm.scheduler.session_state("rm") == "Stopped"
    assert list(rm.scheduler.sessions()) == []
    assert not before.partition.applications
    assert not before.partition.nodes
    assert rm.responses == [], "no RM is left to notify"
    with pytest.raises(UsageError, match="no resource manager 'rm' is registered"):
        rm.update()
    with pytest.raises(UsageError, match="no resource manager 'rm' is registered"):
        rm.scheduler.reconnect("rm", Line())


def test_pause_timeout_is_configurable() -> None:
    rm = RM(timeouts=Timeouts(session=7 * SECOND))
    rm.scheduler.pause("rm")
    assert rm.scheduler.next_timer() == 7 * SECOND
    rm.pass_time(7)
    assert rm.scheduler.session_state("rm") == "Stopped"


def test_a_session_may_be_kept_without_limit() -> None:
    rm = RM(timeouts=Timeouts(session=None))
    rm.scheduler.pause("rm")
    assert rm.scheduler.next_timer() is None


def test_shutdown_ends_the_session_immediately() -> None:
    rm = busy()
    rm.scheduler.stop("rm")
    assert rm.scheduler.session_state("rm") == "Stopped"
    assert rm.responses == []
    assert rm.scheduler.next_timer() is None, "nothing of it is left"


def test_a_paused_rm_can_be_shut_down() -> None:
    rm = busy()
    rm.scheduler.pause("rm")
    rm.scheduler.stop("rm")
    assert rm.scheduler.session_state("rm") == "Stopped"
    assert rm.scheduler.next_timer() is None


def test_there_is_no_session_without_registration() -> None:
    scheduler = RM().scheduler
    assert scheduler.session_state("stranger") == "Stopped"
    calls = (
        lambda: scheduler.pause("stranger"),
        lambda: scheduler.resync("stranger", "why"),
        lambda: scheduler.stop("stranger"),
        lambda: scheduler.session("stranger"),
    )
    for call in calls:
        with pytest.raises(UsageError, match="no resource manager 'stranger' is registered; registered: rm"):
            call()


# -- registering again ---------------------------------------------------------------------------------------


def test_registering_again_removes_all_state_including_messages_in_flight() -> None:
    rm = busy()
    rm.at_work().partition.update_node(rm.find_node(), Resource(vcore=5), None, None)
    rm.at_work().decide()  # a decision that the RM has not received
    assert not rm.at_work().partition.changes.outbox.is_empty
    before = rm.at_work()
    register(rm)
    assert rm.responses == [], "the RM must not be asked to end allocations that it is about to report"
    assert rm.at_work() is not before
    assert not rm.at_work().partition.applications
    assert not rm.at_work().partition.nodes
    assert rm.scheduler.next_timer() is None
    assert rm.scheduler.schedule() == 0


def test_a_refused_registration_leaves_a_pause_as_it_was() -> None:
    rm = busy()
    rm.scheduler.pause("rm")
    with pytest.raises(ConfigError):
        rm.scheduler.register_resource_manager(RegisterResourceManagerRequest("rm", config="[]"), rm)
    assert rm.scheduler.session_state("rm") == "Paused"
    assert rm.find_queue().waiting == 1


def test_recovery_restores_the_accounting() -> None:
    rm = busy()
    rm.scheduler.pause("rm")
    rm.scheduler.reconnect("rm", rm)
    running = list(rm.running.values())
    register(rm)
    rm.app()
    rm.node(vcore=1, existing=running)
    rm.ask(vcore=1, count=1)
    assert rm.find_queue().allocated == {"vcore": 1}
    assert rm.find_queue().waiting == 1
    rm.release(uuid=running[0].uuid)
    assert rm.schedule() == [("app", "ask", "n1")]


def test_rm_may_register_within_the_resync_call() -> None:
    rm = busy()

    class Prompt(Line):
        def recv_update_response(self, response: UpdateResponse) -> None:
            super().recv_update_response(response)
            if response.action == RESYNC:
                register(rm, self)
                node = NewNodeInfo("n1", schedulable_resource=Resource(vcore=3))
                rm.scheduler.update(UpdateRequest("rm", new_schedulable_nodes=[node]))

    prompt = Prompt()
    rm.scheduler.pause("rm")
    rm.scheduler.reconnect("rm", prompt)
    assert rm.scheduler.session_state("rm") == "Running"
    assert prompt.actions() == [RESYNC, SchedulerAction.NOACTION]
    assert list(rm.at_work().partition.nodes) == ["n1"]


def test_resync_is_not_repeated_without_limit() -> None:
    rm = busy()

    class Deaf(Line):
        def recv_update_response(self, response: UpdateResponse) -> None:
            super().recv_update_response(response)
            rm.scheduler.update(UpdateRequest("rm", asks=[AllocationAsk("k", "app")]))

    deaf = Deaf()
    rm.scheduler.reconnect("rm", deaf)
    assert deaf.actions() == [RESYNC]


# -- out of step ---------------------------------------------------------------------------------------------


def test_core_may_request_a_resync() -> None:
    rm = busy()
    rm.scheduler.resync("rm", "accounting differs")
    assert [response.action for response in rm.responses] == [RESYNC]
    assert rm.scheduler.session("rm").reason == "accounting differs"
    assert rm.scheduler.session_state("rm") == "Paused"
    rm.at_work().partition.update_node(rm.find_node(), Resource(vcore=5), None, None)
    assert rm.scheduler.schedule() == 0
    rm.pass_time(WAIT)
    assert rm.scheduler.session_state("rm") == "Stopped"


def test_a_lost_session_receives_no_resync_before_it_returns() -> None:
    rm = busy()
    rm.scheduler.pause("rm")
    rm.scheduler.resync("rm", "accounting differs")
    assert rm.responses == []


# -- several -------------------------------------------------------------------------------------------------


def test_equally_named_partitions_of_two_rms_are_distinct() -> None:
    one = RM(rm_id="one")
    two = RM(rm_id="two", scheduler=one.scheduler)
    one.app(partition_name="[one]default")
    two.app(partition_name="default")
    assert one.find_app() is not two.find_app()
    two.app("stray", partition_name="[one]default")
    (refused,) = two.entries("rejected_applications")
    assert refused.reason == "failed to find partition [one]default"
    one.scheduler.stop("one")
    assert two.find_app().id == "app"


# -- inspection --------------------------------------------------------------------------------------------


def test_rm_build_information_is_stored_and_listed() -> None:
    rm = RM()
    request = RegisterResourceManagerRequest(
        "other", "v1.2", config=configuration(), extra_config={"log.level": "1"}, build_info={"arch": "arm64"}
    )
    rm.scheduler.register_resource_manager(request, rm)
    status = rm.scheduler.session("other")
    assert (status.version, status.build_info, status.extra_config) == (
        "v1.2",
        {"arch": "arm64"},
        {"log.level": "1"},
    )
    assert status.partitions == ("default",)
    assert status.checksum == rm.scheduler.configuration("other").checksum
    assert status.policy_group is None


def test_session_changes_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "yunikorn.sessions")
    rm = RM()
    rm.scheduler.pause(rm.rm_id, "the stream broke")
    rm.scheduler.stop(rm.rm_id)
    request = RegisterResourceManagerRequest("rm", "v1.2")
    rm.scheduler.register_resource_manager(request, rm)
    assert [record.getMessage() for record in caplog.records] == [
        "resource manager rm: Init -> Running",
        "resource manager rm: Running -> Paused: the stream broke",
        "resource manager rm: Paused -> Stopped: resource manager rm shut down",
        "resource manager rm: Init -> Running: version v1.2 of the interface",
    ]


def test_scheduler_shutdown_is_not_logged_as_an_rm_shutdown(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "yunikorn.sessions")
    rm = RM()
    rm.scheduler.close()
    assert caplog.records[-1].getMessage() == (
        "resource manager rm: Running -> Stopped: the scheduler was shut down"
    )


# -- called from within a call --------------------------------------------------------------------------


def test_rm_may_stop_another_within_its_callback() -> None:
    one = busy(rm_id="one")
    received: list[UpdateResponse] = []

    class Jealous(RM):
        def recv_update_response(self, response: UpdateResponse) -> None:
            super().recv_update_response(response)
            if response.new_allocations and one.scheduler.session_state("victim") == "Running":
                one.scheduler.stop("victim")

    class Victim(RM):
        def recv_update_response(self, response: UpdateResponse) -> None:
            received.append(response)

    jealous = Jealous(rm_id="jealous", scheduler=one.scheduler)
    victim = Victim(rm_id="victim", scheduler=one.scheduler)
    for rm in (jealous, victim):
        rm.node(vcore=1)
        rm.app()
        rm.ask(vcore=1)
    received.clear()
    assert one.scheduler.schedule() == 2
    assert len(jealous.running) == 1
    assert received == [], "it is removed before the call"


def test_configuration_is_applied_before_partition_removal_is_reported() -> None:
    class Curious(RM):
        partitions: tuple[str, ...] = ()

        def recv_update_response(self, response: UpdateResponse) -> None:
            super().recv_update_response(response)
            if response.updated_applications:
                self.partitions = tuple(one.name for one in self.scheduler.partitions("rm"))
                self.app("next", partition_name="new")

    rm = Curious(document(partition(queue("a"), name="old")))
    rm.app(partition_name="old")
    rm.reload(document(partition(queue("a"), name="new")))
    assert rm.partitions == ("new",)
    assert rm.at_work("new").partition.applications["next"]


def test_registering_again_leaves_no_objects() -> None:
    """Partitions, timers and applications of the old session are removed, however often an RM registers."""
    rm = busy()
    at = rm.at_work()
    # Objects of compiled classes cannot be referred to weakly.
    old = weakref.ref(at.partition if kind_of_build() == PURE else at)
    del at
    for _ in range(3):
        register(rm)
        rm.node(vcore=1)
        rm.app()
        rm.ask(vcore=1)
        rm.running.clear()
        rm.schedule()
    rm.responses.clear()
    gc.collect()
    assert old() is None
    before = len(rm.scheduler._timers)
    for _ in range(50):
        register(rm)
        rm.app()
    assert len(rm.scheduler._timers) <= before
