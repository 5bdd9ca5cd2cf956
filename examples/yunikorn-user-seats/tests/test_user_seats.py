"""Tests that neither the seats nor the limit of a user is ever exceeded."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence

import pytest
from yunikorn_user_seats import UserSeats

from yunikorn.testing import (
    AskSample,
    Cluster,
    MakeScheduler,
    PredicateContract,
    application,
    ask,
    assert_pending_because,
    node,
)

SEATS, PER_USER = {"matlab": 4, "ansys": 1}, {"matlab": 2}


class TestUserSeats(PredicateContract):
    """Contract test of predicates."""

    predicate = UserSeats(SEATS, per_user=PER_USER)

    def asks(self) -> Sequence[AskSample]:
        """Return requests for known and unknown seats of several users."""
        users = [application(user, user=user, tags={"seat": "matlab"}) for user in ("ann", "bob", "cid")]
        return [
            *(ask(app.user, vcore=1, app=app) for app in users),
            *(ask(f"{seat}?", vcore=1, tags={"seat": seat}) for seat in ("ansys", "maple", "")),
        ]


def configuration() -> str:
    """Return a configuration with the predicate."""
    root = {"name": "root", "submitacl": "*", "queues": [{"name": "default"}]}
    predicate = {"name": "user-seats", "seats": SEATS, "per_user": PER_USER}
    return json.dumps({"partitions": [{"name": "default", "predicates": [predicate], "queues": [root]}]})


def held(cluster: Cluster, users: dict[str, str]) -> Counter[str]:
    """Return the number of running tasks by user."""
    return Counter(users[one.application] for one in cluster.running())


def test_one_user_leaves_seats_for_others(scheduler: MakeScheduler) -> None:
    nodes = [node(name, vcore=8) for name in ("n1", "n2")]
    cluster = scheduler(configuration(), *nodes, plugins=[UserSeats])
    for user in ("ann", "bob", "cid"):
        cluster.submit(application(user, user=user, tags={"seat": "matlab"}), ask("task", 3, vcore=1))
    cluster.run()
    assert held(cluster, {"ann": "ann", "bob": "bob", "cid": "cid"}) == {"ann": 2, "bob": 2}
    assert_pending_because(cluster, "cid", "all 4 seats matlab are taken")
    cluster.withdraw("ann")
    cluster.run()
    assert len(cluster.running("cid")) == 2
    cluster.withdraw("bob")
    cluster.run()
    assert_pending_because(cluster, "cid", "user cid holds 2 seats matlab, the most for one user")


@pytest.mark.parametrize("seed", range(20))
def test_limits_hold_under_random_work(seed: int, scheduler: MakeScheduler) -> None:
    draw = random.Random(seed)
    cluster = scheduler(configuration(), node("n0", vcore=8), plugins=[UserSeats])
    users: dict[str, str] = {}
    for step in range(1, 40):
        match draw.randrange(5):
            case 0 | 1:
                app, user = f"app-{step}", draw.choice(["ann", "bob", "cid"])
                users[app] = user
                cluster.submit(
                    application(app, user=user, tags={"seat": "matlab"}),
                    ask("many", draw.randint(1, 3), vcore=draw.randint(1, 3)),
                )
            case 2 if cluster.running():
                cluster.finish(draw.choice(cluster.running()).application)
            case 3:
                cluster.add(node(f"n{step}", vcore=4))
            case _:
                cluster.advance(10)
        cluster.run()
        counts = held(cluster, users)
        assert sum(counts.values()) <= SEATS["matlab"]
        assert max(counts.values(), default=0) <= PER_USER["matlab"]
