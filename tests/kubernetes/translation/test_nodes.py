"""Nodes: attributes and amounts."""

from __future__ import annotations

import pytest

from tests.kubernetes.bodies import node_of, read
from yunikorn.errors import QuantityError
from yunikorn_kubernetes.objects import Node
from yunikorn_kubernetes.translation.node_images import NodeWithImages
from yunikorn_kubernetes.translation.translated_nodes import node_attributes, node_resource

PLAIN = {"si.io/hostname": "node-1", "si.io/rackname": "/rack-default"}


def test_a_plain_node() -> None:
    assert node_attributes(node_of()) == PLAIN


def test_labels_are_attributes() -> None:
    labels = {
        "node.kubernetes.io/instance-type": "m5.large",
        "beta.kubernetes.io/instance-type": "old",
        "topology.kubernetes.io/zone": "a",
        "failure-domain.beta.kubernetes.io/region": "eu",
        "team": "x",
    }
    assert node_attributes(node_of(labels=labels)) == {
        **PLAIN,
        **labels,
        "si/instance-type": "m5.large",
        "si/zone": "a",
        "si/region": "eu",
    }


def test_another_label_has_the_instance_type() -> None:
    labels = {"shape": "large", "node.kubernetes.io/instance-type": "m5"}
    attributes = node_attributes(node_of(labels=labels), instance_type_label="shape")
    assert attributes == {**PLAIN, **labels, "si/instance-type": "large"}
    assert "si/instance-type" not in node_attributes(node_of(labels=labels), instance_type_label="other")


@pytest.mark.parametrize(
    "label",
    [
        *("si/node-partition", "si/zone", "si.io/hostname", "yunikorn.apache.org/taints"),
        *("yunikorn.apache.org/unschedulable", "yunikorn.apache.org/volume-limits"),
    ],
)
def test_labels_cannot_set_what_the_scheduler_interprets(label: str) -> None:
    assert node_attributes(node_of(labels={label: "x"})) == PLAIN


def test_taints_and_cordons() -> None:
    taints = [
        {"key": "gpu", "value": "a100", "effect": "NoSchedule"},
        {"key": "slow", "effect": "PreferNoSchedule"},
        {"key": "down", "effect": "NoExecute", "timeAdded": "2026-01-02T03:04:05Z"},
    ]
    assert node_attributes(node_of(spec={"taints": taints, "unschedulable": True})) == {
        **PLAIN,
        "yunikorn.apache.org/taints": '[{"effect":"NoSchedule","key":"gpu","value":"a100"},'
        '{"effect":"NoExecute","key":"down"}]',
        "yunikorn.apache.org/preferred-taints": '[{"effect":"PreferNoSchedule","key":"slow"}]',
        "yunikorn.apache.org/unschedulable": "true",
    }


def test_images_are_an_attribute_where_they_are_read() -> None:
    images = [{"names": ["web@sha256:0a", "web:1"], "sizeBytes": 7}, {"names": None, "sizeBytes": 9}]
    body = {"metadata": {"name": "node-1"}, "status": {"images": images}}
    with_images = node_attributes(read(NodeWithImages, body))
    assert with_images["yunikorn.apache.org/images"] == '{"web:1":7,"web@sha256:0a":7}'
    assert "yunikorn.apache.org/images" not in node_attributes(read(Node, body))


def test_a_node_has_what_is_allocatable() -> None:
    status = {
        "capacity": {"cpu": "8"},
        "allocatable": {"cpu": "7900m", "memory": "16Gi", "pods": "110", "nvidia.com/gpu": "1"},
    }
    assert node_resource(node_of(status=status)) == {
        "vcore": 7900,
        "memory": 2**34,
        "pods": 110,
        "nvidia.com/gpu": 1,
    }


def test_a_bad_amount_is_named() -> None:
    with pytest.raises(QuantityError, match=r"status\.allocatable\.cpu: 'x' is not a quantity"):
        node_resource(node_of(status={"allocatable": {"cpu": "x"}}))
