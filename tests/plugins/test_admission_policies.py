"""Admission policies: admitted, rejected and held applications, and the default `admission-window`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.gangs import GangRM
from tests.core.kit import RM, configuration, queue, with_plugins
from yunikorn.api import AdmissionPolicy, Application, Context, Wait
from yunikorn.framework.kinds import ADMISSION
from yunikorn.interface.messages import Allocation, TerminationType
from yunikorn.resources import INT32_MIN, Resource


class Gate(AdmissionPolicy):
    """Answers as a test says, by application."""

    name = "gate"
    answers: dict[str, Any] = {}  # noqa: RUF012
    asked: list[str] = []  # noqa: RUF012

    def admit(self, app: Application) -> Any:
        assert app.queue is not None
        self.asked.append(app.id)
        answer = self.answers.get(app.id, self.answers.get("*"))
        return answer(app) if callable(answer) else answer


class Second(Gate):
    """Another gate."""

    name = "second"
    answers: dict[str, Any] = {}  # noqa: RUF012
    asked: list[str] = []  # noqa: RUF012


@pytest.fixture(autouse=True)
def _clear() -> None:
    for cls in (Gate, Second):
        cls.answers.clear()
        cls.asked.clear()


REGISTRY = with_plugins(admission_policies=[Gate, Second])


def cluster(make: type[RM] = RM, *queues: Any, policies: tuple[str, ...] = ("gate",), **keys: Any) -> Any:
    text = configuration(*(queues or (queue("a"), queue("b"))), admission=list(policies), **keys)
    return make(text, REGISTRY)


def rejections(rm: RM) -> list[str]:
    return [one.reason for one in rm.entries("rejected_applications")]


WAIT = Wait(10, "the licence server is full")
HELD = "held by admission policy gate: the licence server is full"


def test_application_is_admitted_at_once() -> None:
    rm = cluster()
    rm.node(vcore=4)
    rm.app()
    rm.ask(vcore=1)
    assert rm.schedule() == [("app", "ask", "n1")]
    assert Gate.asked == ["app"]
    assert rm.scheduler.next_timer() is not None, "of the application, not of the policy"


def test_rejection_comes_before_acceptance_and_leaves_no_queue() -> None:
    rm = cluster(placementrules=[{"name": "provided", "create": True}])
    Gate.answers["app"] = "no project"
    rm.app("app", "root.new")
    assert rejections(rm) == ["admission policy gate rejects application app: no project"]
    assert rm.entries("accepted_applications") == []
    rm.pass_time(60)
    assert rm.at_work().partition.queue("root.new") is None


def test_held_application_is_accepted_but_not_scheduled_until_admitted() -> None:
    rm = cluster()
    rm.node(vcore=4)
    Gate.answers["app"] = WAIT
    rm.app()
    rm.ask(vcore=1, count=2, priority=9)
    rm.app("other")
    rm.ask("other", vcore=1)
    assert [one.application_id for one in rm.entries("accepted_applications")] == ["app", "other"]
    assert (rm.state(), rm.state("other")) == ("Accepted", "Accepted")
    assert rm.schedule() == [("other", "ask", "n1")]
    held = rm.find_app()
    assert held.held is not None
    assert held.pending == {"vcore": 2}
    assert rm.find_queue().priority == INT32_MIN, (
        "a held application does not raise the priority of its queue"
    )
    rm.pass_time(9)
    assert Gate.asked == ["app", "other"]
    rm.pass_time(2)
    assert Gate.asked == ["app", "other", "app"]
    assert rm.schedule() == []
    Gate.answers.clear()
    rm.pass_time(10)
    assert rm.find_queue().priority == 9
    assert rm.schedule() == [("app", "ask", "n1")] * 2
    assert Gate.asked == ["app", "other", "app", "app"]
    rm.pass_time(100)
    assert len(Gate.asked) == 4, "an admitted application is not asked about again"


def test_rejection_after_a_wait_fails_the_application_and_releases_its_asks() -> None:
    rm = cluster()
    Gate.answers["app"] = WAIT
    rm.app()
    rm.ask(vcore=1, count=2, priority=3)
    Gate.answers["app"] = "the project has ended"
    rm.pass_time(10)
    reason = "admission policy gate rejects application app: the project has ended"
    assert (rm.state(), rm.find_app().reason) == ("Failed", reason)
    (release,) = rm.entries("released_allocation_asks")
    assert (release.allocation_key, release.termination_type) == ("ask", TerminationType.STOPPED_BY_RM)
    assert rm.find_queue().demand in ({}, {"vcore": 0})
    assert rm.find_queue().priority == INT32_MIN
    assert rm.scheduler.next_timer() is not None


@pytest.mark.parametrize("answer", [lambda app: 1 / 0, 7, Wait(-1, "x"), Wait(float("nan"), "x")])
def test_failure_holds_the_application_and_is_named(answer: Any) -> None:
    rm = cluster()
    rm.node(vcore=1)
    Gate.answers["app"] = answer
    rm.app()
    rm.ask(vcore=1)
    assert rm.schedule() == []
    (failure,) = rm.failures()
    assert "plugin gate of test-plugin (yunikorn-test 1.0): admitting application 'app'" in failure
    (explanation,) = rm.scheduler.explain("rm", "default", "app").values()
    assert failure in explanation.reasons[0].detail
    Gate.answers.clear()
    rm.pass_time(60)
    assert rm.schedule() == [("app", "ask", "n1")]


def test_held_application_is_explained_and_reported() -> None:
    rm = cluster()
    rm.node(vcore=4)
    Gate.answers["app"] = WAIT
    rm.app()
    rm.ask(vcore=1)
    rm.schedule()
    rm.pass_time(4)
    (explanation,) = rm.scheduler.explain("rm", "default", "app").values()
    assert [(reason.check, reason.detail) for reason in explanation.reasons] == [
        ("admission", f"{HELD}; asked again in 6s")
    ]
    assert explanation.suggested_fixes == ("admission policy gate must admit the application",)
    updates = [one.message for one in rm.entries("updated_applications") if one.application_id == "app"]
    assert HELD in updates


def test_policies_are_asked_in_order_and_again_from_the_one_that_waits() -> None:
    rm = cluster(policies=("gate", "second"))
    Second.answers["app"] = WAIT
    rm.app()
    assert (Gate.asked, Second.asked) == (["app"], ["app"])
    rm.pass_time(10)
    assert (Gate.asked, Second.asked) == (["app"], ["app", "app"])
    Gate.answers["app"] = "no"
    Second.answers.clear()
    rm.pass_time(10)
    assert rm.find_app().held is None


def test_applications_that_wait_for_the_same_are_admitted_in_order_of_arrival() -> None:
    rm = cluster()
    Gate.answers["*"] = WAIT
    for number in range(4):
        rm.app(f"app{number}")
        rm.pass_time(4)
    Gate.asked.clear()
    rm.pass_time(1000)
    assert Gate.asked[-4:] == ["app0", "app1", "app2", "app3"]
    assert len(Gate.asked) <= 4 * 2 * 1000 // 10, "at most twice as often as they ask for"
    room = [2]

    def one_slot(app: Application) -> Wait | None:
        room[0] -= 1
        return None if room[0] >= 0 else WAIT

    Gate.answers["*"] = one_slot
    rm.pass_time(10)
    assert [rm.find_app(f"app{number}").held is None for number in range(4)] == [True, True, False, False]


def test_reload_asks_again_and_admits_where_no_policy_is_left() -> None:
    rm = cluster()
    rm.node(vcore=4)
    Gate.answers["*"] = Wait(1e6, "later")
    for number in range(3):
        rm.app(f"app{number}")
        rm.ask(f"app{number}", vcore=1)
    Gate.asked.clear()
    Gate.answers["app1"] = None
    rm.reload(configuration(queue("a"), queue("b"), queue("c"), admission=["gate"]))
    assert Gate.asked == ["app0", "app1", "app2"]
    assert rm.schedule() == [("app1", "ask", "n1")]
    rm.reload(configuration(queue("a"), queue("b")))
    assert rm.schedule() == [("app0", "ask", "n1"), ("app2", "ask", "n1")]


def test_recovered_application_is_not_asked_about() -> None:
    rm = cluster()
    Gate.answers["*"] = "no"
    rm.app_tagged("app", "root.a", {"application.create.force": "true"})
    rm.node(vcore=4, existing=[Allocation("u1", "app", "u1", "n1", Resource({"vcore": 1}))])
    assert Gate.asked == []
    assert list(rm.find_app().allocations) == ["u1"]


def test_removed_application_is_not_asked_about_again() -> None:
    rm = cluster()
    Gate.answers["*"] = WAIT
    rm.app()
    rm.ask(vcore=1, priority=5)
    rm.remove_app("app")
    rm.pass_time(100)
    assert Gate.asked == ["app"]
    assert rm.scheduler.next_timer() is None
    assert rm.find_queue().priority == INT32_MIN


def test_failing_application_is_not_asked_about_again() -> None:
    rm = cluster(GangRM)
    Gate.answers["*"] = WAIT
    rm.gang("app", "Hard", seconds=5, vcore=2)
    one = Allocation("p1", "app", "u1", "n1", Resource({"vcore": 1}))
    one.task_group_name, one.placeholder = "group", True
    rm.node(vcore=4, existing=[one])
    rm.running["u1"] = one
    rm.pass_time(6)
    assert rm.state("app") == "Failing"
    rm.pass_time(100)
    assert Gate.asked == ["app"]
    rm.confirm()
    assert rm.state("app") == "Failed"


def test_released_asks_do_not_complete_a_held_application() -> None:
    rm = cluster()
    Gate.answers["*"] = WAIT
    rm.app()
    rm.ask(vcore=1)
    rm.release_ask()
    assert rm.state() == "Accepted"
    Gate.answers.clear()
    rm.pass_time(10)
    assert rm.state() == "Completing"


def test_last_real_allocation_of_a_gang_does_not_complete_a_held_application() -> None:
    rm = cluster(GangRM)
    Gate.answers["*"] = WAIT
    rm.app()
    placeholder = Allocation("p1", "app", "u1", "n1", Resource({"vcore": 1}))
    placeholder.task_group_name, placeholder.placeholder = "group", True
    real = Allocation("real", "app", "u2", "n1", Resource({"vcore": 1}))
    rm.node(vcore=4, existing=[placeholder, real])
    rm.running |= {"u1": placeholder, "u2": real}
    rm.release("app", "u2")
    assert rm.state() == "Running"
    Gate.answers.clear()
    rm.pass_time(10)
    assert rm.find_app().held is None
    rm.pass_time(900)
    rm.confirm()
    assert rm.state() == "Completing", "the timeout of the placeholders ends the application"


def test_held_applications_do_not_count_as_running() -> None:
    rm = cluster(RM, queue("a", maxapplications=1))
    rm.node(vcore=4)
    Gate.answers["app"] = WAIT
    rm.app()
    rm.ask(vcore=1)
    rm.app("other")
    rm.ask("other", vcore=1)
    assert rm.schedule() == [("other", "ask", "n1")]
    Gate.answers.clear()
    rm.pass_time(10)
    assert rm.schedule() == []
    (explanation,) = rm.scheduler.explain("rm", "default", "app").values()
    assert [reason.check for reason in explanation.reasons] == ["application limit"]


def test_held_application_takes_no_place_in_an_admission_class() -> None:
    rm = cluster(RM, queue("a", properties={"application.sort.policy": "stateaware"}))
    rm.node(vcore=4)
    Gate.answers["app"] = WAIT
    rm.app()
    rm.ask(vcore=1)
    rm.app("other")
    rm.ask("other", vcore=1)
    assert rm.schedule() == [("other", "ask", "n1")]


@pytest.mark.parametrize("tags", [{}, {"yunikorn.apache.org/requiredNode": "n1"}])
def test_held_application_neither_preempts_nor_reserves(tags: dict[str, str]) -> None:
    rm = cluster(
        RM, queue("a", resources={"guaranteed": {"vcore": 4}}), queue("b"), preemption={"enabled": True}
    )
    rm.node(vcore=4000)
    rm.app("other", "root.b")
    rm.ask("other", count=4, vcore=1000)
    rm.schedule()
    Gate.answers["app"] = WAIT
    rm.app()
    rm.ask(vcore=1000, tags=tags)
    for _ in range(5):
        rm.schedule()
        rm.pass_time(60)
    assert rm.evicted == {}
    assert not rm.find_node().reservations
    Gate.answers.clear()
    rm.pass_time(60)
    rm.schedule()
    assert len(rm.evicted) == 1


@pytest.mark.parametrize("style", ["Soft", "Hard", "Atomic"])
def test_held_gangs_start_when_they_are_admitted(style: str) -> None:
    rm = cluster(GangRM)
    rm.node(vcore=4)
    Gate.answers["gang"] = WAIT
    rm.gang("gang", style, vcore=2, seconds=15)
    rm.task("gang", "place", "group", 2, placeholder=style != "Atomic", vcore=1)
    assert rm.schedule() == []
    rm.pass_time(9)
    assert rm.schedule() == []
    Gate.answers.clear()
    rm.pass_time(1)
    assert len(rm.schedule()) == 2
    rm.pass_time(10)
    assert rm.state("gang") in ("Starting", "Running")


def test_placeholders_of_a_held_application_are_not_replaced() -> None:
    rm = cluster(GangRM)
    Gate.answers["*"] = WAIT
    rm.app()
    one = Allocation("p1", "app", "u1", "n1", Resource({"vcore": 1}))
    one.task_group_name, one.placeholder = "group", True
    rm.node(vcore=4, existing=[one])
    rm.running["u1"] = one
    rm.task("app", "real", "group", vcore=1)
    rm.schedule()
    assert rm.evicted == {}
    Gate.answers.clear()
    rm.pass_time(10)
    rm.schedule()
    assert list(rm.evicted) == ["u1"]


def test_a_thousand_held_applications_cost_nothing_per_decision() -> None:
    rm = cluster()
    rm.node(vcore=100_000)
    Gate.answers["*"] = WAIT
    for number in range(1000):
        rm.app(f"held{number}")
        rm.ask(f"held{number}", vcore=1)
    rm.schedule()
    assert list(rm.find_queue().sorted_members) == []
    assert rm.find_queue().bits == 0
    rm.pass_time(5)
    timers = sum(1 for entry in rm.at_work().partition.timers._heap if entry[2].call is not None)
    assert timers == 1, "applications that wait for the same share a timer"


# -- the default ------------------------------------------------------------------------------------

HOUR = 3600
WINDOW = {"name": "admission-window", "start": "22:00", "end": "06:00", "queues": ["root.a"]}


def test_admission_window_in_a_cluster() -> None:
    rm = RM(configuration(queue("a"), queue("b"), admission=[WINDOW]))
    rm.node(vcore=4)
    rm.pass_time(7 * HOUR)
    rm.app("night", "root.a")
    rm.ask("night", vcore=1)
    rm.app("day", "root.b")
    rm.ask("day", vcore=1)
    assert rm.schedule() == [("day", "ask", "n1")]
    assert rm.find_app("night").held is not None
    rm.pass_time(15 * HOUR - 1)
    assert rm.schedule() == []
    rm.pass_time(1)
    assert rm.schedule() == [("night", "ask", "n1")]


@pytest.mark.parametrize(
    ("options", "hours", "left"),
    [
        ({}, 0, 0),
        ({}, 5.99, 0),
        ({}, 6, 16),
        ({}, 22, 0),
        ({"start": "08:00", "end": "12:30"}, 12.5, 19.5),
        ({"start": "08:00", "end": "12:30"}, 8, 0),
        ({"utc_offset": 2.0}, 20, 0),
        ({"utc_offset": -3.0}, 0, 1),
        # 1970-01-01 was a Thursday.
        ({"days": ["thu"]}, 0, 22),
        ({"days": ["wed"]}, 5, 0),
        ({"days": ["wed"]}, 6, 6 * 24 + 16),
        ({"days": ["sat", "sun"], "start": "00:00", "end": "00:00"}, 1, 47),
        ({"days": ["sat", "sun"], "start": "00:00", "end": "00:00"}, 95, 0),
    ],
)
def test_admission_window_opens_in_time(options: dict[str, Any], hours: float, left: float) -> None:
    window = REGISTRY.make(ADMISSION, "admission-window", {"start": "22:00", "end": "06:00", **options})
    window.opened(Context("default", lambda: 0))
    assert window.seconds_left(round(hours * HOUR * 10**9)) == pytest.approx(left * HOUR)


@pytest.mark.parametrize("wrong", [{"start": "24:00"}, {"end": "6"}, {"days": ["monday"]}, {"days": []}])
def test_admission_window_refuses_wrong_options(wrong: dict[str, Any]) -> None:
    with pytest.raises(Exception, match=next(iter(wrong))):
        RM(configuration(admission=[{**WINDOW, **wrong}]))
