"""The states of an application (docs/states.md)."""

from __future__ import annotations

import itertools
from typing import get_args

import pytest

from tests.core.kit import RM, configuration, document, partition, queue
from yunikorn.clock import SECOND
from yunikorn.errors import StateError
from yunikorn.model.application import LOG_LENGTH
from yunikorn.model.context import Timeouts
from yunikorn.states import APPLICATION, ApplicationEvent

MINUTE = 60

TABLE = {
    ("New", "reject"): "Rejected",
    ("New", "accept"): "Accepted",
    ("Resuming", "accept"): "Accepted",
    ("Accepted", "start"): "Starting",
    ("Starting", "run"): "Running",
    ("Running", "run"): "Running",
    ("Completing", "run"): "Running",
    ("Accepted", "complete"): "Completing",
    ("Starting", "complete"): "Completing",
    ("Running", "complete"): "Completing",
    ("Completing", "complete"): "Completed",
    ("New", "fail"): "Failing",
    ("Accepted", "fail"): "Failing",
    ("Starting", "fail"): "Failing",
    ("Running", "fail"): "Failing",
    ("Completing", "fail"): "Failing",
    ("Resuming", "fail"): "Failing",
    ("Failing", "fail"): "Failed",
    ("New", "resume"): "Resuming",
    ("Accepted", "resume"): "Resuming",
    ("Completed", "expire"): "Expired",
}
EVENTS: tuple[ApplicationEvent, ...] = get_args(ApplicationEvent)


def one_node() -> RM:
    rm = RM()
    rm.node(vcore=10)
    return rm


def history(rm: RM, app_id: str = "app") -> list[str]:
    return [entry.state for entry in rm.find_app(app_id).state_log]


def reported(rm: RM, app_id: str = "app") -> list[str]:
    return [one.state for one in rm.entries("updated_applications") if one.application_id == app_id]


@pytest.mark.parametrize(("state", "event"), list(itertools.product(APPLICATION.states, EVENTS)))
def test_transitions_are_those_of_the_table(state: str, event: str) -> None:
    assert APPLICATION.moves.get((state, event)) == TABLE.get((state, event))


def test_a_submitted_application_is_new() -> None:
    rm = one_node()
    rm.app()
    assert rm.state() == "New"
    assert history(rm) == []


def test_the_first_ask_makes_it_accepted() -> None:
    rm = one_node()
    rm.app()
    rm.ask(vcore=1)
    assert rm.state() == "Accepted"


def test_the_first_allocation_makes_it_starting_and_the_second_running() -> None:
    rm = one_node()
    rm.app()
    rm.ask(vcore=1, count=2)
    rm.schedule(1)
    assert rm.state() == "Starting"
    rm.schedule(1)
    assert rm.state() == "Running"


def test_starting_times_out_to_running_after_five_minutes() -> None:
    rm = one_node()
    rm.app()
    rm.ask(vcore=1)
    rm.schedule()
    rm.pass_time(5 * MINUTE - 1)
    assert rm.state() == "Starting"
    rm.pass_time(1)
    assert rm.state() == "Running"
    assert rm.find_app().state_log[-1].reason == "starting timed out"


def test_starting_timeout_of_a_running_application_has_no_effect() -> None:
    rm = one_node()
    rm.app()
    rm.ask(vcore=1, count=2)
    rm.schedule()
    before = history(rm)
    rm.pass_time(6 * MINUTE)
    assert history(rm) == before


def test_idle_application_is_completing_and_completed_after_thirty_seconds() -> None:
    rm = one_node()
    rm.app()
    rm.ask(vcore=1)
    rm.schedule()
    (uuid,) = rm.running
    rm.release(uuid=uuid)
    assert rm.state() == "Completing"
    rm.pass_time(29)
    assert rm.state() == "Completing"
    rm.pass_time(1)
    assert rm.state() == "Completed"


def test_pending_asks_prevent_completing() -> None:
    rm = one_node()
    rm.app()
    rm.ask(key="fits", vcore=1)
    rm.ask(key="huge", vcore=100)
    rm.schedule()
    (uuid,) = rm.running
    rm.release(uuid=uuid)
    assert rm.state() == "Starting"
    rm.release_ask(key="huge")
    assert rm.state() == "Completing"


def test_accepted_application_is_completing_when_its_only_ask_is_released() -> None:
    rm = one_node()
    rm.app()
    rm.ask(vcore=1)
    rm.release_ask(key="ask")
    assert rm.state() == "Completing"


