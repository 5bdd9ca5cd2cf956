"""Contracts detect answers that depend on what a plugin declares, or promises, not to read."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import attrs
import pytest

from tests.testing.test_contract_violations import broken_promises, violation
from yunikorn.api import (
    Allocation,
    Application,
    AppSortPolicy,
    Ask,
    Context,
    Node,
    NodeSortPolicy,
    Plugin,
    Predicate,
    PreemptionCause,
    PreemptionPolicy,
    Queue,
    QueueSortPolicy,
    Quota,
    QuotaPolicy,
)


@attrs.define(eq=False)
class ByClock(PreemptionPolicy):
    """Ranks by age at the time of the question, and calls that constant."""

    name = "by-clock"
    is_constant = True
    context: Any = attrs.field(default=None, init=False)

    def opened(self, context: Context) -> None:
        self.context = context

    def rank(self, victim: Allocation, cause: PreemptionCause) -> int:
        age: int = self.context.now() - victim.placed
        return min(0, age - 3_600 * 10**9)


class ByUsage(PreemptionPolicy):
    """Ranks by usage of the queue, and calls that constant."""

    name = "by-usage"
    is_constant = True

    def rank(self, victim: Allocation, cause: PreemptionCause) -> int:
        return victim.node.allocated.get("vcore", 0)


class ByOthers(AppSortPolicy):
    """Orders by what the whole queue uses."""

    name = "by-others"

    def key(self, app: Application) -> tuple[int, int]:
        whole = app.queue.allocated.get("vcore", 0) if app.queue is not None else 0
        return whole - app.allocated.get("vcore", 0), app.submitted


class ByParent(QueueSortPolicy):
    """Orders by the share of what the parent uses."""

    name = "by-parent"

    def key(self, queue: Queue) -> float:
        whole = queue.parent.allocated.get("vcore", 0) if queue.parent is not None else 0
        return queue.allocated.get("vcore", 0) - whole


class ByShareOfParent(QueueSortPolicy):
    """Orders by the used part of what the parent uses."""

    name = "by-share-of-parent"

    def key(self, queue: Queue) -> float:
        whole = queue.parent.allocated.get("memory", 0) if queue.parent is not None else 0
        return queue.allocated.get("memory", 0) / whole if whole else 0.0


class ByDepartment(AppSortPolicy):
    """Orders by the used part of what the queue above its own uses."""

    name = "by-department"

    def key(self, app: Application) -> float:
        above = app.queue.parent if app.queue is not None else None
        whole = above.allocated.get("vcore", 0) if above is not None else 0
        return app.allocated.get("vcore", 0) / whole if whole else 0.0


class ByLoadOfItsNodes(AppSortPolicy):
    """Orders by what is free on the nodes of its tasks."""

    name = "by-load-of-its-nodes"

    def key(self, app: Application) -> int:
        return sum(one.node.available.get("vcore", 0) for one in app.allocations.values())


class ByPriorityOfParent(QueueSortPolicy):
    """Orders by priority, relative to that of the parent."""

    name = "by-priority-of-parent"

    def key(self, queue: Queue) -> int:
        return (queue.parent.priority if queue.parent is not None else 0) - queue.priority


class ByOwnersOfItsTasks(NodeSortPolicy):
    """Scores nodes by the size of the applications on them."""

    name = "by-owners-of-its-tasks"

    def score(self, node: Node) -> float:
        return float(sum(one.app.allocated.get("vcore", 0) for one in node.allocations.values()))


@attrs.define(eq=False)
class CostByClock(PreemptionPolicy):
    """Costs what is lost at the time of the question, and calls that constant."""

    name = "cost-by-clock"
    is_constant = True
    context: Any = attrs.field(default=None, init=False)

    def opened(self, context: Context) -> None:
        self.context = context

    def rank(self, victim: Allocation, cause: PreemptionCause) -> int:
        return victim.priority

    def cost(self, victim: Allocation, cause: PreemptionCause) -> float:
        age: int = self.context.now() - victim.placed
        return max(0, age)


class CostByUsage(PreemptionPolicy):
    """Costs more where the queue that asks uses more, and calls that constant."""

    name = "cost-by-usage"
    is_constant = True

    def rank(self, victim: Allocation, cause: PreemptionCause) -> int:
        return victim.priority

    def cost(self, victim: Allocation, cause: PreemptionCause) -> float:
        above = cause.queue.parent if cause.queue is not None else None
        return 1.0 + (above.allocated.get("vcore", 0) if above is not None else 0)


class Doubling(QuotaPolicy):
    """Doubles its own answer."""

    name = "doubling"

    def quota(self, queue: Queue) -> Quota:
        return Quota({name: min(2 * amount, 10**12) for name, amount in (queue.max or {}).items()})


class WrongRange(NodeSortPolicy):
    """Returns per cent, and declares parts."""

    name = "wrong-range"
    score_range = (0.0, 1.0)

    def score(self, node: Node) -> float:
        size = node.capacity.get("vcore", 0)
        return 100.0 * node.allocated.get("vcore", 0) / size if size else 0.0


class ForUrgent(Predicate):
    """Keeps a zone for urgent requests, whose class says nothing of that."""

    name = "for-urgent"

    def ask_class(self, ask: Ask) -> Hashable:
        return ask.tags.get("zone")

    def check(self, ask: Ask, node: Node) -> str | None:
        reserved = node.attributes.get("zone") == "a" and ask.priority < 10
        return "the zone is kept for urgent requests" if reserved else None


ON_OTHERS = "test_key_does_not_depend_on_what_others_use"
CONSTANT = "test_constant_answers_do_not_change"
MISDEEDS: list[tuple[Plugin, str, str]] = [
    (ByClock(), CONSTANT, "a day later, although is_constant is True"),
    (ByUsage(), CONSTANT, "when more is used on its node and in its queue"),
    (CostByClock(), CONSTANT, "a day later, although is_constant is True"),
    (CostByUsage(), CONSTANT, "of 'cost-by-usage', which reads cause.queue.parent.allocated, is 11001.0"),
    (ByOthers(), ON_OTHERS, "'by-others' reads queue.allocated:"),
    (ByDepartment(), ON_OTHERS, "'by-department' reads queue.parent.allocated:"),
    (ByLoadOfItsNodes(), ON_OTHERS, "when more is used by other applications"),
    (ByParent(), ON_OTHERS, "when more is used by other queues of its parent"),
    (ByShareOfParent(), ON_OTHERS, "so do not read parent.allocated, or set refresh_every"),
    (ByPriorityOfParent(), ON_OTHERS, "'by-priority-of-parent' reads parent.priority:"),
    (ByOwnersOfItsTasks(), ON_OTHERS, "when more is used on other nodes, by the applications of its tasks"),
    (Doubling(), "test_answer_does_not_depend_on_the_answer_before", "read queue.configured_max"),
    (WrongRange(), "test_score_range_is_two_numbers_or_none", "the score of half is 50.0"),
    (ForUrgent(), "test_class_of_a_request_has_what_the_answer_depends_on", "include ask.priority"),
]


@pytest.mark.parametrize(("plugin", "test", "words"), MISDEEDS, ids=lambda each: getattr(each, "name", None))
def test_undeclared_dependencies_are_found(plugin: Plugin, test: str, words: str) -> None:
    assert words in violation(plugin, test)


def test_untrue_constancy_of_costs_is_said_with_what_to_do() -> None:
    assert "no effect on a policy with cost: remove it" in violation(CostByUsage(), CONSTANT)


def test_a_refresh_interval_allows_to_read_what_others_use() -> None:
    class Refreshed(ByOthers):
        """Orders by what the whole queue uses, once a minute."""

        name = "refreshed"
        refresh_every = 60.0

    assert not broken_promises(Refreshed(), ON_OTHERS)
