"""Tests that no request has a higher priority than its user may have, or is too large."""

from __future__ import annotations

import json

from yunikorn_priority_caps import PriorityCaps

from yunikorn_testing import (
    MakeScheduler,
    SubmitPolicyContract,
    application,
    ask,
    assert_order,
    node,
)

OPTIONS = {"caps": {"staff": 100, "students": 10}, "otherwise": 5, "largest": {"gpu": 2}}


class TestPriorityCaps(SubmitPolicyContract):
    """Contract test of submit policies."""

    policy = PriorityCaps({"staff": 100, "students": 10}, 5, {"gpu": 2})


def configuration() -> str:
    """Return a configuration with the policy."""
    root = {"name": "root", "submitacl": "*", "queues": [{"name": "default"}]}
    policy = {"name": "priority-caps", **OPTIONS}
    return json.dumps({"partitions": [{"name": "default", "submitpolicies": [policy], "queues": [root]}]})


def test_priorities_are_capped_by_group(scheduler: MakeScheduler) -> None:
    cluster = scheduler(configuration(), node("n1", vcore=2), plugins=[PriorityCaps])
    cluster.submit(application("visitor", groups=["guests"]), ask("task", vcore=1, priority=1000))
    cluster.submit(application("student", groups=["students"]), ask("task", vcore=1, priority=1000))
    cluster.submit(application("member", groups=["students", "staff"]), ask("task", vcore=1, priority=11))
    cluster.run()
    assert_order(cluster, "member", "student")
    cluster.request("visitor", ask("later", vcore=1, priority=12))
    cluster.submit(application("low", groups=["staff"]), ask("task", vcore=1, priority=6))
    cluster.finish("member")
    assert [one.application for one in cluster.run()] == ["low"]


def test_requests_that_are_too_large_are_rejected(scheduler: MakeScheduler) -> None:
    nodes = node("n1", vcore=8, capacity={"gpu": 8})
    cluster = scheduler(configuration(), nodes, plugins=[PriorityCaps])
    cluster.submit(application("app"), ask("fits", vcore=1, resource={"gpu": 2}))
    cluster.request("app", ask("large", vcore=1, resource={"gpu": 3}))
    assert [one.ask for one in cluster.run()] == ["fits"]
    assert "a task may have 2 of gpu, not 3" in cluster.rejected["large"]
