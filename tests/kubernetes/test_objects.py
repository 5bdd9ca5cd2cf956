"""Structs of the Kubernetes API: decoding of what an API server sends."""

from __future__ import annotations

import datetime
from typing import Any

import msgspec
import pytest

from yunikorn_kubernetes.objects import (
    ApiStruct,
    ConfigMap,
    CSINode,
    Pod,
    PodSpec,
    Volume,
)

POD = b"""{
  "apiVersion": "v1", "kind": "Pod",
  "metadata": {
    "name": "web-1", "namespace": "shop", "uid": "0a", "creationTimestamp": "2026-01-02T03:04:05Z",
    "labels": {"app": "web"},
    "annotations": {"yunikorn.apache.org/queue": "root.shop", "other.example/large": "..."},
    "managedFields": [{"manager": "kubectl"}]
  },
  "spec": {
    "nodeName": "node-1",
    "containers": [{"name": "web", "ports": [{"hostIP": "10.0.0.1", "hostPort": 80, "containerPort": 8080}]}],
    "tolerations": [{"key": "gpu", "operator": "Exists", "tolerationSeconds": 300}],
    "volumes": [
      {"name": "token", "projected": {"sources": []}},
      {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    ]
  },
  "status": {"phase": "Running", "podIP": "10.1.2.3"}
}"""


def structs() -> list[type[ApiStruct]]:
    """Return all structs of objects of the API server, whichever other modules have been imported.

    Those of the admission controller are no objects: a review without its request is refused.
    """
    found = [ApiStruct]
    for one in found:
        found += [made for made in one.__subclasses__() if made.__module__ == ApiStruct.__module__]
    return found[1:]


def test_a_pod_has_the_fields_that_are_read() -> None:
    pod = msgspec.json.decode(POD, type=Pod)
    assert (pod.metadata.namespace, pod.spec.node_name, pod.status.phase) == ("shop", "node-1", "Running")
    assert pod.metadata.creation_timestamp == datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
    port = pod.spec.containers[0].ports[0]
    assert (port.host_ip, port.host_port, port.protocol) == ("10.0.0.1", 80, "TCP")


def test_annotations_of_others_and_volumes_that_fit_every_node_are_dropped() -> None:
    pod = msgspec.json.decode(POD, type=Pod)
    assert pod.metadata.annotations == {"yunikorn.apache.org/queue": "root.shop"}
    assert [volume.name for volume in pod.spec.volumes] == ["data"]


def test_conditions_of_others_and_amounts_as_requested_are_dropped() -> None:
    requests = {"cpu": "1", "memory": "1Gi"}
    body = {
        "spec": {"containers": [{"name": name, "resources": {"requests": requests}} for name in "abcd"]},
        "status": {
            "conditions": [{"type": "Ready"}, {"type": "PodScheduled", "status": "False"}],
            "containerStatuses": [
                {"name": "a", "allocatedResources": requests, "resources": {"requests": requests}},
                {"name": "b", "restartCount": 3},
                {"name": "c", "allocatedResources": {**requests, "cpu": "2"}},
                {"name": "d", "resources": {"requests": {"cpu": "1"}}},
                {"name": "e", "allocatedResources": {"cpu": "1"}},
            ],
        },
    }
    pod = msgspec.json.decode(msgspec.json.encode(body), type=Pod)
    assert [condition.type for condition in pod.status.conditions] == ["PodScheduled"]
    assert [status.name for status in pod.status.container_statuses] == ["c", "d", "e"]


def test_strings_of_equal_pods_are_shared() -> None:
    one, other = (msgspec.json.decode(POD, type=Pod) for _ in range(2))
    assert one.metadata.namespace is other.metadata.namespace
    assert one.spec.node_name is other.spec.node_name
    assert one.metadata.labels["app"] is other.metadata.labels["app"]
    assert one.spec.tolerations[0].key is other.spec.tolerations[0].key


def test_a_changed_copy_leaves_the_original() -> None:
    pod = msgspec.json.decode(POD, type=Pod)
    moved = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name="node-2"))
    assert (pod.spec.node_name, moved.spec.node_name) == ("node-1", "node-2")
    with pytest.raises(AttributeError):
        pod.spec.node_name = "node-2"  # type: ignore[misc]


@pytest.mark.parametrize("struct", structs(), ids=lambda struct: struct.__name__)
def test_every_field_may_be_missing(struct: type[ApiStruct]) -> None:
    value = msgspec.json.decode(b"{}", type=struct)
    assert msgspec.json.encode(value) == b"{}"
    assert msgspec.json.decode(b'{"fieldOfALaterVersion": [1]}', type=struct) == value


@pytest.mark.parametrize(
    ("struct", "text", "expected"),
    [
        (CSINode, '{"spec": {"drivers": null}}', CSINode()),
        (ConfigMap, '{"binaryData": {"queues.yaml.gz": "H4sI"}}', b"\x1f\x8b\x08"),
        (Volume, '{"awsElasticBlockStore": {"volumeID": "vol-1"}}', "vol-1"),
    ],
)
def test_odd_fields(struct: type[ApiStruct], text: str, expected: Any) -> None:
    value = msgspec.json.decode(text, type=struct)
    if isinstance(value, ConfigMap):
        assert value.binary_data == {"queues.yaml.gz": expected}
    elif isinstance(value, Volume):
        assert value.aws_elastic_block_store is not None
        assert value.aws_elastic_block_store.volume_id == expected
    else:
        assert value == expected


def test_a_field_of_another_type_is_refused_with_its_place() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"Expected `str`, got `int` - at `\$.nodeName`"):
        msgspec.json.decode(b'{"nodeName": 7}', type=PodSpec)
