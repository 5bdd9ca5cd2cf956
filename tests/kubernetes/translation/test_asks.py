"""Asks and allocations of pods: tags, preemption, gang membership, foreign pods."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kubernetes.bodies import CREATED, CREATED_SECOND, pod_of, read
from yunikorn.interface.messages import PreemptionPolicy
from yunikorn_kubernetes.objects import PriorityClass
from yunikorn_kubernetes.translation.asks import foreign_kind, pod_tags, preemption_policy, task_group_name

ALLOW = "yunikorn.apache.org/allow-preemption"
PLAIN = {
    "kubernetes.io/meta/namespace": "shop",
    "kubernetes.io/meta/podName": "web-1",
    "creationTime": CREATED_SECOND,
}


def test_tags_of_a_plain_pod() -> None:
    assert pod_tags(pod_of(labels={"app": "web", "a/b": ""})) == {
        **PLAIN,
        "kubernetes.io/label/app": "web",
        "kubernetes.io/label/a/b": "",
    }


def test_active_deadline_of_a_pod_is_its_run_time_limit() -> None:
    tag = "yunikorn.apache.org/run-time-limit"
    assert pod_tags(pod_of(activeDeadlineSeconds=3600))[tag] == "3600"
    assert pod_tags(pod_of(activeDeadlineSeconds=3600, annotations={tag: "20m"}))[tag] == "20m"


def test_tags_for_predicates() -> None:
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}
                ]
            }
        }
    }
    pod = pod_of(owners=[{"kind": "DaemonSet"}], affinity=affinity, deleted=CREATED)
    tags = pod_tags(pod, namespace_labels='{"team":"a"}')
    terms = '[{"matchFields":[{"key":"metadata.name","operator":"In","values":["node-1"]}]}]'
    assert tags == {
        **PLAIN,
        "yunikorn.apache.org/requiredNode": "node-1",
        "yunikorn.apache.org/pod-constraints": '{"nodeAffinity":' + terms + "}",
        "yunikorn.apache.org/namespace-labels": '{"team":"a"}',
        "yunikorn.apache.org/terminating": "true",
    }


@pytest.mark.parametrize(
    ("of_pod", "of_class", "policy", "expected"),
    [
        (None, None, "", PreemptionPolicy(True, True)),
        ("false", None, "", PreemptionPolicy(False, True)),
        ("true", "false", "", PreemptionPolicy(True, True)),
        (None, "false", "", PreemptionPolicy(False, True)),
        ("no", "false", "", PreemptionPolicy(False, True)),
        ("no", None, "", PreemptionPolicy(True, True)),
        (None, "no", "Never", PreemptionPolicy(True, False)),
        (None, None, "PreemptLowerPriority", PreemptionPolicy(True, True)),
    ],
)
def test_preemption(
    of_pod: str | None, of_class: str | None, policy: str, expected: PreemptionPolicy
) -> None:
    pod = pod_of(annotations={ALLOW: of_pod} if of_pod else {}, preemptionPolicy=policy)
    meta = {"name": "high", "annotations": {ALLOW: of_class} if of_class else {}}
    priority_class = read(PriorityClass, {"metadata": meta, "value": 7})
    assert preemption_policy(pod, priority_class) == expected
    if of_class is None:
        assert preemption_policy(pod) == expected


@pytest.mark.parametrize(
    ("owners", "kind"),
    [([], "default"), ([{"kind": "DaemonSet"}], "default"), ([{"kind": "Node", "name": "node-1"}], "static")],
)
def test_foreign_pods(owners: list[dict[str, Any]], kind: str) -> None:
    assert foreign_kind(pod_of(owners=owners)) == kind


def test_task_group() -> None:
    assert (
        task_group_name(pod_of(annotations={"yunikorn.apache.org/task-group-name": "workers"})) == "workers"
    )
    assert task_group_name(pod_of()) == ""


def test_labels_of_equal_pods_share_their_tag_names() -> None:
    one, other = (pod_tags(pod_of(labels={"app": "web"})) for _ in range(2))
    assert [id(key) for key in one] == [id(key) for key in other]
