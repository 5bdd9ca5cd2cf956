"""Tests that past usage lowers the rank of a queue, and decays."""

from __future__ import annotations

from yunikorn_decayed_share import DecayedShare

from yunikorn_testing import (
    Cluster,
    MakeScheduler,
    QueueSortPolicyContract,
    application,
    ask,
    node,
    queue,
)

QUEUES = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        properties:
          queue.sort.policy: POLICY
        queues:
          - {name: busy}
          - {name: calm}
"""
DECAYED = QUEUES.replace("POLICY", "decayed-share\n          queue.sort.policy.hours: '1'")


class TestDecayedShare(QueueSortPolicyContract):
    """Contract test of queue sort policies."""

    policy = DecayedShare(hours=2.0, refresh=30.0)


def after_a_night(cluster: Cluster, morning: float) -> list[str]:
    """Return the allocated applications when two queues compete, `morning` seconds after `busy` used all."""
    cluster.submit(application("night", "root.busy"), ask("task", 4, vcore=1))
    cluster.run()
    cluster.advance(8 * 3600)
    cluster.finish("night")
    cluster.run()
    cluster.advance(morning)
    for name in ("busy", "calm"):
        cluster.submit(application(name, f"root.{name}"), ask("task", 4, vcore=1))
    return [one.application for one in cluster.run()]


def test_fair_policy_ignores_past_usage(scheduler: MakeScheduler) -> None:
    cluster = scheduler(QUEUES.replace("POLICY", "fair"), node(vcore=4), plugins=[])
    assert sorted(after_a_night(cluster, 60)) == ["busy", "busy", "calm", "calm"]


def test_queue_with_less_past_usage_is_served_first(scheduler: MakeScheduler) -> None:
    cluster = scheduler(DECAYED, node(vcore=4), plugins=[DecayedShare])
    assert after_a_night(cluster, 60) == ["calm"] * 4


def test_past_usage_decays(scheduler: MakeScheduler) -> None:
    cluster = scheduler(DECAYED, node(vcore=4), plugins=[DecayedShare])
    # After thirty half-lives the usage of the night is negligible, so that of `calm` soon exceeds it.
    assert after_a_night(cluster, 30 * 3600) == ["calm"] * 4
    cluster.advance(60)
    cluster.finish("calm")
    cluster.submit(application("more", "root.calm"), ask("task", 4, vcore=1))
    assert [one.application for one in cluster.run()] == ["busy"] * 4


def test_past_usage_is_relative_to_the_guarantee() -> None:
    policy = DecayedShare(hours=1.0)
    total = {"vcore": 100}
    poor = queue("root.poor", total=total, recent={"vcore": 1e6})
    owed = queue("root.owed", total=total, guaranteed={"vcore": 50}, recent={"vcore": 1e6})
    entitled = queue("root.entitled", total=total, guaranteed={"vcore": 200}, recent={"vcore": 1e6})
    keys = [policy.key(each)[0] for each in (entitled, poor, owed)]
    assert keys == sorted(keys)
    assert len(set(keys)) == 3
