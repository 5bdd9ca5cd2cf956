"""The number of applications that may run in a queue (`maxapplications`); further applications wait."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.kit import RM, configuration, document, queue
from yunikorn.interface.messages import Allocation, NodeAction
from yunikorn.model.application import Application
from yunikorn.resources import Resource


def lined_up(count: int, *, config: str, queue_name: str = "root.a", memory: int = 1) -> RM:
    """Return an RM with a large node, and applications 1 to `count` with one ask each."""
    rm = RM(config)
    rm.node(memory=1000)
    for number in range(1, count + 1):
        rm.app(f"app-{number}", queue_name)
        rm.ask(f"app-{number}", memory=memory)
    return rm


def names(decisions: list[tuple[str, str, str]]) -> list[str]:
    """Return the names of the served applications, in order."""
    return [app for app, _, _ in decisions]


def only(rm: RM, app: str) -> str:
    """Return the uuid of the one allocation of an application."""
    found = [uuid for uuid, one in rm.running.items() if one.application_id == app]
    assert len(found) == 1
    return found[0]


def test_next_application_starts_when_one_has_ended() -> None:
    rm = lined_up(4, config=configuration(queue("a", maxapplications=2)))
    assert names(rm.schedule()) == ["app-1", "app-2"]
    assert [rm.state(f"app-{number}") for number in (1, 2, 3, 4)] == [
        "Starting",
        "Starting",
        "Accepted",
        "Accepted",
    ]
    assert rm.schedule() == []

    rm.release("app-2", only(rm, "app-2"))
    assert rm.state("app-2") == "Completing"  # it has no allocation and no ask: it is no longer running
    assert names(rm.schedule()) == ["app-3"]
    assert rm.schedule() == []


def test_running_applications_get_more_while_others_wait() -> None:
    rm = lined_up(2, config=configuration(queue("a", maxapplications=1)))
    assert names(rm.schedule()) == ["app-1"]
    rm.ask("app-1", "more", count=2, memory=1)
    assert names(rm.schedule()) == ["app-1", "app-1"]


def test_application_with_pending_asks_only_still_counts() -> None:
    """Counted by state, as in YuniKorn 1.9: an application keeps its place between two tasks."""
    rm = lined_up(2, config=configuration(queue("a", maxapplications=1)))
    rm.schedule()
    rm.ask("app-1", "large", memory=5000)
    rm.release("app-1", only(rm, "app-1"))
    assert rm.state("app-1") == "Starting"
    assert rm.schedule() == []
    rm.release_ask("app-1", "large")
    assert names(rm.schedule()) == ["app-2"]


def test_waiting_applications_start_in_the_order_of_the_policy() -> None:
    rm = RM(configuration(queue("a", maxapplications=1)))
    rm.node(memory=10)
    for app, priority in (("first", 0), ("low", -1), ("high", 5), ("second", 0)):
        rm.app(app)
        rm.ask(app, priority=priority, memory=1)
    served = []
    for _ in range(4):
        (app,) = names(rm.schedule())
        served.append(app)
        rm.remove_app(app)
    assert served == ["high", "first", "second", "low"]


@pytest.mark.parametrize("way", ["removed", "node lost", "completed"])
def test_every_end_of_an_application_lets_the_next_start(way: str) -> None:
    rm = lined_up(2, config=configuration(queue("a", maxapplications=1)))
    rm.schedule()
    rm.node("n2", memory=5)
    if way == "removed":
        rm.remove_app("app-1")
    elif way == "completed":
        rm.release("app-1", only(rm, "app-1"))
        rm.pass_time(60)
        assert rm.state("app-1") == "Completed"
    else:
        rm.change_node("n1", NodeAction.DECOMMISSION)
    assert names(rm.schedule()) == ["app-2"]


def test_completing_application_with_new_asks_is_not_blocked() -> None:
    """As in YuniKorn 1.9: only a start needs a place, so the queue may run one application too many."""
    rm = lined_up(3, config=configuration(queue("a", maxapplications=1)))
    rm.schedule()
    rm.release("app-1", only(rm, "app-1"))
    assert names(rm.schedule()) == ["app-2"]
    rm.ask("app-1", "again", memory=1)
    assert rm.state("app-1") == "Running"
    assert names(rm.schedule()) == ["app-1"]
    assert rm.find_queue().running == 2

    # One place too many is in use: the end of one application frees none, that of both does.
    rm.remove_app("app-1")
    assert rm.schedule() == []
    rm.remove_app("app-2")
    assert names(rm.schedule()) == ["app-3"]


def test_maxapplications_applies_at_every_level() -> None:
    tree = queue("p", queue("a", maxapplications=2), queue("b", maxapplications=2), maxapplications=3)
    rm = RM(configuration(tree))
    rm.node(memory=100)
    for number in (1, 2, 3):
        for leaf in ("a", "b"):
            rm.app(f"{leaf}{number}", f"root.p.{leaf}")
            rm.ask(f"{leaf}{number}", memory=1)
    # Three below p, of which two in one leaf; the less used leaf first, then the one with more pending.
    assert names(rm.schedule()) == ["a1", "b1", "a2"]
    rm.remove_app("a1")
    assert names(rm.schedule()) == ["b2"]
    rm.remove_app("a2")
    assert names(rm.schedule()) == ["a3"]
    rm.remove_app("a3")
    assert rm.schedule() == []  # p has a free place, but b has none
    rm.remove_app("b1")
    assert names(rm.schedule()) == ["b3"]


def test_maxapplications_of_root_applies_and_can_be_reloaded() -> None:
    def text(most: int) -> str:
        own = {"maxapplications": most} if most else {}
        root = queue("root", queue("a", **own), submitacl="*", **own)
        return document({"name": "default", "queues": [root]})

    rm = lined_up(5, config=text(1))
    assert names(rm.schedule()) == ["app-1"]
    assert rm.reload(text(3))
    assert names(rm.schedule()) == ["app-2", "app-3"]
    assert rm.reload(text(0))
    assert names(rm.schedule()) == ["app-4", "app-5"]


def test_a_lower_max_applications_stops_no_running_application() -> None:
    rm = lined_up(4, config=configuration(queue("a", maxapplications=3)))
    assert names(rm.schedule()) == ["app-1", "app-2", "app-3"]
    rm.reload(configuration(queue("a", maxapplications=1)))
    assert len(rm.running) == 3
    rm.ask("app-3", "more", memory=1)
    assert names(rm.schedule()) == ["app-3"]
    for app in ("app-1", "app-2"):
        rm.remove_app(app)
        assert rm.schedule() == []
    rm.remove_app("app-3")
    assert names(rm.schedule()) == ["app-4"]


def test_removed_maxapplications_lets_all_start() -> None:
    rm = lined_up(4, config=configuration(queue("a", maxapplications=1)))
    rm.schedule()
    rm.reload(configuration(queue("a")))
    assert names(rm.schedule()) == ["app-2", "app-3", "app-4"]


def test_new_maxapplications_counts_running_applications() -> None:
    rm = lined_up(2, config=configuration(queue("a")))
    rm.schedule()
    rm.app("app-3")
    rm.ask("app-3", memory=1)
    rm.reload(configuration(queue("a", maxapplications=2)))
    assert rm.schedule() == []
    rm.remove_app("app-1")
    assert names(rm.schedule()) == ["app-3"]


def test_quota_and_maxapplications_together_starve_no_application() -> None:
    """While the queue is full its quota becomes free, and the other way round."""
    config = configuration(queue("a", maxapplications=2, resources={"max": {"memory": "10"}}))
    rm = lined_up(3, config=config, memory=6)
    assert names(rm.schedule()) == ["app-1"]
    rm.app("small")
    rm.ask("small", memory=1)
    assert names(rm.schedule()) == ["small"]  # now both are full: two run, 7 of 10 in use
    rm.remove_app("small")
    assert rm.schedule() == []  # a place is free, but no room
    rm.remove_app("app-1")
    assert names(rm.schedule()) == ["app-2"]


def test_recovered_applications_count_and_are_not_rejected() -> None:
    rm = RM(configuration(queue("a", maxapplications=1)))
    for number in (1, 2, 3):
        rm.app(f"app-{number}")
    existing = [
        Allocation("k", f"app-{number}", f"k#{number}", "n1", Resource(memory=1)) for number in (1, 2)
    ]
    rm.node(memory=100, existing=existing)
    assert rm.find_queue().running == 2
    rm.ask("app-3", memory=1)
    assert rm.schedule() == []
    rm.remove_app("app-1")
    rm.remove_app("app-2")
    assert names(rm.schedule()) == ["app-3"]


def test_stateaware_respects_maxapplications() -> None:
    rm = lined_up(
        3,
        config=configuration(
            queue("a", maxapplications=2, properties={"application.sort.policy": "stateaware"})
        ),
    )
    assert names(rm.schedule()) == ["app-1"]
    rm.pass_time(301)  # app-1 runs: the next may start
    assert names(rm.schedule()) == ["app-2"]
    rm.pass_time(301)
    assert rm.schedule() == []
    rm.remove_app("app-1")
    assert names(rm.schedule()) == ["app-3"]


def test_cost_of_starting_an_application_is_independent_of_waiting_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rm = lined_up(10_000, config=configuration(queue("a", maxapplications=1)))
    assert names(rm.schedule()) == ["app-1"]
    calls = {"activate": 0, "mark_dirty": 0}
    for name in calls:
        _count(monkeypatch, Application, name, calls)
    for number in range(1, 6):
        rm.release(f"app-{number}", only(rm, f"app-{number}"))
        assert names(rm.schedule()) == [f"app-{number + 1}"]
    assert calls["activate"] < 50
    assert calls["mark_dirty"] < 50


def _count(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, calls: dict[str, int]) -> None:
    original = getattr(owner, name)

    def counted(*args: Any, **kwargs: Any) -> Any:
        calls[name] += 1
        return original(*args, **kwargs)

    monkeypatch.setattr(owner, name, counted)
