"""Tests that the least work is lost, and that no promise of the scheduler is broken."""

from __future__ import annotations

from collections import Counter

from hypothesis import event, given, settings
from hypothesis import strategies as st
from yunikorn_least_lost_work import LeastLostWork

from yunikorn_testing import (
    Cluster,
    MakeScheduler,
    PreemptionPolicyContract,
    application,
    ask,
    assert_pending_because,
    node,
    registry_with,
)

QUEUES = """
partitions:
  - name: default
    preemption: {policy: {name: least-lost-work, spare: SPARE}}
    queues:
      - name: root
        submitacl: "*"
        queues:
          - {name: batch, resources: {guaranteed: {vcore: BATCH}}}
          - {name: other, resources: {guaranteed: {vcore: 1}}}
          - {name: service, resources: {guaranteed: {vcore: 4}}}
"""


def queues(spare: int = 0, batch: int = 1) -> str:
    return QUEUES.replace("SPARE", str(spare)).replace("BATCH", str(batch))


class TestLeastLostWork(PreemptionPolicyContract):
    """Contract test of preemption policies."""

    policy = LeastLostWork(spare=60.0, resource="memory", originators="protect", keeps_progress="team")


def test_task_with_the_least_work_is_preempted(scheduler: MakeScheduler) -> None:
    cluster = scheduler(queues(), node("n1", vcore=4), plugins=[LeastLostWork])
    cluster.submit(application("old", "root.batch"), ask("old", vcore=1))
    cluster.run()
    cluster.advance(100)
    cluster.submit(application("wide", "root.batch"), ask("wide", vcore=3))
    cluster.run()
    cluster.submit(application("urgent", "root.service"), ask("task", vcore=1))
    cluster.advance(100)
    cluster.run()
    # 200 core seconds of the old task, 300 of the wide one, which is the youngest.
    assert [one.ask for one in cluster.preempted] == ["old"]


def test_node_with_the_least_work_is_chosen(scheduler: MakeScheduler) -> None:
    cluster = scheduler(queues(), node("a", vcore=2), plugins=[LeastLostWork])
    cluster.submit(application("first", "root.batch"), ask("long", vcore=2))
    cluster.run()
    cluster.advance(1000)
    cluster.add(node("b", vcore=2))
    cluster.submit(application("second", "root.batch"), ask("short", 2, vcore=1))
    cluster.run()
    cluster.submit(application("urgent", "root.service"), ask("task", vcore=2))
    cluster.advance(100)
    cluster.run()
    # Two victims lose less than one.
    assert [one.ask for one in cluster.preempted] == ["short", "short"]


def test_task_that_keeps_its_progress_is_suspended_first(scheduler: MakeScheduler) -> None:
    keeping = queues().replace("spare: 0", "spare: 0, keeps_progress: checkpoints")
    cluster = scheduler(keeping, node("n1", vcore=4), plugins=[LeastLostWork])
    cluster.submit(application("old", "root.batch"), ask("old", vcore=2, tags={"checkpoints": "true"}))
    cluster.run()
    cluster.advance(1000)
    cluster.submit(application("young", "root.batch"), ask("young", vcore=1), ask("other", vcore=1))
    cluster.run()
    cluster.submit(application("urgent", "root.service"), ask("task", vcore=3))
    cluster.advance(100)
    cluster.run()
    modes = {one.ask: one.mode for one in cluster.preempted}
    assert modes["old"] == "suspend"
    assert sorted(modes.values()) == ["end", "suspend"]


def test_originator_is_preempted_last(scheduler: MakeScheduler) -> None:
    cluster = scheduler(queues(), node("n1", vcore=4), plugins=[LeastLostWork])
    driver, task = ask("driver", vcore=1, originator=True), ask("task", vcore=3)
    cluster.submit(application("app", "root.batch"), driver, task)
    cluster.run()
    cluster.submit(application("urgent", "root.service"), ask("urgent", vcore=1))
    cluster.advance(100)
    cluster.run()
    assert [one.ask for one in cluster.preempted] == ["task"]


def test_task_is_spared_in_its_first_seconds(scheduler: MakeScheduler) -> None:
    cluster = scheduler(queues(spare=600), node("n1", vcore=4), plugins=[LeastLostWork])
    cluster.submit(application("app", "root.batch"), ask("task", 2, vcore=2))
    cluster.run()
    cluster.submit(application("urgent", "root.service"), ask("urgent", vcore=1))
    cluster.advance(300)
    cluster.run()
    assert_pending_because(cluster, "urgent", "has run for less than 600 seconds (2)")
    cluster.advance(331)
    cluster.run()
    assert len(cluster.preempted) == 1


TASKS = st.lists(
    st.tuples(st.sampled_from(["batch", "other"]), st.integers(1, 3), st.booleans(), st.integers(0, 90)),
    min_size=3,
    max_size=10,
)


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(2, 6), min_size=1, max_size=3),
    tasks=TASKS,
    urgent=st.integers(1, 4),
    batch=st.integers(1, 6),
)
def test_promises_hold_in_random_clusters(
    sizes: list[int], tasks: list[tuple[str, int, bool, int]], urgent: int, batch: int
) -> None:
    """Guarantees hold, enough is freed or nothing, no victim is needless, and young tasks are spared."""
    nodes = [node(f"n{number}", vcore=size) for number, size in enumerate(sizes)]
    cluster = Cluster(queues(spare=60, batch=batch), registry_with(LeastLostWork), nodes)
    wanted: dict[str, tuple[str, int]] = {}
    started: dict[str, int] = {}
    for number, (leaf, cores, originator, pause) in enumerate(tasks):
        key = f"t{number}"
        wanted[key] = leaf, cores
        cluster.submit(application(key, f"root.{leaf}"), ask(key, vcore=cores, originator=originator))
        cluster.run()
        started |= {one.uuid: cluster.clock.now() for one in cluster.running() if one.uuid not in started}
        cluster.advance(pause)
    for key in wanted:
        if not cluster.running(key):
            cluster.withdraw(key)
    before, earlier = used(cluster, wanted), len(cluster.preempted)
    cluster.submit(application("urgent", "root.service"), ask("urgent", vcore=urgent))
    cluster.run()
    cluster.advance(31)
    preempted_at = cluster.clock.now()
    cluster.run()
    after, victims = used(cluster, wanted), cluster.preempted[earlier:]
    if victims:
        event("preempted")
        (placed,) = cluster.running("urgent")
        there = [one for one in victims if one.node == placed.node]
        assert there == victims, "no quota needs room elsewhere"
        free = sizes[int(placed.node[1:])] - sum(
            wanted.get(one.ask, ("", urgent))[1] for one in cluster.running() if one.node == placed.node
        )
        assert all(wanted[one.ask][1] > free for one in there), "each victim is needed"
    for leaf, guaranteed in (("batch", batch), ("other", 1)):
        assert after[leaf] >= min(before[leaf], guaranteed), f"{leaf} keeps its guarantee"
    for one in victims:
        assert preempted_at - started[one.uuid] >= 60 * 1_000_000_000
    assert not cluster.failures
    cluster.close()


def used(cluster: Cluster, wanted: dict[str, tuple[str, int]]) -> Counter[str]:
    """Return the cores that the tasks of each leaf use."""
    found: Counter[str] = Counter()
    for one in cluster.running():
        if one.ask in wanted:
            leaf, cores = wanted[one.ask]
            found[leaf] += cores
    return found
