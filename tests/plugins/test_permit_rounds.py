"""Permit policies that hold placements and refuse them later: scheduling ends, and goes on after a pause."""

from __future__ import annotations

from typing import Any

import pytest

from tests.plugins.permit_kit import WAIT, Gate, PermitRM, clear, cluster

_ = pytest.fixture(autouse=True)(clear)
MANY = 200
"""More decisions than any of these tests needs."""


def wait_and_refuse() -> None:
    """Let the gate hold each placement at the first question, and refuse it at the second."""
    asked: dict[str, int] = {}

    def answer(allocation: Any) -> Any:
        asked[allocation.uuid] = asked.get(allocation.uuid, 0) + 1
        return WAIT if asked[allocation.uuid] == 1 else "its group is too large"

    Gate.answers["*"] = answer


def singles(rm: PermitRM) -> None:
    """Ask for four tasks of one group."""
    rm.app("app")
    for number in range(4):
        rm.ask("app", f"ask{number}", vcore=1, tags={"group": "one"})


def gangs(rm: PermitRM) -> None:
    """Ask for two gangs of two tasks, all of one group."""
    for app_id in ("first", "second"):
        rm.gang(app_id, "Atomic", vcore=2)
        rm.task(app_id, f"{app_id}-task", "workers", 2, vcore=1, tags={"group": "one"})


@pytest.mark.parametrize("submit", [singles, gangs])
def test_placements_refused_because_of_each_other_are_not_tried_for_ever(submit: Any) -> None:
    rm = cluster()
    wait_and_refuse()
    submit(rm)
    assert rm.scheduler.schedule(MANY) < 10
    assert rm.held() == []
    asked = len(Gate.asked)
    rm.at_work()
    assert rm.scheduler.schedule(MANY) == 0
    assert len(Gate.asked) == asked, "the refused requests pause"
    Gate.answers["*"] = None
    assert len(rm.after(1)) == 4, "the end of the other placements was a change"
    assert not rm.failures()


@pytest.mark.parametrize("submit", [singles, gangs])
def test_requests_refused_late_can_be_withdrawn_during_the_pause(submit: Any) -> None:
    rm = cluster()
    wait_and_refuse()
    submit(rm)
    rm.schedule(MANY)
    for app_id in list(rm.at_work().partition.applications):
        for reason in rm.why(next(iter(rm.at_work().partition.applications[app_id].asks)), app_id):
            assert "incomplete" not in reason
        rm.release_ask(app_id)
    rm.pass_time(2)
    assert rm.schedule(MANY) == []
    rm.app("next")
    Gate.answers["*"] = None
    rm.ask("next", "last", vcore=4)
    assert len(rm.schedule(MANY)) == 1
    assert not rm.failures()


def test_placeholder_permitted_by_the_last_question_is_replaced_in_the_same_call() -> None:
    rm = cluster()
    asked: dict[str, int] = {}

    def answer(allocation: Any) -> Any:
        asked[allocation.uuid] = asked.get(allocation.uuid, 0) + 1
        return WAIT if asked[allocation.uuid] == 1 else None

    Gate.answers["*"] = answer
    rm.gang("app", vcore=1)
    rm.task("app", "other", "", vcore=1, tags={"group": "one"})
    rm.task("app", "placeholder", "workers", placeholder=True, vcore=1, tags={"group": "one"})
    rm.task("app", "real", "workers", vcore=1)
    assert sorted(key for _, key, _ in rm.schedule()) == ["other", "placeholder"]
    assert len(rm.evicted) == 1, "the placeholder is about to be replaced"
    rm.at_work()
    assert rm.scheduler.schedule() == 0


@pytest.mark.parametrize("late", [False, True])
def test_refused_gang_is_explained_by_the_policy(late: bool) -> None:
    rm = cluster()
    if late:
        wait_and_refuse()
    else:
        Gate.answers["*"] = "its group is too large"
    gangs(rm)
    rm.schedule(MANY)
    refusal = "permit policy gate refuses the placement: its group is too large"
    assert rm.why("first-task", "first") == [f"a permit policy refused its gang: {refusal}"]