def test_a_new_ask_brings_a_completing_application_back_to_running() -> None:
    rm = one_node()
    rm.app()
    rm.ask(vcore=1)
    rm.schedule()
    rm.release(key="ask")
    rm.pass_time(29)
    rm.ask(key="more", vcore=1)
    assert rm.state() == "Running"
    rm.pass_time(60)
    assert rm.state() == "Running", "the timer of the time before must not strike"


def test_a_completed_application_cannot_come_back() -> None:
    rm = one_node()
    rm.app()
    rm.ask(vcore=1)
    rm.release_ask(key="ask")
    rm.pass_time(30)
    rm.ask(key="late", vcore=1)
    assert rm.state() == "Completed"
    (refused,) = rm.entries("rejected_allocations")
    assert (refused.allocation_key, refused.reason) == ("late", "failed to find application app")


def test_completed_application_expires_after_its_retention_and_is_removed() -> None:
    rm = RM(timeouts=Timeouts(retention=100 * SECOND))
    rm.node(vcore=10)
    rm.app()
    rm.ask(vcore=1)
    rm.release_ask(key="ask")
    rm.pass_time(30)
    ended = rm.find_app()
    rm.pass_time(99)
    assert ended.state == "Completed"
    rm.pass_time(1)
    assert ended.state == "Expired"
    with pytest.raises(KeyError):
        rm.find_app()


def test_default_retention_is_three_days() -> None:
    assert Timeouts().retention == 3 * 24 * 3600 * SECOND


def test_rejected_is_final_has_a_reason_and_expires() -> None:
    rm = RM(timeouts=Timeouts(retention=100 * SECOND))
    rm.app(queue_name="root.nowhere")
    (refused,) = rm.entries("rejected_applications")
    assert refused.application_id == "app"
    assert "root.nowhere" in refused.reason
    assert rm.state() == "Rejected"
    assert [entry.reason for entry in rm.find_app().state_log] == [refused.reason]
    for event in EVENTS:
        with pytest.raises(StateError, match=f"application app is Rejected: event {event}"):
            rm.at_work().partition.states.fire(rm.find_app(), event)
    rm.pass_time(100)
    assert "app" not in rm.at_work().partition.ended


def test_rejection_is_reported_once_and_not_as_an_update() -> None:
    rm = RM()
    rm.app(queue_name="root.nowhere")
    received = rm.take_response()
    assert len(received.rejected_applications) == 1
    assert received.accepted_applications == []
    assert received.updated_applications == []


TWO = document(partition(queue("a")), partition(queue("a"), name="other"))
ONE = document(partition(queue("a"), name="other"))


def failing() -> RM:
    """Return an RM whose partition, with an application in each active state, is removed."""
    rm = RM(TWO)
    rm.node(vcore=10)
    for app_id in ("new", "accepted", "starting", "running"):
        rm.app(app_id)
    rm.ask("starting", vcore=1)
    rm.ask("running", vcore=1, count=2)
    rm.schedule()
    rm.ask("accepted", vcore=100)
    rm.ask("running", "more", vcore=100)
    rm.take_response()
    return rm


@pytest.mark.parametrize("app_id", ["new", "accepted", "starting", "running"])
def test_removing_the_partition_fails_its_applications(app_id: str) -> None:
    rm = failing()
    app = rm.find_app(app_id)
    rm.reload(ONE)
    assert [entry.state for entry in app.state_log][-2:] == ["Failing", "Failed"]
    assert reported(rm, app_id) == ["Failing", "Failed"]
    assert all("partition default was removed" in entry.reason for entry in app.state_log[-2:])
    assert not app.asks
    assert not app.allocations


def test_failed_application_releases_its_allocations_and_asks() -> None:
    rm = failing()
    rm.reload(ONE)
    received = rm.take_response()
    assert {one.application_id for one in received.released_allocations} == {"starting", "running"}
    assert {(one.application_id, one.allocation_key) for one in received.released_allocation_asks} >= {
        ("accepted", "ask"),
        ("running", "more"),
    }
    assert rm.running == {}


def test_failing_application_accepts_no_asks() -> None:
    rm = one_node()
    rm.app()
    rm.ask(vcore=1)
    rm.at_work().partition.states.fire(rm.find_app(), "fail", "test")
    rm.ask(key="late", vcore=1)
    (refused,) = rm.entries("rejected_allocations")
    assert refused.reason == "application app is failing and accepts no new requests"


