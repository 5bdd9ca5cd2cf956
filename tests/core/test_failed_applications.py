"""Applications that fail: with their partition, by their RM, and out of every state that is not final."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.gangs import GangRM
from tests.core.kit import document, partition, queue
from tests.shim_plugins.shim import Listening
from yunikorn.clock import SECOND
from yunikorn.interface.messages import TerminationType
from yunikorn.model.application import Application
from yunikorn.model.context import Timeouts
from yunikorn.states import APPLICATION, FINAL_STATES

TWO = document(partition(queue("a")), partition(queue("a"), name="other"))
ONE = document(partition(queue("a"), name="other"))
STOPPED, TIMEOUT = TerminationType.STOPPED_BY_RM, TerminationType.TIMEOUT
STATES = ["New", "Accepted", "Starting", "Running", "Completing", "Failing", "Resuming"]


def every_state() -> GangRM:
    """Return an RM with an application in every state that is not final; some of them have pending asks."""
    rm = GangRM(TWO, timeouts=Timeouts(completing=1000 * SECOND))
    rm.node(vcore=20)
    for state in STATES[:5]:
        rm.app(state)
    for app_id in ("Starting", "Running", "Completing"):
        rm.ask(app_id, vcore=1)
    rm.ask("Running", "second", vcore=1)
    for app_id, style in (("Failing", "Hard"), ("Resuming", "Soft")):
        rm.gang(app_id, style, seconds=1, vcore=104)
        rm.task(app_id, "ph", "g", 2, placeholder=True, vcore=2)
        rm.task(app_id, "large", "g", placeholder=True, vcore=100)
    rm.schedule()
    rm.release("Completing")
    # Both gangs time out; the RM confirms nothing, so one stays Failing and the other Resuming.
    rm.pass_time(1)
    rm.ask("Accepted", "waits", vcore=100)
    rm.ask("Resuming", "waits", vcore=100)
    rm.ask("Running", "waits", vcore=100)
    assert {app_id: rm.state(app_id) for app_id in STATES} == {state: state for state in STATES}
    rm.take_response()
    return rm


def ends(entries: list[Any]) -> list[tuple[str, str, TerminationType]]:
    return [(one.application_id, one.allocation_key, one.termination_type) for one in entries]


@pytest.mark.parametrize("state", [state for state in APPLICATION.states if state not in FINAL_STATES])
def test_every_state_that_is_not_final_can_fail(state: str) -> None:
    assert APPLICATION.allows(state, "fail")


@pytest.mark.parametrize("app_id", STATES)
def test_an_application_of_any_state_fails_with_its_partition(app_id: str) -> None:
    rm = every_state()
    app = rm.find_app(app_id)
    rm.reload(ONE)
    check_has_failed(rm, app, "partition default was removed from the configuration")


@pytest.mark.parametrize("app_id", STATES)
def test_the_rm_may_fail_an_application_of_any_state(app_id: str) -> None:
    rm = every_state()
    app = rm.find_app(app_id)
    rm.scheduler.fail_application("rm", "default", app_id, "its driver is gone")
    check_has_failed(rm, app, "its driver is gone")
    others = rm.find_queue().applications.values()
    assert rm.find_queue().waiting == sum(other.has_waiting for other in others)
    assert {other for other in STATES if rm.state(other) == other} == {*STATES} - {app_id}


def check_has_failed(rm: GangRM, app: Application, reason: str) -> None:
    received = rm.take_response()
    states = [
        (one.state, one.message) for one in received.updated_applications if one.application_id == app.id
    ]
    if app.id == "Failing":
        # The reason of the first failure is kept.
        assert states == [("Failed", "ResourceReservationTimeout")]
    else:
        assert states == [("Failing", reason), ("Failed", reason)]
    assert app.state == "Failed"
    assert not app.asks
    assert not app.allocations
    assert app.id not in {one.application_id for one in rm.running.values()}
    assert app.id not in {one.application_id for one in rm.evicted.values()}


def test_allocations_and_asks_of_a_removed_partition_are_reported_as_ended() -> None:
    rm = every_state()
    rm.reload(ONE)
    received = rm.take_response()
    assert sorted(ends(received.released_allocation_asks)) == [
        ("Accepted", "waits", STOPPED),
        ("Resuming", "waits", STOPPED),
        ("Running", "waits", STOPPED),
    ]
    assert sorted(ends(received.released_allocations)) == [
        *[("Failing", "ph", STOPPED)] * 2,
        *[("Resuming", "ph", STOPPED)] * 2,
        ("Running", "ask", STOPPED),
        ("Running", "second", STOPPED),
        ("Starting", "ask", STOPPED),
    ]
    reason = "partition default was removed from the configuration"
    assert {one.message for one in received.released_allocation_asks} == {reason}
    assert {one.message for one in received.released_allocations} == {reason}


def test_only_expired_allocations_are_reported_as_timed_out() -> None:
    rm = GangRM(document(partition(queue("a"))))
    rm.node(vcore=1)
    for app_id in ("failed", "late"):
        rm.app(app_id)
    rm.ask("failed", "one", vcore=9)
    rm.ask("failed", "two", vcore=9)
    rm.scheduler.fail_application("rm", "default", "failed", "its driver is gone")
    reported = ends(rm.take_response().released_allocation_asks)
    assert reported == [("failed", "one", STOPPED), ("failed", "two", STOPPED)]


def test_ask_events_of_a_failed_application_have_its_reason() -> None:
    rm = Listening(document(partition(queue("a"))))
    rm.app()
    for key in ("one", "two", "three"):
        rm.ask(key=key, vcore=9)
    rm.events.clear()
    rm.scheduler.fail_application("rm", "default", "app", "its driver is gone")
    gone = [one for one in rm.events if one.message.startswith("REMOVE ") and one.type.name == "APP"]
    assert [(one.reason, one.message) for one in gone] == [
        ("REQUEST_CANCEL", f"REMOVE {key} vcore 9m: its driver is gone") for key in ("one", "two", "three")
    ]
    assert rm.state() == "Failed"
