"""Admission policies that workers call: the application is held until the answer arrives."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from tests.core.kit import RM, configuration, queue, with_plugins
from tests.core.manual_workers import (
    Licence,
    ManualWorkers,
    acceptances,
    core_with_workers,
    registry_of,
    rejections,
)
from yunikorn.api import AdmissionPolicy, Application, Queue
from yunikorn.interface.messages import UpdateResponse
from yunikorn.scheduling.admission.policy_copies import ApplicationCopy, QueueCopy
from yunikorn.states import FAILED

CONFIG = configuration(queue("a", resources={"max": {"vcore": 4}}), admission=["licence"])


def cluster(config: str = CONFIG) -> tuple[RM, ManualWorkers]:
    core: Any = core_with_workers(registry_of())
    rm = RM(config, scheduler=core)
    rm.node(vcore=8)
    return rm, core.manual_workers


def reasons(rm: RM) -> list[str]:
    """Return why the ask of application `app` is pending."""
    return [str(one) for one in rm.scheduler.explain("rm", "default", "app")["ask"].reasons]


def told(responses: list[UpdateResponse]) -> list[str]:
    """Return the messages about held and admitted applications."""
    return [
        state.message
        for each in responses
        for state in each.updated_applications
        if "admission policy" in state.message
    ]


def test_application_is_held_until_the_answer() -> None:
    rm, workers = cluster()
    rm.app()
    rm.ask(vcore=1)
    rm.app("other")
    assert acceptances(rm.responses) == ["app", "other"]
    assert rm.schedule() == []
    assert "held by admission policy licence: its answer is awaited" in reasons(rm)[0]
    workers.answer()
    assert rm.schedule() == [("app", "ask", "n1")]
    workers.answer()
    rm.ask("other", vcore=1)
    assert rm.schedule() == [("other", "ask", "n1")]
    assert told(rm.responses) == []
    assert len(rm.at_work().held_applications) == 0


def test_policy_gets_a_copy() -> None:
    rm, workers = cluster()
    rm.app("app", user="ann", licence="")
    rm.ask(vcore=1)
    workers.answer()
    (seen,) = Licence.seen
    assert (seen.id, seen.user, list(seen.groups), seen.queue.path) == ("app", "ann", ["group"], "root.a")
    assert (seen.queue.max, seen.queue.parent.path, seen.queue.parent.parent) == (
        {"vcore": 4000},
        "root",
        None,
    )
    assert not hasattr(seen, "allocations")
    assert rm.schedule() == [("app", "ask", "n1")]
    assert seen.queue.allocated == {}
    assert seen.state == "New"


def test_copy_has_the_max_in_force_and_the_configured_one() -> None:
    quota = {"quota.policy": "borrowing"}
    borrower = queue("a", resources={"max": {"vcore": 4}}, properties=quota)
    rm, workers = cluster(
        configuration(borrower, queue("b", resources={"max": {"vcore": 2}}), admission=["licence"])
    )
    rm.app("first")
    workers.answer()
    rm.ask("first", count=5, vcore=1)
    assert len(rm.schedule()) == 5
    rm.app("second")
    workers.answer()
    found = Licence.seen[-1].queue
    assert (found.configured_max, found.max, found.unused_by_siblings, found.is_leaf) == (
        {"vcore": 4000},
        {"vcore": 6000},
        {"vcore": 2000},
        True,
    )
    assert not found.parent.is_leaf


@pytest.mark.parametrize(("view", "copy"), [(Queue, QueueCopy), (Application, ApplicationCopy)])
def test_copies_have_everything_but_allocations(view: type[Any], copy: type[Any]) -> None:
    declared = {name for name, one in vars(view).items() if isinstance(one, property)}
    assert declared - {one.name for one in attrs.fields(copy)} <= {"allocations", "allocations_by_node"}


def test_policy_gets_a_copy_without_workers() -> None:
    rm = RM(CONFIG, registry_of())
    rm.app()
    (seen,) = Licence.seen
    assert type(seen).__name__ == "ApplicationCopy"
    assert rm.find_app().held is None


def test_rejection_fails_the_application() -> None:
    rm, workers = cluster()
    rm.app("app", licence="no licence")
    rm.ask(vcore=1)
    workers.answer()
    assert rm.state() == FAILED
    assert "admission policy licence rejects application app: no licence" in rm.find_app().reason
    assert rejections(rm.responses) == {}
    assert [one.allocation_key for each in rm.responses for one in each.released_allocation_asks] == ["ask"]


def test_wait_is_applied_and_asked_again() -> None:
    rm, workers = cluster()
    rm.app("app", licence="20")
    rm.ask(vcore=1)
    workers.answer()
    assert "no licence is free" in reasons(rm)[0]
    rm.find_app().tags = {}
    rm.pass_time(20)
    assert rm.schedule() == []
    workers.answer()
    assert rm.schedule() == [("app", "ask", "n1")]


def test_failure_and_silence_hold_the_application() -> None:
    rm, workers = cluster()
    rm.app("app", licence="raise")
    rm.ask(vcore=1)
    workers.answer()
    assert "SystemExit: 3" in reasons(rm)[0]
    rm.pass_time(60)
    rm.pass_time(10)
    assert workers.abandoned == [2]
    assert "plugin licence" in reasons(rm)[0]
    assert "it has not returned within 10s" in reasons(rm)[0]
    rm.find_app().tags = {}
    rm.pass_time(60)
    workers.answer(2)
    assert rm.schedule() == []
    workers.answer(3)
    assert rm.schedule() == [("app", "ask", "n1")]


def test_application_that_leaves_is_not_asked_about() -> None:
    rm, workers = cluster()
    for name in ("app", "other", "failed"):
        rm.app(name)
    rm.remove_app("other")
    rm.scheduler.fail_application("rm", "default", "failed", "x")
    assert workers.answer_all() == 1
    assert len(rm.at_work().held_applications) == 0


def test_policies_of_both_kinds_are_asked_in_order() -> None:
    rm, workers = cluster(configuration(queue("a"), admission=["licence"], submitpolicies=["site"]))
    rm.app("app")
    rm.ask(vcore=1)
    workers.answer()
    assert acceptances(rm.responses) == ["app"]
    assert rm.schedule() == []
    workers.answer()
    assert rm.schedule() == [("app", "ask", "n1")]


def test_recovered_application_is_not_asked_about() -> None:
    rm, workers = cluster()
    rm.app_tagged("app", "root.a", {"application.create.force": "true"})
    assert rm.find_app().held is None
    assert not workers.waiting


@pytest.mark.parametrize("config", [CONFIG + " ", configuration(queue("a"))])
def test_reload_asks_again_or_admits(config: str) -> None:
    rm, workers = cluster()
    rm.app()
    rm.ask(vcore=1)
    rm.reload(config)
    if config == CONFIG + " ":
        workers.answer()
        assert rm.schedule() == []
        workers.answer()
    assert rm.schedule() == [("app", "ask", "n1")]


class Many(AdmissionPolicy):
    name = "many"
    blocking = True
    calls_at_once = 3

    def admit(self, app: Application) -> None:
        pass


def test_policy_is_asked_about_several_applications_at_once() -> None:
    core: Any = core_with_workers(with_plugins(admission_policies=[Many]))
    rm = RM(configuration(queue("a"), admission=["many"]), scheduler=core)
    for number in range(4):
        rm.app(f"app{number}")
    assert len(core.manual_workers.waiting) == 3
