"""Permit policies and gangs: held placeholders, and members of Atomic gangs that are held together."""

from __future__ import annotations

import pytest

from tests.plugins.permit_kit import WAIT, Gate, PermitRM, booked, clear, cluster
from yunikorn.api import Wait

_ = pytest.fixture(autouse=True)(clear)


def test_held_placeholders_are_not_replaced_before_they_are_permitted() -> None:
    rm = cluster()
    Gate.answers["ph"] = WAIT
    rm.gang("app", vcore=2)
    rm.task("app", "ph", "workers", 2, placeholder=True, vcore=1)
    rm.task("app", "real", "workers", 2, vcore=1)
    assert rm.schedule() == []
    assert rm.held() == ["ph", "ph"]
    assert rm.state("app") == "Accepted"
    Gate.answers["ph"] = None
    assert [key for _, key, _ in rm.after(10)] == ["ph", "ph"]
    assert Gate.asked.count("real") == 0
    assert sorted(rm.confirmed()) == [("app", "real", "n1")] * 2
    assert Gate.asked.count("real") == 0, "the room of the placeholders was permitted"
    assert rm.counts("app", "workers") == (2, 2, 0)


def test_refused_placeholder_is_requested_once() -> None:
    rm = cluster()
    Gate.answers["ph"] = "never"
    rm.gang("app", vcore=2)
    rm.task("app", "ph", "workers", 2, placeholder=True, vcore=1)
    assert rm.schedule() == []
    Gate.answers["ph"] = None
    rm.node("n2", vcore=1)
    assert len(rm.schedule()) == 2
    assert rm.counts("app", "workers") == (2, 0, 0)


def test_placeholder_timeout_ends_held_placeholders() -> None:
    rm = cluster()
    Gate.answers.update({"ph": None, "late": Wait(1000, "held")})
    rm.gang("app", seconds=50, vcore=2)
    rm.task("app", "ph", "workers", placeholder=True, vcore=1)
    rm.task("app", "late", "workers", placeholder=True, vcore=1)
    rm.schedule()
    assert rm.held() == ["late"]
    rm.take_response()
    rm.pass_time(50)
    response = rm.take_response()
    assert [one.allocation_key for one in response.released_allocations] == ["ph"]
    assert [one.allocation_key for one in response.released_allocation_asks] == ["late"]
    assert rm.held() == []


def atomic(rm: PermitRM, count: int = 3) -> None:
    rm.gang("app", "Atomic", vcore=count)
    for number in range(count):
        rm.task("app", f"t{number}", "workers", vcore=1)


def test_members_of_an_atomic_gang_are_held_together() -> None:
    rm = cluster()
    Gate.answers["t1"] = WAIT
    atomic(rm)
    assert rm.schedule() == []
    assert rm.held() == ["t0", "t1", "t2"]
    assert Gate.asked == ["t0", "t1"]
    Gate.answers.clear()
    assert [key for _, key, _ in rm.after(10)] == ["t0", "t1", "t2"]
    assert Gate.asked == ["t0", "t1", "t1", "t2"]


def test_one_refusal_takes_all_members_back() -> None:
    rm = cluster()
    Gate.answers["t2"] = "never"
    atomic(rm)
    assert rm.schedule() == []
    assert booked(rm) == ({}, {"vcore": 3}, 4, 0)
    rm.schedule()
    rm.schedule()
    assert Gate.asked == ["t0", "t1", "t2"]
    Gate.answers.clear()
    rm.node("n2", vcore=1)
    assert [key for _, key, _ in rm.schedule()] == ["t0", "t1", "t2"]


@pytest.mark.parametrize("style", ["Atomic", ""])
def test_refused_requests_are_tried_again_at_growing_distances(style: str) -> None:
    rm = cluster()
    Gate.answers.update({"t0": "never", "t1": "never", "t2": "never"})
    if style:
        atomic(rm)
    else:
        rm.app()
        rm.ask(key="t0", vcore=1)
    rm.app("other")
    rm.node("n2", vcore=2000)
    rm.schedule()
    Gate.asked.clear()
    rm.ask("other", "many", count=320, vcore=1)
    rm.schedule()
    assert 10 < Gate.asked.count("t0") < 40


def test_refused_gang_holds_nothing_back() -> None:
    rm = cluster()
    Gate.answers["t2"] = "never"
    atomic(rm)
    rm.schedule()
    rm.pass_time(1000)
    rm.app("other")
    rm.ask("other", "ask", vcore=4)
    assert rm.schedule() == [("other", "ask", "n1")]


def test_step_that_is_refused_waits_as_a_whole() -> None:
    rm = cluster()
    rm.gang("app", "Atomic", tags={"yunikorn.apache.org/gang-step": "2"}, vcore=1)
    Gate.answers["m2"] = WAIT
    for number in range(3):
        rm.task("app", f"m{number}", "workers", vcore=1)
    rm.node("n2", vcore=2)
    rm.schedule()
    assert rm.held() == ["m1", "m2"]
    Gate.answers["m2"] = "never"
    assert rm.after(10) == []
    assert rm.held() == []
    Gate.answers["m2"] = None
    rm.node("n3", vcore=1)
    assert sorted(key for _, key, _ in rm.after(100)) == ["m1", "m2"]
