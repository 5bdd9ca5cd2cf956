"""Annotations of namespaces are quotas, guarantees and parents of their queues, and limits hold for users."""

from __future__ import annotations

import json
from typing import Any

from tests.kubernetes.cluster import Obj
from tests.kubernetes.cluster.objects import deployment, namespace, node, node_of, phase, pod
from tests.kubernetes.scenarios.gangs import unique
from tests.kubernetes.scheduling import Scheduled

PREFIX = "yunikorn.apache.org/"
QUOTA = f"{PREFIX}namespace.quota"
WITH_PARENT = """
partitions:
  - name: default
    placementrules:
      - {name: tag, value: namespace, create: true, parent: {name: tag, value: namespace.parentqueue}}
    queues:
      - name: root
        submitacl: "*"
        queues: [{name: teams, parent: true, resources: {max: {vcore: 2}}}]
"""
LIMITED = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: team
            limits:
              - {limit: one, users: [ada], maxresources: {vcore: 2}}
              - {limit: starts, users: [bob], maxapplications: 1}
              - {limit: others, users: ["*"], maxresources: {vcore: 1}}
          - name: groups
            limits:
              - {limit: group, groups: [staff], maxresources: {vcore: 3}}
"""


def make_team(scheduled: Scheduled, **annotations: str) -> str:
    """Make a namespace with annotations of YuniKorn, whose names may have dots; return its name.

    Names differ, because the queue of a namespace outlives it for some seconds.
    """
    told = {PREFIX + name: text for name, text in annotations.items()}
    made = scheduled.kubectl.create(namespace(unique("team"), annotations=told))
    return str(made["metadata"]["name"])


def queue_of(scheduled: Scheduled, *path: str) -> Any:
    """Return what REST shows of a queue, by the names on the way from the root."""
    found = scheduled.rest("/ws/v1/partition/default/queues")
    full = "root"
    for name in path:
        full = f"{full}.{name}"
        [found] = [one for one in found["children"] if one["queuename"] == full]
    return found


def waiting(scheduled: Scheduled, team: str, count: int) -> list[str]:
    """Wait until this number of pods of a namespace has no node; return their names."""
    pods = scheduled.wait_pods(lambda pods: sum("nodeName" not in one["spec"] for one in pods) == count, team)
    return sorted(name for name, one in pods.items() if "nodeName" not in one["spec"])


def test_a_quota_of_a_namespace_bounds_its_pods(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only"))
    team = make_team(scheduled, **{"namespace.quota": json.dumps({"cpu": "2", "memory": "8Gi"})})
    scheduled.create(deployment("web", team, replicas=3))
    scheduled.running(2, team)
    [name] = waiting(scheduled, team, 1)
    assert f"root.{team}" in scheduled.pending(name, namespace=team)
    assert queue_of(scheduled, team)["maxResource"] == {"vcore": 2000, "memory": 8 * 2**30}
    # A pod that ends makes room for the next one.
    scheduled.kubectl.patch("Deployment", "web", {"spec": {"replicas": 2}}, team)
    scheduled.wait_pods(lambda pods: len(pods) == 2, team)
    scheduled.running(2, team)


def test_the_older_annotations_are_a_quota_as_well(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only"))
    team = make_team(scheduled, **{"namespace.max.cpu": "2", "namespace.max.memory": "5Gi"})
    scheduled.create(deployment("web", team, replicas=3))
    scheduled.running(2, team)
    assert queue_of(scheduled, team)["maxResource"] == {"vcore": 2000, "memory": 5 * 2**30}


def test_the_newer_annotation_replaces_the_older_ones(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only"))
    team = make_team(scheduled, **{"namespace.max.cpu": "1", "namespace.quota": json.dumps({"cpu": "3"})})
    scheduled.create(deployment("web", team, replicas=4))
    scheduled.running(3, team)
    assert queue_of(scheduled, team)["maxResource"] == {"vcore": 3000}


def test_a_quota_that_cannot_be_read_is_no_quota(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only"))
    team = make_team(scheduled, **{"namespace.quota": '{"cpu": "two"}'})
    scheduled.create(deployment("web", team, replicas=3))
    scheduled.running(3, team)


def test_a_guarantee_of_a_namespace_is_that_of_its_queue(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only"))
    team = make_team(scheduled, **{"namespace.guaranteed": json.dumps({"cpu": "2"})})
    scheduled.create(pod("first", team))
    scheduled.running(1, team)
    assert queue_of(scheduled, team)["guaranteedResource"] == {"vcore": 2000}


def test_a_namespace_limits_its_running_applications(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only"))
    team = make_team(scheduled, **{"namespace.maxApps": "1"})
    scheduled.create(pod("first", team, application=unique("app-1")))
    scheduled.running(1, team)
    scheduled.create(pod("second", team, application=unique("app-2")))
    scheduled.pending("second", namespace=team)
    scheduled.kubectl.delete("Pod", "first", team)
    assert scheduled.node_of("second", team) == "only"


def test_a_namespace_names_the_parent_of_its_queue(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only"))
    with scheduled.queues(WITH_PARENT):
        team = make_team(scheduled, parentqueue="root.teams")
        scheduled.create(deployment("web", team, replicas=3))
        scheduled.running(2, team)
        assert queue_of(scheduled, "teams", team)["allocatedResource"]["vcore"] == 2000


def test_a_changed_quota_holds_for_later_applications(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only"))
    team = make_team(scheduled, **{"namespace.quota": json.dumps({"cpu": "1"})})
    scheduled.create(*(pod(f"first-{number}", team, application=unique("first")) for number in range(2)))
    scheduled.running(1, team)
    changed = {"metadata": {"annotations": {QUOTA: json.dumps({"cpu": "3"})}}}
    scheduled.kubectl.patch("Namespace", team, changed)
    # A pod may reach the scheduler before an earlier change of its namespace, which another watch reports.
    for number in range(10):
        scheduled.create(pod(f"later-{number}", team, application=unique("later")))
        scheduled.wait_pods(
            lambda pods: all(node_of(one) or one["status"].get("conditions") for one in pods), team
        )
        if queue_of(scheduled, team)["maxResource"] == {"vcore": 3000}:
            break
    scheduled.running(3, team)


# -- users and groups -----------------------------------------------------------------------------------


def owned(name: str, user: str, *groups: str) -> Obj:
    """Return a pod of a user, as the admission controller marks it."""
    told = json.dumps({"user": user, "groups": groups})
    return pod(
        name,
        application=unique("app"),
        queue="root.groups" if groups else "root.team",
        annotations={f"{PREFIX}user.info": told} if user else {},
    )


def test_a_limit_of_a_user_bounds_all_applications_of_that_user(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only"))
    with scheduled.queues(LIMITED):
        scheduled.create(*(owned(f"ada-{number}", "ada") for number in range(3)))
        scheduled.running(2)
        [name] = [
            one["metadata"]["name"]
            for one in scheduled.kubectl.list("Pod", "default")
            if phase(one) == "Pending"
        ]
        assert scheduled.pending(name)
        notes = scheduled.events("Informational", regarding=name)
        assert any("user quota" in note for note in notes)


def test_a_limit_of_a_group_is_shared_by_its_users(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only"))
    with scheduled.queues(LIMITED):
        users = ("carl", "dora")
        scheduled.create(*(owned(f"{user}-{number}", user, "staff") for user in users for number in range(2)))
        scheduled.running(3)
        groups = scheduled.rest("/ws/v1/partition/default/usage/groups")
        [staff] = [one for one in groups if one["groupName"] == "staff"]
        assert staff["queues"]["resourceUsage"]["vcore"] == 3000


def test_a_user_may_run_one_application_only(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only"))
    with scheduled.queues(LIMITED):
        scheduled.create(owned("first", "bob"))
        scheduled.running(1)
        scheduled.create(owned("second", "bob"))
        scheduled.pending("second")
        scheduled.kubectl.delete("Pod", "first")
        assert scheduled.node_of("second") == "only"


def test_users_without_a_limit_of_their_own_have_that_of_all_others(scheduled: Scheduled) -> None:
    scheduled.make_nodes(node("only"))
    with scheduled.queues(LIMITED):
        scheduled.create(owned("eve-0", "eve"), owned("eve-1", "eve"))
        scheduled.running(1)
        # Pods without the annotation share one user.
        scheduled.create(owned("none-0", ""), owned("none-1", ""))
        scheduled.running(2)
