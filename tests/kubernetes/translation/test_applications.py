"""Applications of pods: id, queue, user, tags, and the message that adds the application."""

from __future__ import annotations

import pytest

from tests.kubernetes.bodies import CREATED_SECOND, UID, pod_of
from yunikorn.interface.messages import UserGroupInformation
from yunikorn.resources import Resource
from yunikorn_kubernetes.translation.pod_applications import (
    application_id,
    application_tags,
    is_ours,
    is_placeholder,
    is_terminated,
    metadata_conflicts,
    new_application,
    owner_references,
    queue_name,
    user_of,
)
from yunikorn_kubernetes.translation.task_groups import read_gang

OURS = "yunikorn.apache.org/"
APP, QUEUE, USER = f"{OURS}app-id", f"{OURS}queue", f"{OURS}user.info"


@pytest.mark.parametrize(
    ("labels", "annotations", "expected"),
    [
        ({APP: "a", "applicationId": "c"}, {APP: "b"}, "a"),
        ({"applicationId": "c", "spark-app-selector": "d"}, {APP: "b"}, "b"),
        ({"applicationId": "c", "spark-app-selector": "d"}, {}, "c"),
        ({"spark-app-selector": "d"}, {}, "d"),
        ({APP: "", "applicationId": "c"}, {APP: ""}, "c"),
        ({APP: "shop-uniqueautogen"}, {}, f"shop-{UID}"),
        ({}, {APP: "-uniqueautogen"}, f"-{UID}"),
        ({APP: "uniqueautogen"}, {}, "uniqueautogen"),
        ({}, {}, "yunikorn-shop-autogen"),
    ],
)
def test_application_id(labels: dict[str, str], annotations: dict[str, str], expected: str) -> None:
    assert application_id(pod_of(labels=labels, annotations=annotations)) == expected


def test_generated_ids_have_at_most_63_characters() -> None:
    long = "n" * 63
    assert application_id(pod_of(namespace=long)) == f"yunikorn-{'n' * 54}"
    assert application_id(pod_of(namespace="n" * 53)) == f"yunikorn-{'n' * 53}"
    assert application_id(pod_of(namespace=long), unique=True) == f"{'n' * 26}-{UID}"
    assert application_id(pod_of(namespace=long, uid="u" * 50), unique=True) == f"{'n' * 26}-{'u' * 36}"
    assert application_id(pod_of(labels={APP: "a"}), unique=True) == "a"


@pytest.mark.parametrize(
    ("labels", "annotations", "expected"),
    [
        ({QUEUE: "root.a", "queue": "root.c"}, {QUEUE: "root.b"}, "root.a"),
        ({"queue": "root.c"}, {QUEUE: "root.b"}, "root.b"),
        ({"queue": "root.c"}, {}, "root.c"),
        ({}, {"queue": "root.d"}, ""),
    ],
)
def test_queue(labels: dict[str, str], annotations: dict[str, str], expected: str) -> None:
    assert queue_name(pod_of(labels=labels, annotations=annotations)) == expected


@pytest.mark.parametrize(
    ("info", "user", "groups", "problem"),
    [
        ('{"user": "jane", "groups": ["a", "b"]}', "jane", ["a", "b"], ""),
        ('{"User": "jane", "GROUPS": null}', "jane", [], ""),
        ("", "nobody", [], ""),
        ('{"user": "", "groups": ["a"]}', "nobody", [], "has no user"),
        ("jane", "nobody", [], "Expecting value"),
        ('["jane"]', "nobody", [], "expected"),
        ('{"user": 7}', "nobody", [], "expected"),
        ('{"user": "jane", "groups": "a"}', "nobody", [], "expected"),
        ('{"user": "jane", "groups": [7]}', "nobody", [], "expected"),
        ("[" * 5000, "nobody", [], "is ignored"),
    ],
)
def test_user(info: str, user: str, groups: list[str], problem: str) -> None:
    found, ignored = user_of(pod_of(annotations={USER: info}))
    assert found == UserGroupInformation(user, groups)
    assert problem in ignored
    assert bool(problem) == bool(ignored)
    assert not ignored or ignored.startswith(USER)


