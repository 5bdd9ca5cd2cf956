"""Obstacles of asks: quotas of queues and limits of users, leaf first."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.core.kit import RM, configuration, queue
from yunikorn.scheduling.obstacles import excess, first_obstacle, holders, obstacles, replicas_within


def bounds(rng: Random, least: int) -> dict[str, Any]:
    """Return a quota from `least` + 2 on and a user limit from `least` on, or less."""
    keys: dict[str, Any] = {}
    if rng.random() < 0.6:
        keys["resources"] = {"max": {"memory": rng.randint(least + 2, least + 3)}}
    if rng.random() < 0.6:
        keys["limits"] = [
            {"limit": "a", "users": ["*"], "maxresources": {"memory": rng.randint(least, least + 1)}}
        ]
    return keys


@pytest.mark.parametrize("seed", range(20))
def test_first_obstacle_is_the_first_of_all_obstacles(seed: int) -> None:
    rng = Random(seed)
    leaves = (queue("b", **bounds(rng, 1)), queue("c", **bounds(rng, 1)))
    rm = RM(configuration(queue("a", *leaves, **bounds(rng, 5))))
    rm.node(memory=rng.randint(1, 12))
    for number in range(6):
        rm.app(f"app{number}", f"root.a.{rng.choice('bc')}", user=rng.choice(("ann", "bob")))
        rm.ask(f"app{number}", memory=rng.randint(1, 4), count=rng.randint(1, 3))
    rm.schedule()
    found = 0
    for app in rm.at_work().partition.applications.values():
        for ask in app.asks.values():
            every = list(obstacles(ask))
            found += len(every)
            assert first_obstacle(ask) is next(iter(every), None)
            assert every == [holder for holder in holders(app) if excess(holder, ask.ask_class.pairs)]
            assert all(
                (replicas_within(holder, ask.ask_class.pairs, 1, {}) == 0) == (holder in every)
                for holder in holders(app)
            )
    assert found


def test_full_queue_is_an_obstacle_only_to_applications_that_have_not_started() -> None:
    rm = RM(configuration(queue("a", maxapplications=1)))
    rm.node(memory=9)
    for app in ("first", "second"):
        rm.app(app, "root.a")
        rm.ask(app, memory=1, count=2)
    rm.schedule(1)
    first, second = (next(iter(rm.find_app(app).asks.values())) for app in ("first", "second"))
    assert not list(obstacles(first, to_start=True))
    assert list(obstacles(second, to_start=True)) == [rm.find_queue("root.a")]
    assert not list(obstacles(second))
