"""The log of requests that are not tried at all: each condition that keeps them waiting is in the log."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.core.gangs import GangRM
from tests.core.kit import RM, configuration, queue, with_plugins
from tests.plugins.permit_kit import Gate as PermitGate
from tests.plugins.permit_kit import PermitRM, clear
from tests.plugins.permit_kit import cluster as permit_cluster
from tests.rest.test_waiting import log_of
from yunikorn.api import AdmissionPolicy, Application, Wait
from yunikorn.model.context import Timeouts

_ = pytest.fixture(autouse=True)(clear)
OTHER = "partition/default/application/other"


def full(**keys: object) -> RM:
    """Return an RM whose application `other` may not start, from second 1 on, because `app` runs."""
    rm = RM(configuration(queue("a", **keys)))
    rm.node("n1", vcore=8_000)
    rm.app()
    rm.app("other")
    rm.pass_time(1)
    rm.ask(vcore=1_000)
    rm.ask("other", key="other", vcore=1_000)
    rm.schedule()
    return rm


LIMITS: dict[str, dict[str, object]] = {
    "queue root.a": {"maxapplications": 1},
    "user user in queue root.a": {"limits": [{"limit": "", "users": ["user"], "maxapplications": 1}]},
    "group group in queue root.a": {"limits": [{"limit": "", "groups": ["group"], "maxapplications": 1}]},
}


@pytest.mark.parametrize("holder", LIMITS)
def test_request_of_an_application_over_the_maximum_counts_how_often_it_was_reached(holder: str) -> None:
    rm = full(**LIMITS[holder])
    reason = f"no more applications may run: {holder}"
    assert log_of(rm, "other", OTHER) == [(reason, 1, 1)]
    # A later request has it as well, and so have all requests after another application took the place.
    rm.pass_time(1)
    rm.app("first")
    rm.ask("first", key="first", priority=9, vcore=1_000)
    rm.ask("other", key="later", vcore=1_000)
    assert log_of(rm, "later", OTHER) == [(reason, 1, 1)]
    rm.pass_time(1)
    rm.remove_app("app")
    assert [key for _, key, _ in rm.schedule()] == ["first"]
    assert log_of(rm, "other", OTHER) == log_of(rm, "later", OTHER) == [(reason, 2, 3)]
    rm.remove_app("first")
    assert log_of(rm, "later", OTHER) == [], "nothing stops it now"


def stop_queue(rm: RM) -> None:
    rm.scheduler.stop_queue("rm", "default", "root.a")


def stop_root(rm: RM) -> None:
    rm.scheduler.stop_queue("rm", "default", "root")


def stop_partition(rm: RM) -> None:
    rm.scheduler.stop_partition("rm", "default")


@pytest.mark.parametrize(
    ("stop", "what"), [(stop_queue, "queue root.a"), (stop_root, "queue root"), (stop_partition, "partition")]
)
def test_request_in_what_is_stopped(stop: Callable[[RM], None], what: str) -> None:
    rm = RM(configuration(queue("a")))
    rm.node("n1", vcore=8)
    rm.app()
    rm.pass_time(1)
    rm.ask(key="early", vcore=9)
    rm.schedule()
    rm.ask(vcore=1)
    rm.pass_time(1)
    stop(rm)
    rm.schedule()
    (entry,) = log_of(rm)
    assert entry[0].startswith(what)
    assert entry[0].endswith("is stopped")
    assert entry[1:] == (1, 2)
    # What stopped a request before is still said.
    assert [count for _, count, _ in log_of(rm, "early")] == [1, 1]


class Closed(AdmissionPolicy):
    """Admits nothing."""

    name = "closed"

    def admit(self, app: Application) -> Wait:
        return Wait(10, "the licence server is full")


def test_request_of_an_application_that_an_admission_policy_holds_counts_the_questions() -> None:
    rm = RM(configuration(admission=["closed"]), with_plugins(admission_policies=[Closed]))
    rm.pass_time(1)
    rm.node("n1", vcore=8)
    rm.app()
    rm.pass_time(1)
    rm.ask(vcore=1)
    rm.schedule()
    assert log_of(rm) == [("held by admission policy closed", 1, 1)]
    rm.pass_time(20)
    assert log_of(rm) == [("held by admission policy closed", 3, 21)]


def test_request_of_an_application_that_the_sort_policy_excludes() -> None:
    rm = RM(configuration(queue("a", properties={"application.sort.policy": "stateaware"})))
    rm.node("n1", vcore=8)
    rm.app("first")
    rm.app()
    rm.pass_time(1)
    rm.ask("first", key="first", vcore=1)
    rm.ask(vcore=1)
    rm.schedule()
    assert log_of(rm) == [("other applications of queue root.a have precedence", 1, 1)]


def test_request_of_an_application_in_back_off() -> None:
    properties = {"application.unschedasks.backoff": "1", "application.unschedasks.backoff.delay": "10s"}
    rm = RM(configuration(queue("a", properties=properties)))
    rm.node("n1", vcore=4)
    rm.node("n2", vcore=4)
    rm.app()
    rm.pass_time(1)
    rm.ask(key="large", vcore=6)
    rm.schedule()
    rm.pass_time(1)
    rm.ask(vcore=1)
    rm.schedule()
    assert log_of(rm) == [("the application is in back-off: its requests found no node", 1, 1)]


def test_request_that_waits_for_its_placeholder_and_member_of_an_incomplete_gang() -> None:
    rm = GangRM(configuration(queue("a")))
    rm.node("n1", vcore=4)
    rm.pass_time(1)
    rm.gang("app", vcore=9)
    rm.task("app", "holder", "workers", placeholder=True, vcore=9)
    rm.task("app", "real", "workers", vcore=9)
    rm.gang("other", "Atomic", vcore=9)
    rm.task("other", "member", "workers", 2, vcore=3)
    rm.schedule()
    assert log_of(rm, "real")[-1] == ("waits to replace a placeholder of its task group", 1, 1)
    assert log_of(rm, "member", OTHER) == [("its gang is incomplete", 1, 1)]
    rm.task("other", "last", "workers", vcore=3)
    rm.schedule()
    for key in "member", "last":
        assert [message for message, _, _ in log_of(rm, key, OTHER)] == ["Not enough queue quota"]


def test_members_of_a_gang_that_holds_others_back_over_its_quota_and_those_held_back() -> None:
    rm = GangRM(configuration(queue("a")), timeouts=Timeouts(gang_patience=5_000_000_000))
    rm.node("n1", vcore=4)
    rm.app("runs")
    rm.ask("runs", key="runs", vcore=2)
    rm.schedule()
    rm.gang("app", "Atomic", vcore=4)
    rm.task("app", "member", "workers", 2, vcore=2)
    rm.schedule()
    rm.pass_time(10)
    rm.app("other")
    rm.ask("other", key="other", vcore=1)
    rm.schedule()
    assert [message for message, _, _ in log_of(rm, "member")] == ["Not enough queue quota"]
    counts = [count for _, count, _ in log_of(rm, "member")]
    (entry,) = log_of(rm, "other", OTHER)
    assert entry[0] == "an overdue gang has precedence"
    rm.node("n2", vcore=1)
    rm.schedule()
    assert next(count for _, count, _ in log_of(rm, "member")) > counts[0]


def test_gang_that_a_permit_policy_refused() -> None:
    rm: PermitRM = permit_cluster()
    PermitGate.answers["t2"] = "no licence"
    rm.pass_time(1)
    rm.gang("app", "Atomic", vcore=3)
    for number in range(3):
        rm.task("app", f"t{number}", "workers", vcore=1)
    rm.schedule()
    ((message, count, _),) = log_of(rm, "t0")
    assert "no licence" in message
    for number in range(5, 12):
        rm.pass_time(2)
        rm.node(f"n{number}", vcore=1)
        rm.schedule()
    ((message, later, _),) = log_of(rm, "t0")
    assert "no licence" in message
    assert later > count
