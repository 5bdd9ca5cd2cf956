"""The stateaware policy: new applications start one by one (docs/decisions/archive/0018)."""

from __future__ import annotations

import pytest

from tests.core.kit import RM, configuration, queue


def stateaware(**properties: str) -> RM:
    """Return an RM with one stateaware queue and one node with room for ten tasks of size 1."""
    config = queue("a", properties={"application.sort.policy": "stateaware", **properties})
    rm = RM(configuration(config))
    rm.node(vcore=10)
    return rm


def two_with_drivers() -> RM:
    rm = stateaware()
    for app_id in ("one", "two"):
        rm.app(app_id)
        rm.ask(app_id, "driver", vcore=1)
    return rm


def test_documented_run_of_two_applications() -> None:
    rm = two_with_drivers()
    assert (rm.state("one"), rm.state("two")) == ("Accepted", "Accepted")
    # 1. Only application one is admitted: its driver is allocated, and one is Starting.
    assert rm.schedule() == [("one", "driver", "n1")]
    assert (rm.state("one"), rm.state("two")) == ("Starting", "Accepted")
    # 2. One has nothing pending now; two still waits, because one is Starting.
    assert rm.schedule() == []
    # 3. One asks for three executors: the first is allocated, and one is Running.
    rm.ask("one", "executor", 3, vcore=1)
    assert rm.schedule(1) == [("one", "executor", "n1")]
    assert rm.state("one") == "Running"
    # 4. No application is Starting now; one's remaining executors come first, it was submitted earlier.
    assert rm.schedule() == [
        ("one", "executor", "n1"),
        ("one", "executor", "n1"),
        ("two", "driver", "n1"),
    ]
    assert rm.state("two") == "Starting"
    rm.ask("two", "executor", 2, vcore=1)
    assert rm.schedule() == [("two", "executor", "n1")] * 2


def test_second_application_is_scheduled_after_the_starting_timeout() -> None:
    rm = two_with_drivers()
    rm.schedule()
    rm.pass_time(299)
    assert rm.schedule() == []
    rm.pass_time(1)
    assert rm.state("one") == "Running"
    assert rm.schedule() == [("two", "driver", "n1")]


def test_second_application_is_scheduled_after_the_first_ends() -> None:
    rm = two_with_drivers()
    rm.schedule()
    rm.release("one", key="driver")
    assert rm.state("one") == "Completing"
    assert rm.schedule() == [("two", "driver", "n1")]


def test_second_application_is_scheduled_after_the_first_is_removed() -> None:
    rm = two_with_drivers()
    rm.schedule()
    rm.remove_app("one")
    assert rm.schedule() == [("two", "driver", "n1")]


def test_an_accepted_application_that_cannot_be_placed_holds_the_next_one_back() -> None:
    rm = stateaware()
    for app_id, size in (("one", 100), ("two", 1)):
        rm.app(app_id)
        rm.ask(app_id, vcore=size)
    assert rm.schedule() == []
    rm.release_ask("one", "ask")
    assert rm.schedule() == [("two", "ask", "n1")]


def test_accepted_application_of_highest_priority_is_first() -> None:
    rm = stateaware()
    for app_id, priority in (("old", 0), ("urgent", 9)):
        rm.app(app_id)
        rm.ask(app_id, priority=priority, vcore=1)
    assert rm.schedule(1) == [("urgent", "ask", "n1")]


def test_oldest_accepted_application_is_first_if_priorities_are_disabled() -> None:
    rm = stateaware(**{"application.sort.priority": "disabled"})
    for app_id, priority in (("old", 0), ("urgent", 9)):
        rm.app(app_id)
        rm.ask(app_id, priority=priority, vcore=1)
        rm.pass_time(1)
    assert rm.schedule(1) == [("old", "ask", "n1")]


def test_completing_application_with_new_asks_is_not_held_back() -> None:
    rm = two_with_drivers()
    rm.schedule()
    rm.release("one", key="driver")
    assert rm.schedule() == [("two", "driver", "n1")]
    assert rm.state("two") == "Starting"
    rm.ask("one", "more", vcore=1)
    assert rm.schedule() == [("one", "more", "n1")]


def test_running_applications_are_not_held_back_by_a_starting_one() -> None:
    rm = two_with_drivers()
    rm.schedule()
    rm.ask("one", "executor", vcore=1)
    rm.schedule()
    assert (rm.state("one"), rm.state("two")) == ("Running", "Starting")
    rm.ask("one", "late", vcore=1)
    assert rm.schedule() == [("one", "late", "n1")]


def test_other_queues_are_not_affected() -> None:
    rm = RM(
        configuration(
            *[queue(name, properties={"application.sort.policy": "stateaware"}) for name in ("a", "b")]
        )
    )
    rm.node(vcore=10)
    for name in ("a", "b"):
        rm.app(name, f"root.{name}")
        rm.ask(name, vcore=1)
    assert len(rm.schedule()) == 2


@pytest.mark.parametrize(
    ("before", "after", "placed"), [("stateaware", "fifo", 1), ("fifo", "stateaware", 0)]
)
def test_reload_changes_the_admitted_applications(before: str, after: str, placed: int) -> None:
    def config(policy: str) -> str:
        return configuration(queue("a", properties={"application.sort.policy": policy}))

    rm = RM(config(before))
    rm.node(vcore=1)
    for app_id in ("one", "two"):
        rm.app(app_id)
        rm.ask(app_id, vcore=1)
    rm.schedule()
    rm.reload(config(after))
    rm.node("n2", vcore=1)
    assert len(rm.schedule()) == placed


@pytest.mark.parametrize("setting", ["enabled", "disabled"])
@pytest.mark.parametrize("idle_one", ["old", "young"])
def test_oldest_starting_application_is_admitted_even_if_idle(setting: str, idle_one: str) -> None:
    """The applications were placed side by side before the queue got its policy."""
    plain = queue("a", properties={"application.sort.priority": setting})
    rm = RM(configuration(plain))
    rm.node(vcore=10)
    for app_id in ("old", "young"):
        rm.app(app_id)
        rm.ask(app_id, "driver", vcore=1)
        rm.pass_time(1)
    rm.schedule()
    assert (rm.state("old"), rm.state("young")) == ("Starting", "Starting")
    plain["properties"]["application.sort.policy"] = "stateaware"
    rm.reload(configuration(plain))
    waiting = "young" if idle_one == "old" else "old"
    rm.ask(waiting, "executor", vcore=1)
    assert rm.schedule() == ([] if waiting == "young" else [("old", "executor", "n1")])


def test_idle_starting_application_keeps_the_priority_of_its_last_ask() -> None:
    """Highest priority first, then the oldest, including applications without pending asks."""
    rm = RM(configuration(queue("a")))
    rm.node(vcore=10)
    for app_id, priority in (("usual", 0), ("urgent", 9)):
        rm.app(app_id)
        rm.ask(app_id, "driver", priority=priority, vcore=1)
        rm.pass_time(1)
    rm.schedule()
    rm.reload(configuration(queue("a", properties={"application.sort.policy": "stateaware"})))
    rm.ask("usual", "executor", vcore=1)
    assert rm.schedule() == [], "the urgent one is the one that starts"
    rm.ask("urgent", "executor", priority=9, vcore=1)
    assert rm.schedule() == [("urgent", "executor", "n1"), ("usual", "executor", "n1")]
