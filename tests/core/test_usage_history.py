"""Past usage of queues: exact at any time, independent of observers, and kept over reloads."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from tests.core.kit import RM, configuration, queue, with_plugins
from yunikorn.api import Queue, QueueSortPolicy
from yunikorn.clock import SECOND, ManualClock
from yunikorn.model.usage_history import LN2, UsageHistory

HOUR = 3600.0


@attrs.frozen
class LeastRecent(QueueSortPolicy):
    """Orders queues by decayed past usage, least first."""

    name = "least-recent"
    hours: float = 1.0

    @property
    def half_life(self) -> float:
        return self.hours * HOUR

    @property
    def refresh_every(self) -> float:
        return 60.0

    def key(self, queue: Queue) -> float:
        return queue.recent.get("vcore", 0.0)


def config(*names: str, policy: str = "least-recent", hours: str = "1") -> str:
    properties = {"queue.sort.policy": policy}
    if policy == "least-recent":
        properties["queue.sort.policy.hours"] = hours
    return configuration(queue("p", *map(queue, names), properties=properties))


def rm_with(*names: str, **keys: Any) -> RM:
    return RM(config(*names, **keys), with_plugins(queue_sort_policies=[LeastRecent]))


def used(rm: RM, name: str) -> float:
    return rm.find_queue(f"root.p.{name}").recent.get("vcore", 0.0)


def test_usage_halves_every_half_life() -> None:
    clock = ManualClock()
    held = {"vcore": 4}
    history = UsageHistory(10.0, clock.now, held)
    clock.advance(1)
    assert history.recent()["vcore"] == pytest.approx(4, rel=0.05)
    history.note()
    held["vcore"] = 0
    before = history.recent()["vcore"]
    clock.advance(10)
    assert history.recent()["vcore"] == pytest.approx(before / 2)
    clock.advance(20)
    assert history.recent()["vcore"] == pytest.approx(before / 8)


def test_past_usage_is_independent_of_observation() -> None:
    once, often = ManualClock(), ManualClock()
    seldom, busy = UsageHistory(7.0, once.now, {"a": 3}), UsageHistory(7.0, often.now, {"a": 3})
    once.set(100 * SECOND)
    for second in range(1, 101):
        often.set(second * SECOND)
        busy.recent()
        busy.note()
    assert busy.recent()["a"] == pytest.approx(seldom.recent()["a"], rel=1e-12)


def test_constant_usage_converges() -> None:
    clock = ManualClock()
    history = UsageHistory(60.0, clock.now, {"a": 5})
    clock.advance(100_000)
    assert history.recent()["a"] == pytest.approx(5 * 60 / 0.6931471805599453)


def test_usage_counts_without_pending_asks_or_observers() -> None:
    rm = rm_with("a", "b")
    rm.node(vcore=4)
    rm.app("old", "root.p.a")
    rm.ask("old", count=4, vcore=1)
    rm.schedule()
    rm.pass_time(1800)
    for uuid in list(rm.running):
        rm.release("old", uuid)
    # No ask waited for half an hour; now both want all capacity, and the queue without usage is first.
    for name in ("a", "b"):
        rm.app(f"new-{name}", f"root.p.{name}")
        rm.ask(f"new-{name}", count=3, vcore=1)
    assert [app for app, _, _ in rm.schedule()] == ["new-b"] * 3 + ["new-a"]
    assert used(rm, "a") == pytest.approx(4 * 1800, rel=0.2)


def test_used_share_recovers_with_time() -> None:
    rm = rm_with("a", "b", hours="0.01")
    rm.node(vcore=2)
    rm.app("a", "root.p.a")
    rm.app("b", "root.p.b")
    rm.ask("a", "first", vcore=1)
    rm.ask("b", "first", vcore=1)
    rm.schedule()
    rm.pass_time(60)
    (of_b,) = [one.uuid for one in rm.running.values() if one.application_id == "b"]
    rm.release("b", of_b)
    rm.ask("a", "more", vcore=1)
    rm.ask("b", "more", vcore=1)
    # After ten half-lives the usage of b has nearly decayed; a, which continues, has its maximum.
    rm.pass_time(360)
    assert [app for app, _, _ in rm.schedule()] == ["b"]


def test_past_usage_survives_a_reload_unless_the_half_life_changes() -> None:
    rm = rm_with("a", "b")
    rm.node(vcore=4)
    rm.app("app", "root.p.a")
    rm.ask("app", vcore=2)
    rm.schedule()
    rm.pass_time(600)
    before = used(rm, "a")
    assert before > 0
    rm.reload(config("a", "b", "c"))
    assert used(rm, "a") == before
    rm.reload(config("a", "b", "c", hours="2"))
    assert used(rm, "a") == 0
    rm.pass_time(60)
    assert used(rm, "a") == pytest.approx(120, rel=0.01)
    rm.reload(config("a", "b", "c", policy="fair"))
    assert rm.find_queue("root.p.a").recent == {}
    rm.reload(config("a", "b", "c"))
    assert used(rm, "a") == 0


def test_later_queue_has_a_usage_history() -> None:
    properties = {"queue.sort.policy": "least-recent"}
    tree = {**queue("p", properties=properties), "parent": True}
    rule = [{"name": "user", "create": True, "parent": {"name": "fixed", "value": "p"}}]
    text = configuration(tree, placementrules=rule)
    rm = RM(text, with_plugins(queue_sort_policies=[LeastRecent]))
    rm.node(vcore=4)
    rm.app("app", "", user="ann")
    rm.ask("app", vcore=2)
    rm.schedule()
    rm.pass_time(10)
    assert used(rm, "ann") == pytest.approx(20, rel=0.01)


@pytest.mark.parametrize("half_life", ["soon", -1, float("nan"), float("inf")])
def test_invalid_half_life_is_reported_and_disables_the_history(half_life: Any) -> None:
    class Odd(QueueSortPolicy):
        """A policy whose half-life a test sets to an invalid value."""

        name = "odd"

        def key(self, queue: Queue) -> int:
            return len(queue.recent)

    cls = type("Odd", (Odd,), {"half_life": half_life, "name": "odd"})
    rm = RM(config("a", policy="odd"), with_plugins(queue_sort_policies=[cls]))
    assert rm.find_queue("root.p.a").recent == {}
    (failure,) = rm.failures()
    assert "odd of test-plugin (yunikorn-test 1.0): reading its half_life: " in failure


@pytest.mark.parametrize("kind", ["app", "queue", "node"])
def test_policy_that_fails_to_return_its_interval_is_reported(kind: str) -> None:
    class Vague:
        @property
        def refresh_every(self) -> float:
            raise RuntimeError("who knows")

    from yunikorn.api import AppSortPolicy, NodeSortPolicy

    body = {"name": "vague", "key": lambda self, _: 0, "score": lambda self, node: 0.0}
    bases = {"app": AppSortPolicy, "queue": QueueSortPolicy, "node": NodeSortPolicy}
    cls = type("Odd", (Vague, bases[kind]), body)
    properties = {"application.sort.policy": "vague"} if kind == "app" else {}
    above = {"queue.sort.policy": "vague"} if kind == "queue" else {}
    keys: dict[str, Any] = {"nodesortpolicy": {"type": "vague"}} if kind == "node" else {}
    text = configuration(queue("p", queue("a", properties=properties), properties=above), **keys)
    rm = RM(text, with_plugins(**{f"{kind}_sort_policies": [cls]}))
    rm.node(vcore=1)
    rm.app("app", "root.p.a")
    rm.ask("app", vcore=1)
    assert len(rm.schedule()) == 1
    (failure,) = rm.failures()
    assert "reading its refresh_every: RuntimeError: who knows" in failure


@pytest.mark.parametrize("moment", [-(2**63), 0, 99 * SECOND, 2**63 - 1])
def test_usage_is_neither_negative_nor_too_large_for_any_clock(moment: int) -> None:
    time = 100 * SECOND
    history = UsageHistory(10.0, lambda: time, {"vcore": 4})
    time = moment
    history.credit({"vcore": 1}, 100 * SECOND)
    assert 0.0 <= history.recent()["vcore"] <= 5 * 10.0 / LN2
    history.note()
    assert 0.0 <= history.recent()["vcore"] <= 5 * 10.0 / LN2
