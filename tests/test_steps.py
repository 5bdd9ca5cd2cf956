"""The cost of a decision, in steps of the interpreter: equal in every run, unlike time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

CHECKOUT = Path(__file__).parent.parent
if str(CHECKOUT) not in sys.path:
    # The benchmarks live in the checkout only; their path comes after all installed packages.
    sys.path.append(str(CHECKOUT))

from benchmarks.admission_classes import leave  # noqa: E402
from benchmarks.harness import Harness  # noqa: E402
from benchmarks.steps import count_steps, steps_of  # noqa: E402
from benchmarks.workload import Workload  # noqa: E402
from tests.core.kit import RM, configuration, document, partition, queue  # noqa: E402
from yunikorn.config.load import check_config  # noqa: E402
from yunikorn.framework.registry import Registry  # noqa: E402
from yunikorn.interface.messages import (  # noqa: E402
    AllocationAsk,
    AllocationAskRelease,
    AllocationReleasesRequest,
    UpdateRequest,
)
from yunikorn.resources import Resource  # noqa: E402
from yunikorn_commands.build import PURE, kind_of_build  # noqa: E402

pytestmark = pytest.mark.skipif(kind_of_build() != PURE, reason="compiled code has no steps to count")

MIXED = Workload(200, 800, 10, 40, 4, "fair", "fair")
DECISIONS = 100
A_QUARTER_MORE = 1.25


def cost(workload: Workload) -> float:
    """Return the steps per decision."""
    return sum(count_steps(workload, DECISIONS).values())


@pytest.mark.parametrize("node_sort", ["fair", "binpacking"])
@pytest.mark.parametrize(
    "larger", [{"nodes": 1_600}, {"tasks": 3_200}, {"applications": 320}, {"queues": 40, "applications": 160}]
)
def test_cost_of_a_decision_is_independent_of_cluster_size(node_sort: str, larger: dict[str, Any]) -> None:
    before = attrs.evolve(MIXED, node_sort=node_sort)
    assert cost(attrs.evolve(before, **larger)) < cost(before) * A_QUARTER_MORE


def test_third_party_policies_are_as_fast_as_the_defaults() -> None:
    own = attrs.evolve(MIXED, app_sort="least-held", queue_sort="most-waiting", node_sort="most-free")
    assert cost(own) < cost(MIXED)


def test_cost_of_admission_limits_is_independent_of_applications() -> None:
    few = Workload(100, 1_280, 1, 20, 4, "half-per-user", "fair")
    assert cost(attrs.evolve(few, applications=640)) < cost(few) * A_QUARTER_MORE


def test_removed_users_cost_nothing() -> None:
    load = Workload(100, 800, 1, 20, 4, "half-per-user", "fair")
    harness = Harness.ready(load)
    leave(harness, 200)
    assert sum(count_steps(load, DECISIONS, harness).values()) < cost(load) * A_QUARTER_MORE


@pytest.mark.parametrize("load", [MIXED, attrs.evolve(MIXED, sizes=1, app_sort="fifo")])
def test_metrics_cost_less_than_three_percent(load: Workload) -> None:
    assert cost(attrs.evolve(load, metrics=True)) < cost(load) * 1.03


def test_all_steps_are_accounted_for() -> None:
    found = count_steps(MIXED, DECISIONS)
    assert found.pop("other", 0) < 10
    assert all(found.values())


# -- preemption --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tasks", [0, 1])
def test_cost_of_a_search_for_victims_is_independent_of_nodes_without_candidates(tasks: int) -> None:
    def cost_of_a_minute(nodes: int) -> float:
        rm = RM(configuration(queue("a", resources={"guaranteed": {"vcore": "9000"}}), queue("b")))
        for number in range(nodes):
            rm.node(f"n{number}", vcore=2)
        rm.app("late", "root.a")
        rm.app("others", "root.b")
        rm.ask("others", "running", tasks or 1, vcore=2)
        rm.schedule()
        if not tasks:
            rm.release("others", "running")
        rm.ask("late", "claim", vcore=3)
        rm.schedule()

        def pass_a_minute() -> None:
            for _ in range(60):
                rm.pass_time(1)
                rm.schedule()

        return sum(steps_of(pass_a_minute).values())

    assert cost_of_a_minute(320) < cost_of_a_minute(20) * A_QUARTER_MORE


# -- updates -----------------------------------------------------------------------------------------------


def test_cost_of_a_release_by_key_alone_is_independent_of_applications() -> None:
    def cost_each(applications: int) -> float:
        rm = RM(configuration(queue("a")))
        for number in range(applications):
            rm.app(f"app{number}")
            rm.ask(f"app{number}", f"ask{number}", vcore=1)
        gone = [AllocationAskRelease("", f"ask{number}") for number in range(applications)]
        request = UpdateRequest("rm", releases=AllocationReleasesRequest([], gone))
        steps = sum(steps_of(lambda: rm.scheduler.update(request)).values())
        assert len(rm.entries("released_allocation_asks")) == applications
        return steps / applications

    assert cost_each(320) < cost_each(20) * A_QUARTER_MORE


def test_cost_of_a_release_is_independent_of_time_limits() -> None:
    def cost_each(limits: int) -> float:
        rm = RM(configuration(queue("a"), topology=["rack"]))
        rm.node("n1", {"rack": "r1"}, vcore=40)
        rm.app()
        rm.ask(key="running", count=40, vcore=1)
        assert len(rm.schedule()) == 40
        asks = [AllocationAsk(f"ask{number}", "app", "", Resource(vcore=1)) for number in range(120)]
        for number, ask in enumerate(asks):
            ask.execution_timeout_ms = 100_000 + number % limits
        rm.update(asks=asks)
        assert rm.schedule() == []

        def replace_all() -> None:
            for uuid in [*rm.running][:8]:
                rm.release(uuid=uuid)
                assert len(rm.schedule()) == 1

        return sum(steps_of(replace_all).values())

    assert cost_each(120) < cost_each(1) * A_QUARTER_MORE


def test_cost_of_forgetting_classes_that_exceeded_the_quota_is_linear() -> None:
    """Sizes of requests that waited for a quota leave a log each, until other sizes take their numbers."""

    def cost_each(sizes: int) -> float:
        rm = RM(configuration(queue("a", resources={"max": {"vcore": "1"}})))
        rm.node("n1", vcore=10**9, memory=10**9)
        rm.app()
        for number in range(sizes):
            rm.ask("app", f"ask{number}", vcore=2000, memory=1 + number)
        assert rm.schedule() == []
        rm.reload(configuration(queue("a", resources={"max": {"vcore": "100000"}})))
        placed = 0
        while found := len(rm.schedule()):
            placed += found
        leaf = rm.at_work().partition.queues.queue("root.a")
        assert leaf is not None
        assert (placed, len(leaf.attempts)) == (sizes, sizes)

        def others() -> None:
            for number in range(sizes):
                rm.ask("app", f"other{number}", vcore=1000, memory=10**6 + number)

        steps = sum(steps_of(others).values())
        assert len(leaf.attempts) < sizes
        return steps / sizes

    assert cost_each(1_600) < cost_each(400) * A_QUARTER_MORE


# -- checking a configuration --------------------------------------------------------------------------------


def shared_names(teams: int, same: bool) -> str:
    """Return two partitions with `teams` queues of equal names each; `same` requires a common hierarchy."""
    trees = [[queue(f"team{number}", queue("dev")) for number in range(teams)] for _ in range(2)]
    first, second = (partition(*tree, name=name) for tree, name in zip(trees, ("one", "two"), strict=True))
    return document(first, second, samehierarchy=same)


def many_partitions(partitions: int) -> str:
    """Return this many partitions with a queue of one name."""
    return document(*(partition(queue("default"), name=f"p{number}") for number in range(partitions)))


@pytest.mark.parametrize(
    "text",
    [
        lambda size: shared_names(size, same=False),
        lambda size: shared_names(size, same=True),
        many_partitions,
    ],
    ids=["shared names", "shared names, refused", "many partitions"],
)
def test_cost_of_checking_a_configuration_is_linear(text: Callable[[int], str]) -> None:
    registry = Registry.load(third_party=False)

    def cost_each(size: int) -> float:
        written = text(size)
        return sum(steps_of(lambda: check_config(written, registry)).values()) / size

    assert cost_each(160) < cost_each(20) * A_QUARTER_MORE
