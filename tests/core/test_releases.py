"""Releases of asks and allocations: each end is reported with the message of its release."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.gangs import GangRM
from tests.core.kit import RM
from tests.shim_plugins.shim import Listening
from yunikorn.interface.messages import (
    Allocation,
    AllocationAsk,
    AllocationAskRelease,
    AllocationRelease,
    AllocationReleasesRequest,
    TerminationType,
)
from yunikorn.resources import Resource


def started(vcore: int = 10) -> RM:
    """Return an RM with a node and an application."""
    rm = RM()
    rm.node(vcore=vcore)
    rm.app()
    return rm


def test_a_late_confirmation_of_the_end_of_an_ask_is_counted_as_such() -> None:
    rm = started()
    gone = AllocationAskRelease("app", "ask", termination_type=TerminationType.TIMEOUT)
    rm.update(releases=AllocationReleasesRequest([], [gone]))
    (answer,) = rm.take_response().released_allocation_asks
    assert answer.termination_type == TerminationType.STOPPED_BY_RM, "which no RM confirms in turn"
    assert (
        rm.at_work().partition.unknown_releases.releases,
        rm.at_work().partition.unknown_releases.confirmations,
    ) == (0, 1)


def test_release_of_all_asks_of_an_application_without_asks_has_no_answer() -> None:
    rm = started()
    rm.take_response()
    rm.release_ask("app")
    assert rm.take_response().released_allocation_asks == []


def test_release_without_uuid_reports_the_pending_asks_that_it_ends() -> None:
    rm = started(vcore=2)
    rm.ask(key="served", count=2, vcore=1)
    rm.schedule()
    rm.ask(key="waits", vcore=1)
    rm.ask(key="too", vcore=1)
    rm.take_response()
    rm.release(key="too")
    rm.release()
    received = rm.take_response()
    assert [
        (one.allocation_key, one.termination_type, one.message) for one in received.released_allocation_asks
    ] == [
        ("too", TerminationType.STOPPED_BY_RM, "ask released as per RM request"),
        ("waits", TerminationType.STOPPED_BY_RM, "ask released as per RM request"),
    ]
    assert [one.allocation_key for one in received.released_allocations] == ["served", "served"]


def test_message_of_a_release_is_in_the_response_and_the_events() -> None:
    rm = Listening()
    rm.node(vcore=2)
    rm.app()
    rm.ask(key="runs", vcore=1)
    rm.ask(key="ends", vcore=1)
    rm.schedule()
    rm.ask(key="waits", vcore=1)
    rm.ask(key="drops", vcore=1)
    rm.take_response()
    rm.events.clear()
    ends = next(uuid for uuid, one in rm.running.items() if one.allocation_key == "ends")
    rm.update(
        releases=AllocationReleasesRequest(
            [
                AllocationRelease("app", ends, message="it has done its work"),
                AllocationRelease("app", "never", message="a mistake"),
                AllocationRelease("app", allocation_key="drops", message="not needed"),
            ],
            [AllocationAskRelease("app", "waits", message="x" * 2000)],
        )
    )
    received = rm.take_response()
    assert [one.message for one in received.released_allocations] == [
        "it has done its work",
        "allocation 'never' is unknown or no longer exists: nothing was released",
    ]
    assert [(one.allocation_key, one.message) for one in received.released_allocation_asks] == [
        ("waits", "x" * 1021 + "..."),
        ("drops", "not needed"),
    ]
    reported = [
        one.message for one in rm.events if one.type.name == "APP" and one.message.startswith("REMOVE ")
    ]
    assert reported == [
        "REMOVE waits vcore 1m: " + "x" * 1021 + "...",
        f"REMOVE {ends} vcore 1m: it has done its work",
        "REMOVE drops vcore 1m: not needed",
    ]


def test_the_message_of_a_confirmation_is_in_the_event() -> None:
    rm = Listening()
    rm.node(vcore=2)
    rm.app()
    rm.update(asks=[AllocationAsk("ask", "app", "", Resource(vcore=1), execution_timeout_ms=1000)])
    rm.schedule()
    rm.pass_time(1)
    rm.events.clear()
    (uuid,) = rm.evicted
    gone = AllocationRelease("app", uuid, "", TerminationType.TIMEOUT, "killed with signal 9")
    rm.update(releases=AllocationReleasesRequest([gone], []))
    (reported,) = [one for one in rm.events if one.reason == "ALLOC_TIMEOUT"]
    assert reported.message == f"REMOVE {uuid} vcore 1m: killed with signal 9"


@pytest.mark.parametrize("message", [7, None, "\ud800"])
def test_message_that_is_no_text_is_rejected(message: Any) -> None:
    rm = started()
    rm.ask(vcore=100)
    rm.take_response()
    rm.update(
        releases=AllocationReleasesRequest(
            [AllocationRelease("app", message=message)], [AllocationAskRelease("app", message=message)]
        )
    )
    refused = rm.take_response().rejected_allocations
    assert len(refused) == 2
    assert all(one.reason.startswith("message is ") for one in refused)
    assert list(rm.find_app().asks) == ["ask"]


# -- the state of an ask -------------------------------------------------------------------------------------


def test_an_ask_is_rejected_when_the_rm_or_the_scheduler_ends_it_while_it_is_pending() -> None:
    rm = started(vcore=3)
    for key in ("released", "by-key", "partly", "failed"):
        rm.ask(key=key, count=2, vcore=1)
    rm.app("gone")
    rm.ask("gone", "removed", vcore=9)
    rm.ask(key="served", vcore=1, priority=1)
    rm.schedule()
    asks = {**rm.find_app().asks, **rm.find_app("gone").asks}
    assert asks["released"].state == asks["served"].state == "Allocated"
    assert {asks[key].state for key in ("by-key", "partly", "failed", "removed")} == {"Pending"}
    rm.release_ask(key="released")
    rm.release(key="by-key")
    rm.release_ask(key="partly")
    rm.remove_app("gone")
    rm.scheduler.fail_application("rm", "default", "app", "why")
    assert {key: ask.state for key, ask in asks.items()} == {
        "released": "Allocated",
        "served": "Allocated",
        "by-key": "Rejected",
        "partly": "Rejected",
        "failed": "Rejected",
        "removed": "Rejected",
    }


def test_replacing_ask_is_rejected_when_it_ends_before_its_replacement() -> None:
    rm = GangRM()
    rm.node(vcore=4)
    rm.gang("gang", vcore=2)
    rm.task("gang", "ph", "g", 2, placeholder=True, vcore=1)
    rm.schedule()
    rm.task("gang", "real", "g", 1, vcore=1)
    rm.task("gang", "other", "g", 1, vcore=1)
    rm.schedule()
    real, other = rm.find_app("gang").asks["real"], rm.find_app("gang").asks["other"]
    assert real.state == other.state == "Allocated"
    rm.release_ask("gang", "real")
    rm.remove_app("gang")
    assert real.state == other.state == "Rejected"


def refusals(rm: RM) -> list[str]:
    """Return the rejections since the last call, and assert that nothing else was answered."""
    received = rm.take_response()
    assert received.released_allocations == []
    return [one.reason for one in received.rejected_allocations]


def test_release_by_key_alone_of_a_running_allocation_is_rejected_and_names_the_application() -> None:
    rm = started()
    rm.ask(key="k", vcore=1)
    rm.schedule()
    rm.take_response()
    rm.release("", key="k")
    assert refusals(rm) == [
        "allocation key 'k' is used by application app; the release must name the application: "
        "nothing was released"
    ]
    assert len(rm.running) == 1
    assert rm.at_work().partition.unknown_releases.releases == 1


def test_release_by_key_alone_names_or_counts_all_applications_that_run_the_key() -> None:
    rm = started(vcore=20)
    rm.release("", key="k")
    assert len(rm.take_response().released_allocations) == 1, "nothing runs yet"
    for number in range(7):
        rm.app(f"a{number}")
        rm.ask(f"a{number}", "k", count=2, vcore=1)
        rm.schedule()
    rm.take_response()
    expected = {
        2: "applications a0 and a1",
        3: "applications a0, a1 and a2",
        7: "applications a0, a1, a2, a3, a4 and 2 more",
    }
    for left in range(7, 0, -1):
        rm.release("", key="k")
        (reason,) = refusals(rm)
        if left in expected:
            assert f"is used by {expected[left]}; the release" in reason
        rm.remove_app(f"a{left - 1}")
        rm.take_response()
    rm.release("", key="k")
    (answer,) = rm.take_response().released_allocations
    assert answer.message == "allocation key 'k' is unknown or no longer exists: nothing was released"


def test_release_by_key_alone_follows_added_and_removed_allocations() -> None:
    rm = started()
    rm.release("", key="asked")
    rm.ask(key="asked", count=2, vcore=1)
    rm.release("", key="asked")
    assert len(rm.take_response().released_allocations) == 2, "an ask that waits has nothing to release"
    rm.schedule()
    rm.update(allocations=[Allocation("placed", "app", "p1", "n1", Resource(vcore=1))])
    rm.take_response()
    for key in ("asked", "placed"):
        rm.release("", key=key)
        assert len(refusals(rm)) == 1
    first, second = (uuid for uuid in rm.running if uuid != "p1")
    for uuid in (first, "p1"):
        rm.release(uuid=uuid)
    rm.take_response()
    rm.release("", key="asked")
    assert len(refusals(rm)) == 1
    rm.release(uuid=second)
    rm.take_response()
    for key in ("asked", "placed"):
        rm.release("", key=key)
    assert len(rm.take_response().released_allocations) == 2


@pytest.mark.parametrize("indexed", [False, True], ids=["at the release", "before all"])
def test_release_by_key_alone_names_applications_in_the_order_of_their_arrival(indexed: bool) -> None:
    """The order does not depend on when the index of allocations was made."""
    rm = RM()
    rm.node(vcore=10)
    if indexed:
        assert rm.at_work().partition.accounting.allocations == {}
    rm.app("first")
    rm.app("second")
    for app_id in ("second", "first"):
        rm.ask(app_id, "k", vcore=1)
        rm.schedule()
    rm.release(app_id="", key="k")
    (refusal,) = rm.responses[-1].rejected_allocations
    assert "is used by applications first and second" in refusal.reason


def test_foreign_allocation_is_released_by_a_key_that_an_application_also_runs() -> None:
    rm = started()
    rm.ask(key="k", vcore=1)
    rm.schedule()
    tags = {"foreign": "default"}
    rm.update(allocations=[Allocation("k", "", "", "n1", Resource(vcore=1), allocation_tags=tags)])
    rm.take_response()
    rm.release("", key="k")
    assert refusals(rm) == []
    assert len(rm.at_work().partition.foreign) == 0
