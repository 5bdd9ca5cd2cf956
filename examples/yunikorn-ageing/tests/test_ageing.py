"""Tests that low priorities do not starve: by ageing, and by a limit on the time of waiting."""

from __future__ import annotations

import pytest
from yunikorn_ageing import Ageing

from yunikorn_testing import (
    AppSortPolicyContract,
    Cluster,
    MakeScheduler,
    application,
    ask,
    assert_order,
    node,
)

QUEUES = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: batch
            properties:
              application.sort.policy: POLICY
              application.sort.priority: PRIORITY
"""
STEP = "ageing\n              application.sort.policy.step: '60'"
PATIENCE = "ageing\n              application.sort.policy.patience: '200'"


class TestAgeing(AppSortPolicyContract):
    """Contract test of application sort policies."""

    policy = Ageing(step=60.0)


class TestAgeingWithPatience(AppSortPolicyContract):
    """Contract test with the option `patience`."""

    policy = Ageing(step=60.0, patience=600.0)


def configuration(policy: str, *, priority: str = "disabled") -> str:
    """Return a configuration with this policy."""
    return QUEUES.replace("POLICY", policy).replace("PRIORITY", priority)


def turns_until_poor_runs(cluster: Cluster, most: int = 60) -> int:
    """Return the round in which `poor` runs: each 10 s a task of priority 5 arrives, and one task runs."""
    cluster.submit(application("poor", "root.batch"), ask(vcore=1, priority=0))
    for turn in range(most):
        cluster.submit(application(f"rich-{turn}", "root.batch"), ask(vcore=1, priority=5))
        (placed,) = cluster.run()
        if placed.application == "poor":
            return turn
        cluster.advance(10)
        cluster.finish(placed.application)
    return most


@pytest.mark.parametrize(("policy", "priority"), [("fifo", "enabled"), (STEP, "enabled")])
def test_low_priority_applications_starve_without_ageing(
    policy: str, priority: str, scheduler: MakeScheduler
) -> None:
    cluster = scheduler(configuration(policy, priority=priority), node(vcore=1), plugins=[Ageing])
    assert turns_until_poor_runs(cluster) == 60


def test_low_priority_applications_run_with_ageing(scheduler: MakeScheduler) -> None:
    cluster = scheduler(configuration(STEP), node(vcore=1), plugins=[Ageing])
    # Five levels of priority take 5 * 60 seconds, which are 30 rounds.
    assert turns_until_poor_runs(cluster) == pytest.approx(30, abs=1)


def test_overdue_application_runs_before_higher_priorities(scheduler: MakeScheduler) -> None:
    cluster = scheduler(configuration(PATIENCE), node(vcore=1), plugins=[Ageing])
    assert turns_until_poor_runs(cluster) == pytest.approx(20, abs=1)


def test_applications_of_equal_priority_run_in_order_of_submission(scheduler: MakeScheduler) -> None:
    cluster = scheduler(configuration(STEP), node(vcore=4), plugins=[Ageing])
    for name in ("first", "second", "third"):
        cluster.submit(application(name, "root.batch"), ask(vcore=1, priority=0))
        cluster.advance(1)
    cluster.run()
    assert_order(cluster, "first", "second", "third")
