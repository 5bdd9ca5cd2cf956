"""Slices and device classes, from JSON to objects: shared parts, and problems of hostile ones."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kubernetes.devices.objects import device, device_class, resource_slice
from yunikorn_kubernetes.devices.device_objects import UnsupportedValue
from yunikorn_kubernetes.devices.slice_reading import SliceReader, read_device_class
from yunikorn_kubernetes.predicates.tag_reading import UnreadableText


def test_a_slice_has_its_pool_and_devices() -> None:
    found = SliceReader().read(
        resource_slice(
            "slice",
            device("gpu-0", {"memory": "80Gi"}, model="H100", index=0, driverVersion="v1.2.3", ecc=True),
            generation=4,
            count=2,
        )
    )
    assert (found.driver, found.pool, found.generation, found.slice_count) == (
        "gpu.example.com",
        "node",
        4,
        2,
    )
    [gpu] = found.devices
    assert gpu.attribute("gpu.example.com", "gpu.example.com/model") == "H100"
    assert gpu.attribute("gpu.example.com", "gpu.example.com/ecc") is True
    assert gpu.attribute("gpu.example.com", "other.example.com/model") is None
    assert str(gpu.traits.capacity[0][1].value) == "80Gi"
    assert found.nodes is not None
    assert found.nodes.admits("node", {})
    assert not found.nodes.admits("other", {})


def test_devices_of_one_model_share_what_is_equal() -> None:
    reader = SliceReader()
    one, other = (
        reader.read(
            resource_slice(
                f"slice-{node}", device("gpu", {"memory": "80Gi"}, uuid=node, kind="v1.0.0"), node=node
            )
        )
        for node in ("node-1", "node-2")
    )
    assert one.devices[0].attributes is other.devices[0].attributes
    assert one.devices[0].traits is other.devices[0].traits
    kind = one.devices[0].attributes.positions["kind"]
    assert one.devices[0].values[kind] is other.devices[0].values[kind]
    assert one.devices[0].values != other.devices[0].values


def test_the_order_of_attributes_has_no_effect() -> None:
    reader = SliceReader()
    [one] = reader.read(resource_slice("one", device("gpu", a=1, b=2))).devices
    [other] = reader.read(resource_slice("other", device("gpu", b=2, a=1))).devices
    assert one.attributes is other.attributes


def test_a_list_can_be_stored_but_not_read() -> None:
    gpu: dict[str, Any] = {"name": "gpu", "attributes": {"links": {"ints": [1, 2]}}}
    [found] = SliceReader().read(resource_slice("slice", gpu)).devices
    assert found.values == (UnsupportedValue("links"),)


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ({"devices": 7}, "devices"),
        ({"devices": [{"name": f"gpu-{number}"} for number in range(2000)]}, "2000"),
        ({"devices": [{"attributes": {}}]}, "name"),
        ({"devices": [{"name": "gpu", "attributes": {"a": {}}}]}, "attribute a"),
        ({"devices": [{"name": "gpu", "attributes": {"a": {"int": 2**63}}}]}, "attribute a"),
        ({"devices": [{"name": "gpu", "attributes": {"a": {"version": "1"}}}]}, "version"),
        ({"devices": [{"name": "gpu", "capacity": {"memory": {}}}]}, "memory"),
        ({"devices": [{"name": "gpu", "capacity": {"memory": {"value": "many"}}}]}, "many"),
        ({"devices": [{"name": "gpu", "capacity": {"memory": {"value": "1e999999999"}}}]}, "exponent"),
        (
            {
                "devices": [
                    device("gpu", {"m": {"value": "1", "requestPolicy": {"validRange": {"step": "0"}}}})
                ]
            },
            "step",
        ),
        ({"sharedCounters": [{"name": "set", "counters": {"c": {"value": []}}}]}, "counter c"),
        ({"nodeName": None, "nodeSelector": {"nodeSelectorTerms": []}}, "0 terms"),
        (
            {
                "nodeName": None,
                "nodeSelector": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Near"}]}]
                },
            },
            "Near",
        ),
    ],
)
def test_a_slice_that_cannot_be_read_says_why(spec: dict[str, Any], word: str) -> None:
    found = SliceReader().read(resource_slice("slice", **spec))
    assert word in found.problem
    assert (found.driver, found.pool) == ("gpu.example.com", "node")


def test_problems_of_several_devices_are_told_together() -> None:
    found = SliceReader().read(
        resource_slice("slice", *({"name": f"gpu-{n}", "capacity": 1} for n in range(9)))
    )
    assert "gpu-0" in found.problem
    assert "gpu-4" in found.problem
    assert "4 more" in found.problem


def test_a_slice_without_driver_or_pool_is_refused() -> None:
    for spec in ({"driver": ""}, {"pool": {"name": ""}}, {"pool": None}):
        whole = resource_slice("slice")
        whole["spec"] |= spec
        with pytest.raises(UnreadableText):
            SliceReader().read(whole)


def test_a_class_with_a_selector_of_an_unknown_kind_has_a_problem() -> None:
    assert read_device_class(device_class("gpu", "true")).selectors == ("true",)
    unknown = {"metadata": {"name": "gpu"}, "spec": {"selectors": [{"sql": "select"}]}}
    assert "CEL" in read_device_class(unknown).problem
