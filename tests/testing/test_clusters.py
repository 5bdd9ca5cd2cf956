"""Clusters of the test kit: a real scheduler with single steps, and assertions with helpful messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from yunikorn.api import Application, AppSortPolicy
from yunikorn.errors import ConfigError
from yunikorn_testing import (
    Clusters,
    MakeScheduler,
    Placement,
    application,
    ask,
    assert_node_order,
    assert_order,
    assert_pending_because,
    assert_placed,
    assert_queue,
    assert_rejected_because,
    node,
    queue,
)

BY_NAME = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: batch
            properties:
              application.sort.policy: by-name
          - name: small
            resources:
              max: {vcore: 1}
"""


class ByName(AppSortPolicy):
    """Orders applications by name."""

    name = "by-name"

    def key(self, app: Application) -> str:
        return app.id


class Broken(ByName):
    """Fails for some applications."""

    def key(self, app: Application) -> str:
        if app.id == "bad":
            raise RuntimeError("no idea")
        return app.id


# -- the fixture ----------------------------------------------------------------------------------------


def test_default_configuration_has_one_queue_for_all_users(scheduler: MakeScheduler) -> None:
    cluster = scheduler()
    cluster.add(node("n1", vcore=2, memory="1Gi"))
    cluster.submit(application("app"), ask("task", 2, vcore=1))
    assert [(one.application, one.ask, one.node) for one in cluster.run()] == [("app", "task", "n1")] * 2
    assert_queue(cluster, "app", "root.default")


def test_plugins_under_test_need_no_installation(scheduler: MakeScheduler) -> None:
    cluster = scheduler(BY_NAME, node("n1", vcore=1), plugins=[ByName])
    for name in ("c", "a", "b"):
        cluster.submit(application(name, "root.batch"), ask(vcore=1))
    for name in ("a", "b", "c"):
        cluster.run()
        assert_placed(cluster, name, on="n1", count=1)
        assert cluster.finish(name) == 1
    assert_order(cluster, "a", "b", "c")


def test_a_configuration_may_be_a_file(scheduler: MakeScheduler, tmp_path: Path) -> None:
    file = tmp_path / "queues.yaml"
    file.write_text(BY_NAME, "utf-8")
    cluster = scheduler(file, plugins=[ByName])
    cluster.submit(application("app", "root.batch"))
    assert_queue(cluster, "app", "root.batch")


def test_invalid_configuration_is_reported(scheduler: MakeScheduler) -> None:
    with pytest.raises(ConfigError, match="no application sort policy is called 'by-name'"):
        scheduler(BY_NAME, plugins=[])


def test_invalid_plugin_is_rejected_with_the_reason(scheduler: MakeScheduler) -> None:
    class Nameless(AppSortPolicy):
        """Has no name."""

        def key(self, app: Application) -> int:
            return 0

    with pytest.raises(AssertionError, match="Nameless has no name"):
        scheduler(plugins=[Nameless])
    with pytest.raises(TypeError, match="derive the class from one of AppSortPolicy"):
        scheduler(plugins=[int])  # type: ignore[list-item]


def test_plugin_failures_fail_the_test_at_its_end() -> None:
    clusters = Clusters()
    cluster = clusters(BY_NAME, node("n1", vcore=9), plugins=[Broken])
    for name in ("bad", "good"):
        cluster.submit(application(name, "root.batch"), ask(vcore=1))
    cluster.run()
    assert_order(cluster, "good", "bad")
    with pytest.raises(AssertionError, match=r"by-name of under-test \(test\): .*application bad: .*no idea"):
        clusters.close()


def test_test_may_expect_plugin_failures() -> None:
    clusters = Clusters()
    cluster = clusters(BY_NAME, node("n1", vcore=9), plugins=[Broken], failures="expected")
    for name in ("bad", "good"):
        cluster.submit(application(name, "root.batch"), ask(vcore=1))
    cluster.run()
    assert len(cluster.failures) == 1
    clusters.close()


# -- events of a cluster -----------------------------------------------------------------------------------


def test_time_passes_only_on_request(scheduler: MakeScheduler) -> None:
    cluster = scheduler()
    cluster.add(node("n1", vcore=1))
    cluster.submit(application("app"), ask(vcore=1))
    cluster.run()
    cluster.finish("app")
    assert cluster.state("app") == "Completing"
    cluster.advance(29)
    assert cluster.state("app") == "Completing"
    cluster.advance(1)
    assert cluster.state("app") == "Completed"
    assert cluster.why("app") == {}


