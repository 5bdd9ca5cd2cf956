"""Application sort policies with admission limits, among them policies that return invalid limits."""

from __future__ import annotations

import random
from collections.abc import Hashable, Mapping
from typing import Any

import pytest

from tests.core.kit import RM, configuration, queue, with_plugins
from yunikorn.api import Application, AppSortPolicy


def rm_with(answer: Any) -> RM:
    """Return an RM with applications one and two, one ask each, under this answer of `admission_limits`."""

    class Gate(AppSortPolicy):
        """A policy with a single admission class."""

        name = "gate"

        def key(self, app: Application) -> int:
            return app.submitted

        def admission_class(self, app: Application) -> Hashable:
            return "all"

        def admission_limits(self, counts: Mapping[Hashable, int]) -> Any:
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
def test_policy_limits_the_number_of_admitted_applications(answer: Any, served: int) -> None:
    rm = rm_with(answer)
    assert len(rm.schedule()) == served
    assert rm.failures() == []


@pytest.mark.parametrize("answer", [{"all": -1}, {"all": 1.5}, {"all": "many"}, None, "junk"])
def test_invalid_admission_limits_are_reported_and_ignored(answer: Any) -> None:
    rm = rm_with(answer)
    assert len(rm.schedule()) == 2
    (failure,) = rm.failures()
    assert failure.startswith("plugin gate of test-plugin (yunikorn-test 1.0): computing admission limits: ")


# -- admission that changes although no application did ----------------------------------------------------

ALONE = {"application.sort.policy": "alone", "application.sort.priority": "disabled"}


class Alone(AppSortPolicy):
    """Admits only the application with the smallest share of the cluster."""

    name = "alone"

    def key(self, app: Application) -> float:
        shares = [amount / app.fair_total[name] for name, amount in app.allocated.items() if amount]
        return max(shares, default=0.0)

    def admission_class(self, app: Application) -> Hashable:
        return "all"

    def admission_limits(self, counts: Mapping[Hashable, int]) -> Mapping[Hashable, int]:
        return {"all": 1}


def test_cluster_size_may_change_the_admitted_applications() -> None:
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
    """Admits one application per minute, in turn."""

    refresh_every = 60.0
    clock: Any = None

    def key(self, app: Application) -> int:
        minute = InTurns.clock.now() // (60 * 10**9)
        return int((len(app.id) + minute) % 2)


def test_time_may_change_the_admitted_applications() -> None:
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


def test_removal_of_an_idle_application_admits_the_next() -> None:
    config = configuration(queue("a", properties=ALONE))
    rm = RM(config, with_plugins(app_sort_policies=[Alone]))
    rm.node("n1", vcore=10)
    rm.app("idle")
    rm.app("next")
    rm.ask("next", vcore=1)
    assert rm.schedule() == [], "the idle one uses as little, and came before"
    rm.remove_app("idle")
    assert rm.schedule() == [("next", "ask", "n1")]


# -- comparison with a plain model -------------------------------------------------------------------------


class Quota(AppSortPolicy):
    """Least used first; admits a third of each user's applications with and without allocations, or all."""

    name = "quota"

    def key(self, app: Application) -> int:
        return app.allocated.get("vcore", 0) * 10_000 + int(app.id.removeprefix("app"))

    def admission_class(self, app: Application) -> Hashable:
        return (app.user, any(app.allocated.values()))

    def admission_limits(self, counts: Mapping[Hashable, int]) -> Mapping[Hashable, int | None]:
        return numbers(counts)


def numbers(counts: Mapping[Any, int]) -> dict[Hashable, int | None]:
    """Return the limits: all applications of user2 with allocations, a third of every other class."""
    return {
        admission_class: None if admission_class == ("user2", True) else count // 3
        for admission_class, count in counts.items()
    }


class PlainApp:
    """An application of the model."""

    def __init__(self, user: str) -> None:
        self.user = user
        self.waits = 0
        self.uuids: list[str] = []

    @property
    def admission_class(self) -> tuple[str, bool]:
        return self.user, bool(self.uuids)


def next_of(apps: Mapping[str, PlainApp]) -> str | None:
    """Return the application to be served, by sorting all of them."""
    admission_classes: dict[tuple[str, bool], list[tuple[int, int, str]]] = {}
    for place, (app_id, app) in enumerate(apps.items()):
        admission_classes.setdefault(app.admission_class, []).append((len(app.uuids), place, app_id))
    limits = numbers({admission_class: len(found) for admission_class, found in admission_classes.items()})
    admitted = [
        one
        for admission_class, found in admission_classes.items()
        for one in sorted(found)[: limits[admission_class]]
    ]
    return min(
        ((held, place, app_id) for held, place, app_id in admitted if apps[app_id].waits),
        default=(0, 0, None),
    )[2]


@pytest.mark.parametrize("seed", range(3))
def test_admitted_applications_equal_those_of_a_full_sort(seed: int) -> None:
    rm = RM(
        configuration(queue("a", properties={**ALONE, "application.sort.policy": "quota"})),
        with_plugins(app_sort_policies=[Quota]),
    )
    rm.node("n1", vcore=10**6)
    one_in_n, apps = random.Random(seed), dict[str, PlainApp]()
    served = kept_out = 0
    for step in range(1_200):
        act = one_in_n.random()
        if act < 0.3 or len(apps) < 5:
            apps[f"app{step}"] = PlainApp(f"user{one_in_n.randrange(3)}")
            rm.app(f"app{step}", user=apps[f"app{step}"].user)
            app_id = f"app{step}"
        else:
            app_id = one_in_n.choice(list(apps))
        app = apps[app_id]
        if act < 0.6:
            app.waits += 1
            rm.ask(app_id, f"ask{step}", vcore=1)
        elif act < 0.65:
            rm.remove_app(app_id)
            del apps[app_id]
        elif act < 0.8 and app.uuids:
            rm.release(app_id, app.uuids.pop(one_in_n.randrange(len(app.uuids))))
        expected = next_of(apps)
        made = rm.schedule(1)
        assert [one for one, _, _ in made] == ([] if expected is None else [expected]), step
        if expected is not None:
            apps[expected].waits -= 1
            apps[expected].uuids.append(rm.entries("new_allocations")[-1].uuid)
            served += 1
        elif any(one.waits for one in apps.values()):
            kept_out += 1
    assert (served > 300, kept_out > 30, len(apps) > 150) == (True, True, True), (served, kept_out, len(apps))
