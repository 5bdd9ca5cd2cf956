"""Objects of a real API server: they are decoded and translated, and placeholders are accepted."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import pytest

from tests.kubernetes.bodies import read
from tests.kubernetes.cluster import Kubectl
from tests.kubernetes.cluster.objects import daemon_set, node
from yunikorn_kubernetes.config_maps import CONFIGS
from yunikorn_kubernetes.objects import ConfigMap, Node, Pod
from yunikorn_kubernetes.shim_config_maps import read_config
from yunikorn_kubernetes.shim_settings import ServiceSettings
from yunikorn_kubernetes.translation.asks import pod_tags
from yunikorn_kubernetes.translation.placeholders import (
    PlaceholderOwner,
    placeholder_pod,
)
from yunikorn_kubernetes.translation.pod_applications import application_id, is_placeholder, queue_name
from yunikorn_kubernetes.translation.pod_resources import pod_resource
from yunikorn_kubernetes.translation.task_groups import read_gang
from yunikorn_kubernetes.translation.translated_nodes import node_attributes, node_resource

OURS = "yunikorn.apache.org/"
GROUPS: list[dict[str, Any]] = [
    {
        "name": "Workers_of.the-first.shift",
        "minMember": 2,
        "minResource": {"cpu": "1.5", "memory": "1e3", "nvidia.com/gpu": 1},
        "NodeSelector": {"disk": "ssd"},
        "tolerations": [{"Key": "gpu", "operator": "Exists"}],
        "affinity": {
            "nodeaffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]
                }
            }
        },
        "topologySpreadConstraints": [
            {
                "maxskew": 1,
                "topologyKey": "zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"Key": "value"}},
            }
        ],
    }
]


def originator(**labels: str) -> dict[str, Any]:
    """Return a pod that announces a gang."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "driver",
            "namespace": "default",
            "labels": labels,
            "annotations": {
                f"{OURS}task-groups": json.dumps(GROUPS),
                f"{OURS}schedulingPolicyParameters": "gangSchedulingStyle=Hard",
            },
        },
        "spec": {"schedulerName": "yunikorn", "containers": [{"name": "main", "image": "main"}]},
    }


@pytest.mark.parametrize(
    ("application", "queue"),
    [("app-1", "root.a"), ("Spark_App.-x", "root.team@example"), ("a" * 100, ""), ("..", "root.b")],
)
def test_the_server_accepts_placeholders_of_any_application(
    kubectl: Kubectl, application: str, queue: str
) -> None:
    pod = read(Pod, kubectl.create(originator()))
    gang = read_gang(pod).gang
    assert gang is not None
    settings = ServiceSettings(
        placeholder_run_as_user=1000, placeholder_run_as_group=1000, placeholder_fs_group=1000
    )
    owner = PlaceholderOwner.of(pod, application, queue)
    made = read(Pod, kubectl.create(placeholder_pod(owner, gang, gang.groups[0], "0123456789", settings)))
    assert is_placeholder(made)
    assert (application_id(made), queue_name(made)) == (application, queue)
    assert read_gang(made).gang == gang
    assert pod_resource(made) == gang.groups[0].resource
    assert [owner.uid for owner in made.metadata.owner_references] == [pod.metadata.uid]
    constraints = json.loads(pod_tags(made)[f"{OURS}pod-constraints"])
    assert constraints["nodeSelector"] == {"disk": "ssd"}
    assert {"key": "gpu", "operator": "Exists"} in constraints["tolerations"]
    assert constraints["nodeAffinity"] == [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]
    (spread,) = constraints["topologySpread"]
    assert (spread["maxSkew"], spread["labelSelector"]) == (1, {"matchLabels": {"Key": "value"}})


def test_pods_of_a_daemon_set_and_their_node(kubectl: Kubectl) -> None:
    kubectl.create(node("node-0", labels={"topology.kubernetes.io/zone": "z"}, unschedulable=True))
    kubectl.create(daemon_set("logs"))
    (body,) = kubectl.wait("Pod", lambda found: found or None)
    tags = pod_tags(read(Pod, body))
    assert tags[f"{OURS}requiredNode"] == "node-0"
    effects = {each.get("effect") for each in json.loads(tags[f"{OURS}pod-constraints"])["tolerations"]}
    assert effects == {"NoSchedule", "NoExecute"}
    found = read(Node, kubectl.get("Node", "node-0"))
    attributes = node_attributes(found)
    assert (attributes["si/zone"], attributes[f"{OURS}unschedulable"]) == ("z", "true")
    assert "node.kubernetes.io/unschedulable" in attributes[f"{OURS}taints"]
    assert node_resource(found) == {"vcore": 16_000, "memory": 64 * 2**30, "pods": 110}


def test_a_config_map_with_a_compressed_entry(kubectl: Kubectl) -> None:
    packed = base64.b64encode(gzip.compress(b"partitions: []")).decode()
    meta = {"name": CONFIGS, "namespace": "default"}
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": meta,
        "data": {"kubernetes.qps": "5"},
        "binaryData": {"queues.yaml.gz": packed},
    }
    found = read_config({CONFIGS: read(ConfigMap, kubectl.create(body))})
    assert (found.queues, found.settings.service.qps, found.warnings) == ("partitions: []", 5, ())
