"""Workloads of all kinds run with the rights of the deployment; events, conditions and REST tell how."""

from __future__ import annotations

from tests.kubernetes.cluster.objects import (
    daemon_set,
    deployment,
    job,
    namespace,
    node,
    nodes,
    pod,
    stateful_set,
)
from tests.kubernetes.scheduling import Scheduled


def test_pods_of_all_workloads_run(scheduled: Scheduled) -> None:
    scheduled.make_nodes(*nodes(3))
    scheduled.create(pod("alone"), job("batch", pods=3), deployment("web", replicas=3))
    scheduled.create(stateful_set("store", replicas=2), daemon_set("agent"))
    placed = scheduled.running(1 + 3 + 3 + 2 + 3)
    agents = sorted(where for name, where in placed.items() if name.startswith("agent-"))
    assert agents == ["node-0", "node-1", "node-2"]


def test_a_job_runs_in_turns_and_completes(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only", cpu="2"))
    scheduled.create(job("batch", pods=6, runs="10ms", cpu="1"))
    scheduled.kubectl.wait_for("Job", "batch", lambda one: one["status"].get("succeeded") == 6)
    assert set(scheduled.wait_pods(lambda pods: len(pods) == 6)) == set(
        scheduled.wait_pods(lambda pods: all(one["spec"].get("nodeName") == "only" for one in pods))
    )


def test_a_deployment_grows_shrinks_and_ends(scheduled: Scheduled) -> None:
    scheduled.make_nodes(*nodes(2, cpu="2"))
    scheduled.create(deployment("web", replicas=2))
    scheduled.running(2)
    scheduled.kubectl.patch("Deployment", "web", {"spec": {"replicas": 6}})
    scheduled.running(4)
    scheduled.kubectl.patch("Deployment", "web", {"spec": {"replicas": 1}})
    scheduled.wait_pods(lambda pods: len(pods) == 1)
    # The room of the removed pods is free again.
    scheduled.create(job("batch", pods=3))
    scheduled.running(4)
    scheduled.kubectl.delete("Deployment", "web")
    scheduled.running(3)


def test_a_pod_has_events_of_its_way_to_a_node(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only"))
    scheduled.create(pod("first"))
    notes = scheduled.events("Scheduling", "Scheduled", "PodBindSuccessful", regarding="first")
    assert any("default/first" in note and "only" in note for note in notes)


def test_a_waiting_pod_says_what_it_lacks_and_runs_when_it_is_there(scheduled: Scheduled) -> None:
    scheduled.make_nodes(*nodes(2, cpu="1"))
    scheduled.create(pod("large", cpu="3", application="waits", queue="root.wide"))
    message = scheduled.pending("large", "root.wide")
    assert "vcore" in message
    assert "2" in message
    scheduled.events("PodUnschedulable", regarding="large")
    scheduled.make_nodes(node("big", cpu="4"))
    assert scheduled.node_of("large") == "big"


def test_other_pods_of_an_application_pass_one_that_does_not_fit(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only", cpu="2"))
    scheduled.create(pod("large", cpu="8", application="mixed"), pod("small", application="mixed"))
    scheduled.pending("large")
    assert scheduled.node_of("small") == "only"


def test_rest_shows_queues_applications_and_nodes(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only", cpu="4"))
    scheduled.create(namespace("team"), job("batch", "team", pods=3, application="batch-1"))
    scheduled.running(3, "team")
    root = scheduled.rest("/ws/v1/partition/default/queues")
    [team] = [one for one in root["children"] if one["queuename"] == "root.team"]
    assert team["allocatedResource"]["vcore"] == 3000
    [application] = scheduled.rest("/ws/v1/partition/default/queue/root.team/applications")
    assert (application["applicationID"], application["applicationState"]) == ("batch-1", "Running")
    assert len(application["allocations"]) == 3
    [seen] = scheduled.rest("/ws/v1/partition/default/nodes")
    assert (seen["nodeID"], seen["capacity"]["vcore"]) == ("only", 4000)
    [namespaced] = {
        one["allocationTags"]["kubernetes.io/meta/namespace"] for one in application["allocations"]
    }
    assert namespaced == "team"