def test_the_state_log_has_state_time_and_reason() -> None:
    rm = one_node()
    rm.pass_time(3)
    rm.app()
    rm.pass_time(4)
    rm.ask(vcore=1)
    rm.pass_time(5)
    rm.schedule()
    rm.pass_time(300)
    log = [(entry.state, entry.time // SECOND) for entry in rm.find_app().state_log]
    assert log == [("Accepted", 7), ("Starting", 12), ("Running", 312)]
    assert all(entry.reason for entry in rm.find_app().state_log)


def test_long_state_log_drops_its_middle() -> None:
    rm = one_node()
    rm.app()
    for number in range(200):
        rm.pass_time(1)
        rm.ask(key=f"ask-{number}", vcore=1)
        rm.schedule()
        rm.release(key=f"ask-{number}")
    app = rm.find_app()
    assert app.state == "Completing"
    log = [(entry.state, entry.time // SECOND) for entry in app.state_log]
    assert len(log) == LOG_LENGTH
    assert log[:4] == [("Accepted", 1), ("Starting", 1), ("Completing", 1), ("Running", 2)]
    assert log[-2:] == [("Running", 200), ("Completing", 200)]
    assert [time for _, time in log] == sorted(time for _, time in log)


def test_every_state_change_is_reported_with_time_and_reason() -> None:
    rm = one_node()
    rm.app()
    rm.pass_time(2)
    rm.ask(vcore=1)
    rm.schedule()
    rm.release(key="ask")
    rm.pass_time(30)
    updates = rm.entries("updated_applications")
    assert [one.state for one in updates] == ["Accepted", "Starting", "Completing", "Completed"]
    assert [one.state_transition_timestamp // SECOND for one in updates] == [2, 2, 2, 32]
    assert [one.message for one in updates] == [entry.reason for entry in rm.find_app().state_log]


def test_running_to_running_is_not_reported() -> None:
    rm = one_node()
    rm.app()
    rm.ask(vcore=1, count=2)
    rm.schedule()
    rm.take_response()
    rm.ask(key="more", vcore=1, count=3)
    rm.schedule()
    assert reported(rm) == []
    assert history(rm) == ["Accepted", "Starting", "Running"]


def test_illegal_event_error_names_application_state_and_event() -> None:
    rm = one_node()
    rm.app()
    with pytest.raises(StateError, match="application app is New: event complete is not possible"):
        rm.at_work().partition.states.fire(rm.find_app(), "complete")


def test_the_running_counter_follows_the_states_in_every_queue_above() -> None:
    rm = RM(configuration(queue("p", queue("a"), queue("b"))))
    rm.node(vcore=10)
    rm.app("one", "root.p.a")
    rm.app("two", "root.p.b")
    rm.ask("one", vcore=1, count=2)
    rm.ask("two", vcore=1)

    def counts() -> list[int]:
        return [rm.find_queue(path).running for path in ("root.p.a", "root.p.b", "root.p", "root")]

    assert counts() == [0, 0, 0, 0]
    rm.schedule()
    assert counts() == [1, 1, 2, 2]
    rm.pass_time(300)
    assert counts() == [1, 1, 2, 2], "from Starting to Running nothing changes"
    rm.release("two", key="ask")
    assert counts() == [1, 0, 1, 1]
    rm.ask("two", "again", vcore=1)
    assert counts() == [1, 1, 2, 2], "from Completing to Running it counts again"
    rm.remove_app("one")
    assert counts() == [0, 1, 1, 1], "an application that is taken away while it runs counts no more"


def test_removed_application_releases_everything_and_its_id_is_reusable() -> None:
    rm = one_node()
    rm.app()
    rm.ask(vcore=1, count=20)
    rm.schedule()
    rm.take_response()
    rm.remove_app("app")
    received = rm.take_response()
    assert len(received.released_allocations) == 10
    assert {one.message for one in received.released_allocations} == {"Application app Removed"}
    assert reported(rm) == []
    assert rm.find_queue().waiting == 0
    rm.pass_time(1000)
    rm.app()
    assert [one.application_id for one in rm.take_response().accepted_applications] == ["app"]
    assert rm.schedule() == []


def test_removing_an_unknown_application_is_harmless() -> None:
    rm = one_node()
    rm.remove_app("nobody")
    assert rm.responses[1:] == []


def test_dynamic_queue_is_removed_ten_seconds_after_its_last_application() -> None:
    rm = RM(configuration(queue("a"), placementrules=[{"name": "user", "create": True}]))
    rm.app(user="jane")
    rm.ask(vcore=1)
    rm.release_ask(key="ask")
    rm.pass_time(30)
    assert rm.state() == "Completed"
    assert rm.at_work().partition.queue("root.jane") is not None
    rm.pass_time(10)
    assert rm.at_work().partition.queue("root.jane") is None
