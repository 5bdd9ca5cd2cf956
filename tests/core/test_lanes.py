"""Application policies that let only some take part, and answer with what makes no sense."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import pytest

from tests.core.kit import RM, configuration, queue, with_plugins
from yunikorn.api import Application, AppSortPolicy


def rm_with(answer: Any) -> RM:
    """An RM with applications one and two, each of which asks for one task, under this answer of `admit`."""

    class Gate(AppSortPolicy):
        """All in one lane."""

        name = "gate"

        def key(self, app: Application) -> int:
            return app.submitted

        def lane(self, app: Application) -> Hashable:
            return "all"

        def admit(self, counts: Mapping[Hashable, int]) -> Any:
            return answer

    config = configuration(queue("a", properties={"application.sort.policy": "gate"}))
    rm = RM(config, with_plugins(app_sort_policies=[Gate]))
    rm.node("n1", vcore=10)
    for app_id in ("one", "two"):
        rm.app(app_id)
        rm.ask(app_id, "task", vcore=1)
    return rm


@pytest.mark.parametrize(
    ("answer", "served"),
    [({"all": None}, 2), ({}, 2), ({"all": 0}, 0), ({"all": 9}, 2), ({"other": 0}, 2)],
)
def test_as_many_take_part_as_the_policy_admits(answer: Any, served: int) -> None:
    rm = rm_with(answer)
    assert len(rm.schedule()) == served
    assert rm.faults() == []


@pytest.mark.parametrize("answer", [{"all": -1}, {"all": 1.5}, {"all": "many"}, None, "junk"])
def test_an_answer_that_makes_no_sense_is_blamed_and_keeps_nobody_out(answer: Any) -> None:
    rm = rm_with(answer)
    assert len(rm.schedule()) == 2
    (fault,) = rm.faults()
    assert fault.startswith("plugin gate of test-plugin (yunikorn-test 1.0): admitting lanes: ")


# -- who takes part may change although no application did ---------------------------------------------------

ALONE = {"application.sort.policy": "alone", "application.sort.priority": "disabled"}


class Alone(AppSortPolicy):
    """Only the one that uses the smallest share of the cluster."""

    name = "alone"

    def key(self, app: Application) -> float:
        shares = [amount / app.fair_total[name] for name, amount in app.allocated.items() if amount]
        return max(shares, default=0.0)

    def lane(self, app: Application) -> Hashable:
        return "all"

    def admit(self, counts: Mapping[Hashable, int]) -> Mapping[Hashable, int]:
        return {"all": 1}


def test_the_size_of_the_cluster_may_change_who_takes_part() -> None:
    config = configuration(queue("a", properties=ALONE))
    rm = RM(config, with_plugins(app_sort_policies=[Alone]))
    rm.node("n1", vcore=10, memory=10)
    rm.app("memory")
    rm.ask("memory", "first", memory=5)
    rm.schedule()
    rm.app("vcore")
    rm.ask("vcore", "first", vcore=4)
    rm.schedule()
    rm.ask("memory", "next", vcore=1)
    assert rm.schedule() == [], "50 % against 40 %"
    rm.node("n2", memory=30)
    assert rm.schedule() == [("memory", "next", "n1")], "12.5 % against 40 %"


class InTurns(Alone):
    """Only the one whose minute it is."""

    refresh_every = 60.0
    clock: Any = None

    def key(self, app: Application) -> int:
        minute = InTurns.clock.now() // (60 * 10**9)
        return int((len(app.id) + minute) % 2)


def test_the_time_may_change_who_takes_part() -> None:
    config = configuration(queue("a", properties=ALONE))
    rm = RM(config, with_plugins(app_sort_policies=[InTurns]))
    InTurns.clock = rm.clock
    rm.node("n1", vcore=10)
    for app_id in ("even", "odd"):
        rm.app(app_id)
        rm.ask(app_id, count=2, vcore=1)
    assert rm.schedule() == [("even", "ask", "n1")] * 2
    assert rm.schedule() == []
    rm.pass_time(60)
    assert rm.schedule() == [("odd", "ask", "n1")] * 2
