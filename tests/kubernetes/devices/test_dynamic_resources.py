"""The predicate `dynamic-resources` in a scheduler: devices of pods, of gangs and of shared claims."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.core.kit import queue
from tests.kubernetes.devices.device_cluster import DeviceCluster, check_devices, results_of
from tests.kubernetes.devices.objects import alternative, device, resource_slice, wanted
from tests.service.recording.collecting_listener import CollectingListener
from yunikorn.clock import ManualClock
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import Allocation
from yunikorn.resources import Resource
from yunikorn_kubernetes import names
from yunikorn_service.recording.recording_reader import read_recording
from yunikorn_service.recording.recording_scheduler import RecordingScheduler
from yunikorn_service.recording.recording_writer import RecordingWriter
from yunikorn_service.recording.replayer import Replay

ONE_RACK = {"yunikorn.apache.org/gang-topology": '{"required": "rack"}'}
TWO = [device("gpu-0"), device("gpu-1")]


def gpus(node: str = "n1", *devices: dict[str, Any]) -> dict[str, Any]:
    return resource_slice(node, *(devices or TWO), node=node)


def test_pods_get_devices_until_none_is_left() -> None:
    cluster = DeviceCluster(gpus("n1"), gpus("n2"), nodes=["n1", "n2", "n3"])
    cluster.submit("pod", wanted("gpu"), count=5)
    cluster.rm.schedule()
    assert len(cluster.rm.running) == 4
    check_devices(cluster.rm.running.values())
    assert cluster.refusals("pod") == {
        "claim pod: 0 of 1 devices of class gpu can be had, for request gpu (others are taken)": 2,
        "claim pod: no device of class gpu, for request gpu": 1,
    }


def test_a_released_pod_gives_its_devices_back() -> None:
    cluster = DeviceCluster(gpus())
    cluster.submit("pod", wanted("gpu", count=2), count=2)
    cluster.rm.schedule()
    (first,) = cluster.rm.running
    assert cluster.devices() == {"pod": ["n1/gpu-0", "n1/gpu-1"]}
    cluster.rm.release(uuid=first)
    cluster.rm.schedule()
    assert cluster.devices() == {"pod": ["n1/gpu-0", "n1/gpu-1"]}


def test_the_allocation_is_that_of_the_api() -> None:
    cluster = DeviceCluster(gpus())
    cluster.submit("pod", wanted("gpu"))
    cluster.rm.schedule()
    (one,) = cluster.rm.running.values()
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    assert json.loads(one.allocation_tags[names.TAG_DEVICES]) == [
        {
            "podClaim": "pod",
            "allocation": {
                "devices": {
                    "results": [
                        {"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}
                    ]
                },
                "nodeSelector": {"nodeSelectorTerms": [term]},
            },
        }
    ]


def test_devices_are_known_after_a_restart() -> None:
    cluster = DeviceCluster(gpus("n1"), gpus("n2"), nodes=["n1", "n2"])
    cluster.submit("pod", wanted("gpu"), count=3)
    cluster.rm.schedule()
    again = DeviceCluster(gpus("n1"), gpus("n2"), nodes=["n1", "n2"])
    again.rm.update(allocations=[*cluster.rm.running.values()])
    again.submit("new", wanted("gpu"), count=3)
    again.rm.schedule()
    assert len(again.rm.running) == 1 + 3
    check_devices(again.rm.running.values())


def test_a_replay_chooses_the_same_devices(tmp_path: Path) -> None:
    file, registry = tmp_path / "devices.jsonl", Registry.load(third_party=False)
    writer = RecordingWriter(file, pytest.fail)
    scheduler = RecordingScheduler(writer, registry, ManualClock())
    cluster = DeviceCluster(gpus("n1"), gpus("n2"), nodes=["n1", "n2"], scheduler=scheduler)
    cluster.submit("pod", wanted("gpu"), count=5)
    cluster.rm.schedule()
    cluster.rm.release(uuid=next(iter(cluster.rm.running)))
    cluster.rm.schedule()
    writer.close()
    replay = Replay(read_recording(file).lines, registry, CollectingListener())
    replay.run()
    assert replay.comparison.first is None
    assert replay.comparison.equal == len(cluster.rm.responses)


def test_devices_of_foreign_pods_and_of_claims_without_pods_are_taken() -> None:
    cluster = DeviceCluster(gpus())
    cluster.submit("pod", wanted("gpu"))
    cluster.rm.schedule()
    (own,) = cluster.rm.running.values()
    again = DeviceCluster(gpus())
    tags = {"foreign": "default", names.TAG_DEVICES: own.allocation_tags[names.TAG_DEVICES]}
    again.rm.update(allocations=[Allocation("f", "", "f", "n1", Resource(vcore=1), allocation_tags=tags)])
    (result,) = results_of(own)
    held = {
        "metadata": {"namespace": "default", "name": "held", "uid": "uid-held"},
        "spec": {},
        "status": {"allocation": {"devices": {"results": [result | {"device": "gpu-1"}]}}},
    }
    again.catalog.set_claim(held)
    again.report_again("n1")
    again.submit("pod", wanted("gpu"))
    again.rm.schedule()
    assert "pod" not in again.devices()
    again.catalog.remove_claim("default", "held")
    again.report_again("n1")
    again.rm.schedule()
    assert again.devices()["pod"] == ["n1/gpu-1"]


def test_pods_with_a_shared_claim_follow_the_first() -> None:
    cluster = DeviceCluster(gpus("n1"), gpus("n2"), nodes=["n1", "n2"])
    cluster.submit("own", wanted("gpu"))
    for number in range(3):
        cluster.submit(f"shared-{number}", wanted("gpu", count=2), shared="team")
    cluster.rm.schedule()
    assert {one.node_id for one in cluster.rm.running.values() if one.allocation_key != "own"} == {"n2"}
    found = cluster.devices()
    assert [found[f"shared-{number}"] for number in range(3)] == [["n2/gpu-0", "n2/gpu-1"]] * 3
    check_devices(cluster.rm.running.values())
    cluster.submit("late", wanted("gpu", count=2))
    cluster.rm.schedule()
    assert "late" not in cluster.devices()
    for uuid in [uuid for uuid, one in cluster.rm.running.items() if one.allocation_key.startswith("shared")]:
        cluster.rm.release(uuid=uuid)
    cluster.rm.schedule()
    assert cluster.devices()["late"] == ["n2/gpu-0", "n2/gpu-1"]


def test_a_claim_without_its_class_waits_with_the_reason() -> None:
    cluster = DeviceCluster(gpus())
    cluster.submit("pod", wanted("gpu", deviceClassName="tpu"))
    cluster.rm.schedule()
    (reason,) = cluster.refusals("pod")
    assert "the device class tpu does not exist" in reason


def test_selectors_are_in_the_reason() -> None:
    cluster = DeviceCluster(gpus())
    cluster.submit("first", wanted("gpu"))
    cluster.rm.schedule()
    # The device that is taken is not of the kind that is wanted.
    cluster.submit("pod", wanted("gpu", 'device.driver == "other"'))
    cluster.rm.schedule()
    (reason,) = cluster.refusals("pod")
    assert reason == 'claim pod: no device of class gpu with device.driver == "other", for request gpu'


def parts() -> dict[str, Any]:
    """Return a slice list with one card, whole or in two halves."""
    use = {"counterSet": "card", "counters": {"memory": {"value": "40Gi"}}}
    half = {"counterSet": "card", "counters": {"memory": {"value": "20Gi"}}}
    return resource_slice(
        "n1",
        device("whole", kind="whole", consumesCounters=[use]),
        device("half-0", kind="half", consumesCounters=[half]),
        device("half-1", kind="half", consumesCounters=[half]),
        node="n1",
        count=2,
    )


def counters() -> dict[str, Any]:
    sets = [{"name": "card", "counters": {"memory": {"value": "40Gi"}}}]
    found = resource_slice("n1-counters", node="n1", count=2, sharedCounters=sets)
    del found["spec"]["devices"]
    return found


KIND = 'device.attributes["gpu.example.com"].kind == "{}"'
CHOICE = {
    "name": "card",
    "firstAvailable": [
        alternative("whole", KIND.format("whole")),
        alternative("half", KIND.format("half")),
    ],
}


def test_a_single_pod_takes_the_first_alternative() -> None:
    cluster = DeviceCluster(parts(), counters())
    cluster.submit("pod", CHOICE, count=2)
    cluster.rm.schedule()
    assert cluster.devices() == {"pod": ["n1/whole"]}


@pytest.mark.parametrize("topology", [None, ["rack"]])
def test_a_gang_takes_other_alternatives_where_the_first_would_leave_none(topology: list[str] | None) -> None:
    cluster = DeviceCluster(parts(), counters(), topology=topology)
    if topology:
        attributes = cluster.catalog.node_attributes("n1", {}) | {"rack": "r1"}
        cluster.rm.change_node("n1", attributes=attributes)
    cluster.rm.gang("gang", "Atomic", vcore=2, tags=ONE_RACK if topology else {})
    for key in ("one", "two"):
        cluster.rm.task("gang", key, "group", vcore=1, tags=cluster.tags(CHOICE))
    cluster.rm.schedule()
    assert cluster.devices() == {"one": ["n1/half-0"], "two": ["n1/half-1"]}
    check_devices(cluster.rm.running.values())
    cluster.submit("later", CHOICE)
    cluster.rm.schedule()
    assert "later" not in cluster.devices()
    for uuid in [*cluster.rm.running]:
        cluster.rm.release("gang", uuid=uuid)
    cluster.rm.schedule()
    assert cluster.devices() == {"later": ["n1/whole"]}


def test_a_gang_that_fits_takes_the_first_alternatives() -> None:
    other = parts()
    other["metadata"]["name"] = "n2"
    other["spec"] |= {"nodeName": "n2", "pool": other["spec"]["pool"] | {"name": "n2"}}
    more = counters()
    more["metadata"]["name"] = "n2-counters"
    more["spec"] |= {"nodeName": "n2", "pool": more["spec"]["pool"] | {"name": "n2"}}
    cluster = DeviceCluster(parts(), counters(), other, more, nodes=["n1", "n2"], vcore=1)
    cluster.rm.gang("gang", "Atomic", vcore=2)
    for key in ("one", "two"):
        cluster.rm.task("gang", key, "group", vcore=1, tags=cluster.tags(CHOICE))
    cluster.rm.schedule()
    assert sorted(cluster.devices().values()) == [["n1/whole"], ["n2/whole"]]


@pytest.mark.parametrize("vcore", [2, 8])
def test_victims_of_preemption_free_their_devices(vcore: int) -> None:
    # With 2, the node lacks cores as well; with 8, nothing but a device.
    queues = [
        queue("a", resources={"guaranteed": {"vcore": "1m"}}),
        queue("b", resources={"guaranteed": {"vcore": "1m"}}),
    ]
    cluster = DeviceCluster(gpus(), queues=queues, vcore=vcore)
    cluster.rm.app("other", "root.b")
    cluster.submit("low", wanted("gpu"), count=2)
    cluster.rm.schedule()
    assert len(cluster.rm.running) == 2
    cluster.submit("urgent", wanted("gpu"), app="other")
    cluster.rm.schedule()
    cluster.rm.pass_time(60)
    cluster.rm.schedule()
    assert len(cluster.rm.evicted) == 1
    cluster.rm.confirm(*cluster.rm.evicted)
    cluster.rm.schedule()
    assert "urgent" in cluster.devices()
    check_devices(cluster.rm.running.values())


def test_room_counts_devices() -> None:
    cluster = DeviceCluster(gpus("n1"), gpus("n2", device("gpu-0")), nodes=["n2", "n1"], topology=["rack"])
    for name in ("n1", "n2"):
        cluster.rm.change_node(name, attributes=cluster.catalog.node_attributes(name, {}) | {"rack": name})
    cluster.rm.gang("gang", "Atomic", vcore=2, tags=ONE_RACK)
    for key in ("one", "two"):
        cluster.rm.task("gang", key, "group", vcore=1, tags=cluster.tags(wanted("gpu")))
    cluster.rm.schedule()
    assert cluster.devices() == {"one": ["n1/gpu-0"], "two": ["n1/gpu-1"]}


@pytest.mark.parametrize("text", ["[", "{}", '[{"podClaim": "a", "allocation": 1}]', "7"])
def test_devices_that_cannot_be_read_close_their_node(text: str) -> None:
    cluster = DeviceCluster(gpus())
    tags = {"foreign": "default", names.TAG_DEVICES: text}
    cluster.rm.update(allocations=[Allocation("f", "", "f", "n1", Resource(vcore=1), allocation_tags=tags)])
    cluster.submit("pod", wanted("gpu"))
    cluster.rm.ask("app", "plain", vcore=1)
    cluster.rm.schedule()
    assert cluster.devices() == {"plain": []}
    assert [*cluster.refusals("pod")] == ["the devices of a pod on the node cannot be read"]


@pytest.mark.parametrize("text", ["[", "{}", "[7]", '[{"spec": {}}]'])
def test_slices_that_cannot_be_read_give_no_devices(text: str) -> None:
    cluster = DeviceCluster(gpus())
    cluster.rm.change_node("n1", attributes={names.NODE_SLICES: text})
    cluster.submit("pod", wanted("gpu"))
    cluster.rm.schedule()
    (reason,) = cluster.refusals("pod")
    assert "the slices of the node cannot be read" in reason


@pytest.mark.parametrize("text", ["[", "7", '{"claims": 7}', '{"claims": [{"podClaim": "a", "spec": 7}]}'])
def test_claims_that_cannot_be_read_wait(text: str) -> None:
    cluster = DeviceCluster(gpus())
    cluster.rm.ask("app", "pod", vcore=1, tags={names.TAG_CLAIMS: text})
    cluster.rm.schedule()
    assert not cluster.rm.running
    assert cluster.refusals("pod")


MEMORY: dict[str, Any] = {"memory": {"value": "8Gi", "requestPolicy": {"default": "2Gi"}}}


def drawn_slices(draw: random.Random, nodes: list[str]) -> list[dict[str, Any]]:
    found = []
    for name in nodes:
        devices = [device(f"gpu-{one}", kind=draw.choice(["a", "b"])) for one in range(draw.randint(0, 3))]
        if draw.random() < 0.5:
            shared: Any = {"allowMultipleAllocations": True}
            devices.append(device("shared", MEMORY, kind="shared", **shared))
        found.append(resource_slice(name, *devices, node=name))
    net = [device(f"nic-{one}", kind="net") for one in range(2)]
    found.append(resource_slice("net", *net, pool="net", allNodes=True))
    return found


def drawn_request(draw: random.Random) -> dict[str, Any]:
    kind = draw.choice(["a", "b", "shared", "net", "choice"])
    if kind == "choice":
        first = alternative("a", KIND.format("a"), count=2)
        return {"name": "r", "firstAvailable": [first, alternative("b", KIND.format("b"))]}
    more: dict[str, Any] = {}
    if kind == "shared":
        more["capacity"] = {"requests": {"memory": draw.choice(["1Gi", "3Gi"])}}
    elif draw.random() < 0.1:
        more["adminAccess"] = True
    return wanted("r", KIND.format(kind), count=draw.choice([1, 1, 2]) if kind != "shared" else 1, **more)


@pytest.mark.parametrize("seed", range(12))
def test_no_device_is_given_twice_and_none_is_kept_from_a_pod(seed: int) -> None:
    draw = random.Random(seed)
    nodes = [f"n{number}" for number in range(4)]
    slices = drawn_slices(draw, nodes)
    cluster = DeviceCluster(*slices, nodes=nodes, vcore=6)
    for count in range(40):
        chance = draw.random()
        if chance < 0.4:
            shared = draw.choice(["", "", "team-1", "team-2"])
            cluster.submit(f"pod-{count}", drawn_request(draw), shared=shared)
        elif chance < 0.5:
            cluster.rm.gang(f"gang-{count}", "Atomic", vcore=2)
            for member in range(2):
                tags = cluster.tags(drawn_request(draw))
                cluster.rm.task(f"gang-{count}", f"m{count}-{member}", "group", vcore=1, tags=tags)
        elif chance < 0.75 and cluster.rm.running:
            uuid = draw.choice(sorted(cluster.rm.running))
            cluster.rm.release(cluster.rm.running[uuid].application_id, uuid)
        elif chance < 0.85:
            cluster.report_again(draw.choice(nodes))
        elif chance < 0.9:
            running = [*cluster.rm.running.values()]
            apps = dict.fromkeys(one.application_id for one in running)
            cluster = DeviceCluster(*slices, nodes=nodes, vcore=6)
            for app in apps:
                if app != "app":
                    cluster.rm.app(app)
            cluster.rm.update(allocations=running)
        cluster.rm.schedule()
        check_devices(cluster.rm.running.values(), capacity=8)
        cluster.check_waiting()
    books = cluster.rm.at_work().orders.books
    assert all(not keeper.failed for keeper in books.keepers)
    for uuid, one in [*cluster.rm.running.items()]:
        cluster.rm.release(one.application_id, uuid)
    (keeper,) = books.keepers
    predicate: Any = keeper.plugin
    assert not predicate._entries
    assert not predicate._held
    assert not predicate._tried