def test_nodes_are_added_changed_and_removed(scheduler: MakeScheduler) -> None:
    cluster = scheduler(BY_NAME, node("n1", vcore=1), plugins=[ByName])
    cluster.submit(application("app", "root.batch"), ask("task", 3, vcore=1))
    assert len(cluster.run()) == 1
    cluster.change(node("n1", vcore=2))
    assert len(cluster.run()) == 1
    cluster.remove("n1")
    assert cluster.running() == []
    cluster.add(node("n2", vcore=1))
    cluster.run()
    assert_placed(cluster, "app", on="n2", count=1)
    assert_node_order(cluster, "n1", "n2")
    with pytest.raises(AssertionError, match="node n2 was rejected"):
        cluster.add(node("n2", vcore=1))


def test_preempted_allocations_end_in_the_same_run(scheduler: MakeScheduler) -> None:
    config = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - {name: lender}
          - name: owner
            properties: {preemption.delay: 10s}
            resources: {guaranteed: {vcore: 1}}
"""
    cluster = scheduler(config, node("n1", vcore=1))
    cluster.submit(application("greedy", "root.lender"), ask(vcore=1))
    cluster.run()
    cluster.submit(application("owed", "root.owner"), ask(vcore=1))
    cluster.run()
    assert_pending_because(cluster, "owed", "the cluster is full")
    cluster.advance(60)
    cluster.run()
    assert_placed(cluster, "owed", on="n1")
    assert [one.application for one in cluster.preempted] == ["greedy"]


@pytest.mark.parametrize("style", ["Soft", "Hard"])
def test_placeholders_are_replaced_in_the_same_run(style: str, scheduler: MakeScheduler) -> None:
    cluster = scheduler()
    cluster.add(node("n1", vcore=3))
    cluster.submit(
        application("gang", gang=style, gang_size={"vcore": 2}),
        ask("holder", 2, vcore=1, task_group="workers", placeholder=True),
    )
    cluster.run()
    assert [one.ask for one in cluster.running("gang")] == ["holder", "holder"]
    cluster.request("gang", ask("worker", 2, vcore=1, task_group="workers"))
    cluster.run()
    assert [one.ask for one in cluster.running("gang")] == ["worker", "worker"]
    assert cluster.preempted == []


def test_atomic_gang_is_placed_as_a_whole(scheduler: MakeScheduler) -> None:
    cluster = scheduler()
    cluster.add(node("n1", vcore=1))
    gang = application("gang", gang="Atomic", gang_size={"vcore": 2})
    cluster.submit(gang, ask("member", 2, vcore=1, task_group="workers"))
    assert cluster.run() == []
    cluster.add(node("n2", vcore=1))
    assert [one.ask for one in cluster.run()] == ["member", "member"]


def test_applications_may_add_asks_and_be_removed(scheduler: MakeScheduler) -> None:
    cluster = scheduler()
    cluster.add(node("n1", vcore=3))
    cluster.submit(application("app"))
    cluster.request("app", ask("one", vcore=1), ask("two", vcore=1))
    cluster.run()
    assert [one.ask for one in cluster.running("app")] == ["one", "two"]
    cluster.withdraw("app")
    assert cluster.running() == []
    assert any(event.object_id == "app" for event in cluster.events)


def test_configuration_can_be_reloaded(scheduler: MakeScheduler) -> None:
    cluster = scheduler(BY_NAME, plugins=[ByName])
    assert cluster.reload(BY_NAME + "          - name: third\n")
    assert not cluster.reload(BY_NAME + "          - name: third\n")
    cluster.submit(application("app", "root.third"))
    assert_queue(cluster, "app", "root.third")


# -- failing assertions ------------------------------------------------------------------------------------


def test_failing_assertions_show_the_actual_state(scheduler: MakeScheduler) -> None:
    cluster = scheduler(BY_NAME, node("n1", vcore=4), plugins=[ByName])
    cluster.submit(application("runs", "root.batch"), ask(vcore=1))
    cluster.submit(application("waits", "root.small"), ask("big", vcore=2))
    cluster.submit(application("lost", "root.nowhere"), ask(vcore=1))
    cluster.submit(application("idle", "root.batch"))
    cluster.run()
    quota = r"larger than the quota of queue root\.small \(requested vcore 2, available vcore 1\)"
    with pytest.raises(AssertionError, match=f"application waits has no allocations: request big .*{quota}"):
        assert_placed(cluster, "waits")
    with pytest.raises(
        AssertionError, match="application lost has no allocations: the application was rejected: "
    ):
        assert_placed(cluster, "lost")
    with pytest.raises(AssertionError, match=r"no request is pending \(state New, 0 allocations\)"):
        assert_placed(cluster, "idle")
    with pytest.raises(AssertionError, match=r"there is no application 'wait', did you mean 'waits'\?"):
        assert_placed(cluster, "wait")
    with pytest.raises(AssertionError, match="application runs runs on n1, expected n2"):
        assert_placed(cluster, "runs", on="n2")
    with pytest.raises(AssertionError, match=r"application runs has 1 allocation \(on n1\), expected 2: "):
        assert_placed(cluster, "runs", count=2)
    with pytest.raises(
        AssertionError, match="in order of their first allocation: runs; expected: waits, runs"
    ):
        assert_order(cluster, "waits", "runs")
    with pytest.raises(AssertionError, match="nodes in order of their first allocation: n1; expected: n2"):
        assert_node_order(cluster, "n2")
    with pytest.raises(AssertionError, match=rf"big of .* is pending because: {quota}.*; expected: no node"):
        assert_pending_because(cluster, "waits", "no node")
    with pytest.raises(AssertionError, match="application runs has no pending request"):
        assert_pending_because(cluster, "runs", "anything")
    with pytest.raises(AssertionError, match="application waits has no pending request small"):
        assert_pending_because(cluster, "waits", "anything", key="small")
    with pytest.raises(
        AssertionError, match=r"application runs is in queue root\.batch, expected root\.small"
    ):
        assert_queue(cluster, "runs", "root.small")
    with pytest.raises(AssertionError, match="application lost was rejected: "):
        assert_queue(cluster, "lost", "root.nowhere")
    with pytest.raises(AssertionError, match="runs was not rejected; rejected: lost"):
        assert_rejected_because(cluster, "runs", "anything")
    with pytest.raises(AssertionError, match=r"lost was rejected because: .*; expected: another reason"):
        assert_rejected_because(cluster, "lost", "another reason")


def test_true_assertions_pass(scheduler: MakeScheduler) -> None:
    cluster = scheduler(BY_NAME, node("n1", vcore=4), plugins=[ByName])
    cluster.submit(application("waits", "root.small"), ask("big", vcore=2), ask("fits", vcore=1))
    cluster.submit(application("lost", "root.nowhere"))
    cluster.run()
    assert_pending_because(cluster, "waits", "Larger than the QUOTA", key="big")
    assert_rejected_because(cluster, "lost", "root.nowhere")
    assert cluster.placements == [Placement("waits", "fits", "n1", cluster.placements[0].uuid)]


# -- builders -------------------------------------------------------------------------------------------


def test_amounts_are_written_as_in_the_configuration() -> None:
    made = node("n1", vcore=2, memory="4Gi", capacity={"nvidia.com/gpu": 1}, occupied={"vcore": "500m"})
    assert made.capacity == {"vcore": 2000, "memory": 4 * 2**30, "nvidia.com/gpu": 1}
    assert made.available["vcore"] == 1500
    assert node(vcore=1, allocated={"vcore": 2}).available == {"vcore": -1000}
    with pytest.raises(ValueError, match="the amount of memory: "):
        node(memory="4Gb")


def test_samples_do_not_change() -> None:
    made = application(tags={"a": "b"}, pending={"vcore": 1}, submitted=1.5)
    with pytest.raises(AttributeError):
        made.user = "bob"  # type: ignore[misc]
    with pytest.raises(TypeError):
        made.tags["a"] = "c"  # type: ignore[index]
    with pytest.raises(TypeError, match="does not change"):
        made.pending["vcore"] = 2
    assert (made.submitted, made.waiting_since) == (1_500_000_000, 1_500_000_000)


def test_share_of_a_queue_is_relative_to_its_quota_and_the_cluster() -> None:
    made = queue(total={"vcore": 4, "memory": 8}, max={"vcore": 2})
    assert made.fair_max == {"vcore": 2000, "memory": 8}
