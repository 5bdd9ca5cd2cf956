"""The catalog of devices: texts for nodes and pods, and what a change of an object affects."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.kubernetes.devices.objects import device, resource_slice
from yunikorn_kubernetes import names
from yunikorn_kubernetes.devices.device_catalog import UNCHANGED, DeviceCatalog, PodClaim
from yunikorn_kubernetes.devices.device_tags import read_device_allocations, read_wanted_claims
from yunikorn_kubernetes.predicates.tag_reading import UnreadableText

Json = dict[str, Any]


def a_slice(name: str, pool: str, **nodes: Any) -> Json:
    spec = {
        "driver": "gpu.example.com",
        "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0"}],
    }
    return {"metadata": {"name": name, "resourceVersion": "7"}, "spec": spec | (nodes or {"nodeName": pool})}


def a_claim(name: str, *, status: Json | None = None) -> Json:
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]
    metadata = {"namespace": "default", "name": name, "uid": f"uid-{name}"}
    return {"metadata": metadata, "spec": {"devices": {"requests": requests}}, "status": status or {}}


def allocated(pool: str, *consumers: Json) -> Json:
    result = {"request": "gpu", "driver": "gpu.example.com", "pool": pool, "device": "gpu-0"}
    return {"allocation": {"devices": {"results": [result]}}, "reservedFor": [*consumers]}


def test_slices_of_one_node_are_its_attribute() -> None:
    catalog = DeviceCatalog()
    assert catalog.set_slice(a_slice("s1", "n1")).nodes == {"n1"}
    assert catalog.set_slice(a_slice("s1", "n1")) is UNCHANGED
    found = catalog.node_attributes("n1", {})
    assert [one["metadata"] for one in json.loads(found.pop(names.NODE_SLICES))] == [{"name": "s1"}]
    assert not found
    assert catalog.node_attributes("n2", {}) == {}
    assert catalog.remove_slice("s1").nodes == {"n1"}
    assert catalog.node_attributes("n1", {}) == {}


def test_slices_of_several_nodes_are_one_text() -> None:
    catalog = DeviceCatalog()
    assert catalog.set_slice(a_slice("s1", "net", allNodes=True)).all_nodes
    first, second = (catalog.node_attributes(name, {}) for name in ("n1", "n2"))
    assert first == second
    assert [*first] == [names.NODE_SHARED_SLICES]
    assert catalog.set_slice(a_slice("s1", "net", nodeName="n1")).all_nodes
    assert [*catalog.node_attributes("n1", {})] == [names.NODE_SLICES]


def test_a_slice_that_moves_to_another_pool_affects_both_nodes() -> None:
    catalog = DeviceCatalog()
    catalog.set_slice(a_slice("s1", "n1"))
    assert catalog.set_slice(a_slice("s1", "n2")).nodes == {"n1", "n2"}
    assert catalog.node_attributes("n1", {}) == {}


def test_a_slice_without_a_pool_is_refused() -> None:
    with pytest.raises(UnreadableText):
        DeviceCatalog().set_slice({"metadata": {"name": "s1"}, "spec": {"driver": "gpu.example.com"}})


def test_allocated_claims_without_pods_are_attributes_of_their_nodes() -> None:
    catalog = DeviceCatalog()
    catalog.set_slice(a_slice("s1", "n1"))
    group = {"resource": "podgroups", "name": "g", "uid": "1"}
    assert catalog.set_claim(a_claim("c", status=allocated("n1", group))).nodes == {"n1"}
    (one,) = read_device_allocations(catalog.node_attributes("n1", {})[names.NODE_CLAIMED_DEVICES])
    assert one.id.uid == "uid-c"
    assert str(one.allocation.results[0].device) == "gpu.example.com/n1/gpu-0"
    pod = {"resource": "pods", "name": "p", "uid": "2"}
    assert catalog.set_claim(a_claim("c", status=allocated("n1", pod))).nodes == {"n1"}
    assert names.NODE_CLAIMED_DEVICES not in catalog.node_attributes("n1", {})
    (one,) = read_device_allocations(catalog.allocations_text([PodClaim("gpu", "default/c")]))
    assert (one.id.pod_claim, one.id.name) == ("gpu", "c")
    assert catalog.remove_claim("default", "c").pods
    assert catalog.allocations_text([PodClaim("gpu", "default/c")]) == ""


def taints_on(catalog: DeviceCatalog, node: str) -> list[list[str]]:
    """Return the keys of the taints of each device of a node."""
    text = catalog.node_attributes(node, {})[names.NODE_SLICES]
    devices = [one for each in json.loads(text) for one in each["spec"]["devices"]]
    return [[taint["key"] for taint in one.get("taints", ())] for one in devices]


def test_rules_taint_the_devices_that_they_select() -> None:
    catalog = DeviceCatalog()
    both = device("a"), device("b", taints=[{"key": "own", "effect": "None"}])
    catalog.set_slice(resource_slice("s1", *both, node="n1"))
    catalog.set_slice(resource_slice("s2", device("a"), node="n2"))
    plain = catalog.node_attributes("n1", {})
    taint = {"key": "broken", "value": "x", "effect": "NoSchedule"}
    b_of_n1 = {"driver": "gpu.example.com", "pool": "n1", "device": "b"}
    assert catalog.set_taint_rule("r", {"deviceSelector": b_of_n1, "taint": taint}).nodes == {"n1"}
    assert taints_on(catalog, "n1") == [[], ["own", "broken"]]
    assert not catalog.set_taint_rule("r", {"deviceSelector": b_of_n1, "taint": taint}).nodes
    # An empty selector selects all devices, and none selects no device.
    assert catalog.set_taint_rule("r", {"deviceSelector": {}, "taint": taint}).nodes == {"n1", "n2"}
    assert taints_on(catalog, "n1") == [["broken"], ["own", "broken"]]
    assert taints_on(catalog, "n2") == [["broken"]]
    catalog.set_slice(resource_slice("s2", device("a"), device("c"), node="n2"))
    assert taints_on(catalog, "n2") == [["broken"], ["broken"]]
    assert catalog.set_taint_rule("r", {"taint": taint}).nodes == {"n1", "n2"}
    assert catalog.node_attributes("n1", {}) == plain
    catalog.set_taint_rule("r", {"deviceSelector": {"driver": "other"}, "taint": taint})
    assert catalog.node_attributes("n1", {}) == plain
    assert not catalog.set_taint_rule("r", None).nodes
    with pytest.raises(UnreadableText):
        catalog.set_taint_rule("r", {"deviceSelector": {}, "taint": {}})


@pytest.mark.parametrize("devices", [7, "a", {"name": "a"}, ["a", None], [{"name": "a", "taints": "none"}]])
def test_rules_leave_devices_alone_that_cannot_be_read(devices: object) -> None:
    catalog = DeviceCatalog()
    found = resource_slice("s1", node="n1")
    found["spec"]["devices"] = devices
    catalog.set_slice(found)
    catalog.set_taint_rule("r", {"deviceSelector": {}, "taint": {"key": "broken", "effect": "NoSchedule"}})
    [text] = json.loads(catalog.node_attributes("n1", {})[names.NODE_SLICES])
    assert text["spec"]["devices"] == devices


def test_own_claims_of_equal_templates_have_one_text() -> None:
    catalog = DeviceCatalog()
    assert catalog.set_class({"metadata": {"name": "gpu"}, "spec": {"selectors": []}}).pods
    for name in ("a", "b"):
        catalog.set_claim(a_claim(name))
    texts = [catalog.claims_text([PodClaim("gpu", f"default/{name}", is_own=True)]) for name in ("a", "b")]
    assert texts[0] is texts[1]
    wanted = read_wanted_claims(texts[0])
    assert wanted.ids[0].is_own
    assert not wanted.problem
    assert [*wanted.classes] == ["gpu"]
    shared = read_wanted_claims(catalog.claims_text([PodClaim("gpu", "default/a")]))
    assert shared.ids[0].uid == "uid-a"
    catalog.set_claim(a_claim("a", status=allocated("n1")))
    wanted = read_wanted_claims(catalog.claims_text([PodClaim("gpu", "default/a", is_own=True)]))
    assert wanted.allocated[0] is not None


def test_a_claim_that_does_not_exist_is_a_problem() -> None:
    wanted = read_wanted_claims(DeviceCatalog().claims_text([PodClaim("gpu", "default/a")]))
    assert wanted.problem == "the claim default/a does not exist"
    assert DeviceCatalog().claims_text([]) == ""


@pytest.mark.parametrize(
    "text",
    ["[", "1", '{"claims": [{}]}', '{"claims": [{"podClaim": 1}]}', "[" * 100_000],
    ids=["no JSON", "a number", "no name", "a number as name", "too deep"],
)
def test_texts_that_cannot_be_read_are_problems(text: str) -> None:
    assert read_wanted_claims(text).problem
    with pytest.raises(UnreadableText):
        read_device_allocations(text)
