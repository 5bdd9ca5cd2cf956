"""Bodies of placeholder pods."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kubernetes.bodies import UID, pod_of, read
from yunikorn_kubernetes.objects import Pod
from yunikorn_kubernetes.shim_settings import ServiceSettings
from yunikorn_kubernetes.translation.asks import task_group_name
from yunikorn_kubernetes.translation.placeholders import (
    PlaceholderOwner,
    name_suffix,
    placeholder_name,
    placeholder_pod,
)
from yunikorn_kubernetes.translation.pod_applications import (
    application_id,
    is_placeholder,
    metadata_conflicts,
    queue_name,
)
from yunikorn_kubernetes.translation.pod_resources import pod_resource
from yunikorn_kubernetes.translation.task_groups import AnnotatedGang, read_gang

OURS = "yunikorn.apache.org/"
GROUPS = (
    '[{"name": "workers", "minMember": 2, "minResource": {"cpu": "500m", "nvidia.com/gpu": "1"},'
    ' "nodeSelector": {"disk": "ssd"}, "tolerations": [{"key": "a"}], "labels": {"l": "1", "queue": "x"},'
    ' "annotations": {"a": "2"}, "affinity": {"podAffinity": {}},'
    ' "topologySpreadConstraints": [{"maxSkew": 1}]}]'
)
PARAMETERS = "gangSchedulingStyle=Hard"


def originator(**rest: Any) -> Pod:
    """Return a pod that creates an application with a gang."""
    annotations = {f"{OURS}task-groups": GROUPS, f"{OURS}schedulingPolicyParameters": PARAMETERS}
    return pod_of(name="driver", annotations=annotations, **rest)


def gang_of(pod: Pod) -> AnnotatedGang:
    """Return the gang of a pod."""
    gang = read_gang(pod).gang
    assert gang is not None
    return gang


def test_the_body() -> None:
    pod = originator(priorityClassName="high", imagePullSecrets=[{"name": "s"}])
    gang = gang_of(pod)
    owner = PlaceholderOwner.of(pod, "app-1", "root.a")
    body = placeholder_pod(owner, gang, gang.groups[0], "0123456789")
    amounts = {"cpu": "500m", "nvidia.com/gpu": "1"}
    assert body == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "tg-app-1-workers-0123456789",
            "namespace": "shop",
            "labels": {"l": "1", f"{OURS}app-id": "app-1", f"{OURS}queue": "root.a"},
            "annotations": {
                "a": "2",
                "internal.yunikorn.apache.org/placeholder": "true",
                f"{OURS}task-group-name": "workers",
                f"{OURS}task-groups": GROUPS,
                f"{OURS}schedulingPolicyParameters": PARAMETERS,
            },
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "name": "driver",
                    "uid": UID,
                    "controller": False,
                    "blockOwnerDeletion": False,
                }
            ],
        },
        "spec": {
            "schedulerName": "yunikorn",
            "restartPolicy": "Never",
            "hostNetwork": False,
            "terminationGracePeriodSeconds": 0,
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [
                {
                    "name": "pause",
                    "image": "registry.k8s.io/pause:3.7",
                    "imagePullPolicy": "IfNotPresent",
                    "resources": {"requests": amounts, "limits": amounts},
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "capabilities": {"drop": ["ALL"]},
                        "privileged": False,
                        "readOnlyRootFilesystem": True,
                    },
                }
            ],
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"key": "a"}],
            "affinity": {"podAffinity": {}},
            "topologySpreadConstraints": [{"maxSkew": 1}],
            "priorityClassName": "high",
            "imagePullSecrets": [{"name": "s"}],
        },
    }


@pytest.mark.parametrize(("queue", "kept"), [("root.a", False), ("x", True), ("", True)])
def test_labels_of_a_group_never_contradict_the_application(queue: str, kept: bool) -> None:
    gang = gang_of(originator())
    owner = PlaceholderOwner.of(originator(), "app-1", queue)
    made = read(Pod, placeholder_pod(owner, gang, gang.groups[0], "0123456789"))
    assert metadata_conflicts(made) == []
    assert ("queue" in made.metadata.labels) is kept


def test_settings_of_the_cluster() -> None:
    pod = originator()
    gang = gang_of(pod)
    settings = ServiceSettings(
        placeholder_image="pause:1",
        placeholder_run_as_user=0,
        placeholder_run_as_group=2,
        placeholder_fs_group=3,
    )
    spec = placeholder_pod(PlaceholderOwner.of(pod, "a", ""), gang, gang.groups[0], "x", settings)["spec"]
    assert spec["containers"][0]["image"] == "pause:1"
    assert spec["securityContext"] == {
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
        "runAsUser": 0,
        "runAsGroup": 2,
        "fsGroup": 3,
    }
    assert "priorityClassName" not in spec
    assert "imagePullSecrets" not in spec


@pytest.mark.parametrize(
    ("application", "queue"),
    [("app-1", "root.a"), ("", ""), ("a b", "root.x@y.z"), ("a" * 64, "root." + "q" * 80)],
)
def test_an_application_is_rebuilt_from_a_placeholder_alone(application: str, queue: str) -> None:
    pod = originator()
    gang = gang_of(pod)
    group = gang.groups[0]
    body = placeholder_pod(PlaceholderOwner.of(pod, application, queue), gang, group, "x")
    found = read(Pod, body)
    assert is_placeholder(found)
    assert application_id(found) == (application or "yunikorn-shop-autogen")
    assert queue_name(found) == (queue or "x")
    assert task_group_name(found) == "workers"
    assert read_gang(found).gang == gang
    assert pod_resource(found) == group.resource
    again = PlaceholderOwner.of(found, application, queue)
    assert placeholder_pod(again, gang, group, "x") == body
    labels = body["metadata"]["labels"]
    assert all(re.fullmatch(r"([A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?)?", value) for value in labels.values())


def test_suffixes_follow_from_the_source_of_chance() -> None:
    assert name_suffix(lambda limit: limit - 1) == "9999999999"
    one, other = (name_suffix(random.Random(7).randrange) for _ in range(2))
    assert one == other
    assert re.fullmatch("[a-z0-9]{10}", one)


@given(application=st.text(min_size=1, max_size=80), group=st.text(min_size=1, max_size=80))
def test_names_are_valid_for_pods(application: str, group: str) -> None:
    name = placeholder_name(application, group, "0123456789")
    assert len(name) <= 63
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", name)


def test_valid_names_stay() -> None:
    assert placeholder_name("spark.app-1", "exec", "x") == "tg-spark.app-1-exec-x"
    assert placeholder_name("a" * 40, "b" * 40, "0123456789") == f"tg-{'a' * 28}-{'b' * 20}-0123456789"