@pytest.mark.parametrize(
    ("labels", "annotations", "expected"),
    [
        ({APP: "a", "applicationId": "a", QUEUE: "q", "queue": "q"}, {APP: "a", QUEUE: "q"}, []),
        ({APP: "a", "applicationId": ""}, {}, []),
        (
            {"applicationId": "a", "queue": "root.a"},
            {APP: "b", QUEUE: "root.b"},
            [
                f"contradictory application id: annotation {APP}=b, label applicationId=a: use one value",
                f"contradictory queue: annotation {QUEUE}=root.b, label queue=root.a: use one value",
            ],
        ),
    ],
)
def test_contradictory_metadata(
    labels: dict[str, str], annotations: dict[str, str], expected: list[str]
) -> None:
    assert metadata_conflicts(pod_of(labels=labels, annotations=annotations)) == expected


def test_tags() -> None:
    pod = pod_of(
        annotations={f"{OURS}task-groups": "[]", f"{OURS}schedulingPolicyParameters": "a=b"},
        imagePullSecrets=[{"name": "a"}, {"name": "b"}],
    )
    assert application_tags(pod, {"namespace.parentqueue": "root.x"}) == {
        "namespace": "shop",
        "application.create.force": "false",
        "imagePullSecrets": "a,b",
        f"{OURS}creationTime": CREATED_SECOND,
        f"{OURS}task-groups": "[]",
        f"{OURS}schedulingPolicyParameters": "a=b",
        "namespace.parentqueue": "root.x",
    }


def test_an_application_with_a_running_pod_may_use_the_recovery_queue() -> None:
    pod = pod_of(namespace="", nodeName="node-1")
    assert application_tags(pod, {}) == {
        "namespace": "default",
        "application.create.force": "true",
        f"{OURS}creationTime": CREATED_SECOND,
    }


def test_the_message_of_an_application() -> None:
    pod = pod_of(
        labels={APP: "a", QUEUE: "root.a"},
        annotations={
            USER: '{"user": "jane"}',
            f"{OURS}task-groups": '[{"name": "g", "minMember": 2, "minResource": {"cpu": "1"}}]',
            f"{OURS}schedulingPolicyParameters": "placeholderTimeoutInSeconds=30 gangSchedulingStyle=Hard",
        },
    )
    made = new_application(pod, {}, read_gang(pod).gang)
    assert made.problems == ()
    request = made.request
    assert (request.application_id, request.queue_name, request.partition_name) == ("a", "root.a", "default")
    assert request.ugi == UserGroupInformation("jane")
    assert request.placeholder_ask == Resource(pods=2, vcore=2000)
    assert (request.execution_timeout_ms, request.gang_scheduling_style) == (30_000, "Hard")


def test_an_application_without_a_gang_has_no_time_limit() -> None:
    pod = pod_of(
        annotations={USER: "?", f"{OURS}schedulingPolicyParameters": "placeholderTimeoutInSeconds=30"}
    )
    made = new_application(pod, {}, read_gang(pod).gang)
    assert (made.request.execution_timeout_ms, made.request.placeholder_ask) == (0, {})
    assert len(made.problems) == 1


def test_placeholders_belong_to_the_pod_that_created_the_application() -> None:
    (owner,) = owner_references(pod_of())
    assert (owner.kind, owner.name, owner.uid, owner.controller) == ("Pod", "web-1", UID, False)
    assert owner.block_owner_deletion is False
    originator = {"apiVersion": "v1", "kind": "Pod", "name": "driver", "uid": "1", "blockOwnerDeletion": True}
    placeholder = pod_of(
        annotations={"internal.yunikorn.apache.org/placeholder": "true"}, owners=[originator]
    )
    (owner,) = owner_references(placeholder)
    assert (owner.name, owner.block_owner_deletion) == ("driver", False)


def test_kinds_of_pods() -> None:
    assert is_ours(pod_of())
    assert not is_ours(pod_of(schedulerName="Yunikorn"))
    assert [
        is_terminated(pod_of(status={"phase": phase})) for phase in ("Running", "Failed", "Succeeded")
    ] == [*(False, True, True)]
    marks = [
        is_placeholder(pod_of(annotations={"internal.yunikorn.apache.org/placeholder": mark}))
        for mark in ("true", "1", "false", "yes", "")
    ]
    assert marks == [True, True, False, False, False]
