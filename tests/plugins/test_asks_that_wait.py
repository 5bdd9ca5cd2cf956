"""Asks that wait for the answer of a submit policy are work of their application, like pending ones."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.gangs import GangRM
from tests.core.kit import RM, configuration, queue, with_plugins
from tests.core.manual_workers import ManualWorkers, core_with_workers
from yunikorn.api import AskSubmission, SubmitPolicy
from yunikorn.interface.messages import Allocation
from yunikorn.resources import Resource
from yunikorn.states import COMPLETED, COMPLETING, NEW, RUNNING


class Slow(SubmitPolicy):
    """Checks asks by a service that may block."""

    name = "slow"

    def submit(self, app: Any) -> None:
        return None

    def submit_ask(self, ask: AskSubmission) -> str | None:
        return ask.tags.get("refuse")


class Quick(Slow):
    """The same at once."""

    name = "quick"
    blocking = False


def start(policy: str = "slow", make: type[RM] = RM, **limits: Any) -> tuple[Any, ManualWorkers]:
    core: Any = core_with_workers(with_plugins(submit_policies=[Slow, Quick]))
    rm = make(configuration(queue("a", **limits), submitpolicies=[policy]), scheduler=core)
    rm.node(vcore=4)
    return rm, core.manual_workers


def with_app(policy: str = "slow") -> tuple[RM, ManualWorkers]:
    rm, workers = start(policy)
    rm.app()
    workers.answer_all()
    return rm, workers


def run(rm: RM, workers: ManualWorkers, app_id: str, key: str) -> str:
    """Run a task, and return the uuid of its allocation."""
    rm.ask(app_id, key, vcore=1)
    workers.answer_all()
    rm.schedule()
    return next(uuid for uuid, one in rm.running.items() if one.allocation_key == key)


def released(rm: RM) -> list[str]:
    return [one.allocation_key for one in rm.entries("released_allocation_asks")]


# -- the application continues ---------------------------------------------------------------------------


def test_an_application_does_not_complete_while_an_ask_waits() -> None:
    rm, workers = with_app()
    uuid = run(rm, workers, "app", "a")
    rm.ask(key="b", vcore=1)
    rm.release("app", uuid)
    assert rm.state() != COMPLETING
    workers.answer_all()
    assert [key for _, key, _ in rm.schedule()] == ["b"]


def test_an_ask_that_waits_makes_a_completing_application_continue() -> None:
    rm, workers = with_app()
    rm.release("app", run(rm, workers, "app", "a"))
    assert rm.state() == COMPLETING
    rm.pass_time(25)
    rm.ask(key="b", vcore=1)
    assert rm.state() == RUNNING
    rm.pass_time(6)
    workers.answer_all()
    assert [key for _, key, _ in rm.schedule()] == ["b"]


@pytest.mark.parametrize("end", ["refused", "released", "stopped", "no answer"])
def test_an_application_completes_after_the_last_ask_that_waited(end: str) -> None:
    rm, workers = with_app()
    rm.release("app", run(rm, workers, "app", "a"))
    rm.ask(key="b", vcore=1, tags={"refuse": "no"})
    assert rm.state() == RUNNING
    if end == "refused":
        workers.answer_all()
    elif end == "released":
        rm.release_ask("app", "b")
    elif end == "stopped":
        rm.release("app", "", "b")
    else:
        rm.pass_time(10)
    assert rm.state() == COMPLETING
    rm.pass_time(30)
    assert rm.find_app("app").state == COMPLETED


def test_a_refused_first_ask_leaves_the_application_new() -> None:
    rm, workers = with_app()
    rm.ask(key="b", vcore=1, tags={"refuse": "no"})
    workers.answer_all()
    assert rm.state() == NEW


def test_an_application_keeps_its_place_while_an_ask_waits() -> None:
    rm, workers = start(limits=[{"limit": "x", "users": ["*"], "maxapplications": 1}])
    rm.app("one")
    rm.app("two")
    workers.answer_all()
    uuid = run(rm, workers, "one", "a")
    rm.ask("two", "z", vcore=1)
    workers.answer_all()
    rm.ask("one", "b", vcore=1, tags={"refuse": "no"})
    rm.release("one", uuid)
    assert rm.schedule() == []
    workers.answer_all()
    assert rm.schedule() == [("two", "z", "n1")]


def hard_gang_with_a_real_ask() -> tuple[Any, Any]:
    """Return an RM with a complete gang and a real ask about which a policy is asked, and the workers."""
    rm, workers = start(make=GangRM)
    rm.gang("g", "Hard", seconds=5, vcore=2)
    workers.answer_all()
    rm.task("g", "p", "tg", count=2, placeholder=True, vcore=1)
    workers.answer_all()
    rm.scheduler.schedule()
    rm.task("g", "r", "tg", vcore=1)
    return rm, workers


def test_a_hard_gang_does_not_fail_while_its_first_real_ask_waits() -> None:
    rm, workers = hard_gang_with_a_real_ask()
    rm.pass_time(6)
    workers.answer_all()
    rm.scheduler.schedule()
    rm.confirm()
    assert [one.allocation_key for one in rm.running.values() if not one.placeholder] == ["r"]
    rm.pass_time(2)
    rm.confirm()
    assert [one.allocation_key for one in rm.running.values()] == ["r"]


def test_a_hard_gang_fails_when_its_first_real_ask_is_refused() -> None:
    rm, _ = hard_gang_with_a_real_ask()
    rm.pass_time(16)
    rm.confirm()
    assert rm.find_app("g").state == "Failed"


# -- placements by the RM, and releases ------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["slow", "quick"])
@pytest.mark.parametrize("count", [1, 2])
def test_a_placement_by_the_rm_satisfies_an_ask_that_waits(policy: str, count: int) -> None:
    rm, workers = with_app(policy)
    rm.ask(key="x", vcore=1, count=count)
    rm.update(allocations=[Allocation("x", "app", node_id="n1", resource_per_alloc=Resource(vcore=1))])
    assert len(rm.find_app().allocations) == 1
    workers.answer_all()
    rm.schedule()
    assert len(rm.find_app().allocations) == count


@pytest.mark.parametrize("policy", ["slow", "quick"])
def test_a_placement_by_the_rm_satisfies_a_change_that_waits(policy: str) -> None:
    rm, workers = with_app(policy)
    rm.ask(key="x", vcore=2)
    workers.answer_all()
    rm.ask(key="x", vcore=1)
    rm.update(allocations=[Allocation("x", "app", node_id="n1", resource_per_alloc=Resource(vcore=1))])
    workers.answer_all()
    assert rm.schedule() == []
    assert len(rm.find_app().allocations) == 1


@pytest.mark.parametrize("key", ["x", ""])
@pytest.mark.parametrize("policy", ["slow", "quick"])
def test_a_release_of_allocations_by_key_ends_an_ask_that_waits(policy: str, key: str) -> None:
    rm, workers = with_app(policy)
    rm.ask(key="x", vcore=1)
    rm.release("app", "", key)
    assert released(rm) == ["x"]
    assert rm.entries("released_allocations") == []
    workers.answer_all()
    assert rm.schedule() == []


@pytest.mark.parametrize("policy", ["slow", "quick"])
@pytest.mark.parametrize("stop", [False, True])
def test_a_released_ask_is_reported_once_while_a_change_waits(policy: str, stop: bool) -> None:
    rm, workers = with_app(policy)
    rm.ask(key="x", vcore=9)
    workers.answer_all()
    rm.ask(key="x", vcore=8)
    if stop:
        rm.release("app", "", "")
    else:
        rm.release_ask("app", "")
    assert released(rm) == ["x"]
    workers.answer_all()
    assert rm.find_app().asks == {}
