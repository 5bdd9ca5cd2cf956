"""Pods with claims from their creation to their end, in a cluster in memory."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.kubernetes.api_server.memory_server import failure
from tests.kubernetes.resource_claims.claimed_cluster import ClaimedCluster
from tests.kubernetes.shim.fake_cluster import CONFIG, run_in
from yunikorn_kubernetes.api_server.calls import ApiError
from yunikorn_kubernetes.names import TAG_DEVICES
from yunikorn_kubernetes.objects import Pod

Test = Callable[[ClaimedCluster], Coroutine[Any, Any, None]]
GPU = "deviceclass/gpu"
LATER = 600.0
"""Seconds after which the core uses a node again on which a pod could not be started."""
LIMITED = CONFIG.replace("- name: lab", f"- name: lab\n            resources: {{max: {{{GPU}: 1}}}}")


def run(test: Test, config: str = CONFIG) -> None:
    """Run a test in a new cluster."""
    run_in(lambda: ClaimedCluster(config), test)


def tags(cluster: ClaimedCluster, name: str) -> dict[str, str]:
    """Return the tags of the last entry about a pod that was sent to the core."""
    uid = cluster.pod(name).metadata.uid
    sent = [one for request in cluster.core.requests for one in request.allocations]
    return next(one.allocation_tags for one in reversed(sent) if one.allocation_key == uid)


def refuse(name: str, times: int = 1) -> Any:
    """Return a fault: the server refuses writes to the status of a claim."""
    left = [times]

    def answer(method: str, path: str) -> Any:
        if method != "PATCH" or not path.endswith(f"/{name}/status") or not left[0]:
            return None
        left[0] -= 1
        return failure(422, "Invalid", "no such device")

    return answer


def test_a_pod_gets_its_devices_before_it_is_bound() -> None:
    async def test(cluster: ClaimedCluster) -> None:
        cluster.add_node("n1")
        cluster.claiming_pod("p")
        await cluster.settle()
        assert cluster.placed() == {"p": "n1"}
        assert cluster.devices() == {"p-gpu": ["d0"]}
        assert cluster.consumers("p-gpu") == ["p"]
        assert cluster.used() == {"vcore": 1000, "pods": 1, GPU: 1}

    run(test)


def test_a_pod_waits_until_its_claim_is_made() -> None:
    async def test(cluster: ClaimedCluster) -> None:
        cluster.add_node("n1")
        cluster.claiming_pod("p", "c")
        await cluster.settle()
        assert not cluster.placed()
        assert cluster.pod("p").status.conditions[0].message == "the resource claim default/c does not exist"
        cluster.put_claim("c")
        await cluster.settle()
        assert cluster.placed() == {"p": "n1"}

    run(test)


def test_pods_without_claims_are_untouched() -> None:
    async def test(cluster: ClaimedCluster) -> None:
        cluster.add_node("n1")
        cluster.add_pod("p")
        await cluster.settle()
        assert cluster.placed() == {"p": "n1"}
        assert not cluster.memory.bodies

    run(test)


def test_devices_count_in_the_quota_of_the_queue() -> None:
    async def test(cluster: ClaimedCluster) -> None:
        cluster.add_node("n1")
        first = cluster.claiming_pod("p")
        await cluster.settle()
        cluster.claiming_pod("q", app="other")
        await cluster.settle()
        assert cluster.placed() == {"p": "n1"}
        cluster.finish(first)
        await cluster.settle()
        assert "q" in cluster.placed()

    run(test, LIMITED)


def test_a_claim_that_cannot_be_written_returns_the_pod() -> None:
    async def test(cluster: ClaimedCluster) -> None:
        cluster.memory.before = refuse("p-gpu")
        cluster.add_node("n1")
        cluster.claiming_pod("p")
        await cluster.settle()
        assert "PodClaimsBindFailure" in cluster.reasons("p")
        assert not cluster.devices()
        await cluster.advance(LATER)
        # The next attempt gets other devices.
        assert cluster.devices() == {"p-gpu": ["d1"]}
        assert cluster.placed() == {"p": "n1"}

    run(test)


def test_a_pod_that_cannot_be_bound_gives_its_devices_back() -> None:
    async def test(cluster: ClaimedCluster) -> None:
        cluster.failing["bind"] = [ApiError(422, "Invalid", "no")]
        cluster.add_node("n1")
        cluster.claiming_pod("p")
        await cluster.settle()
        assert not cluster.devices()
        await cluster.advance(LATER)
        assert cluster.devices() == {"p-gpu": ["d1"]}
        assert cluster.placed() == {"p": "n1"}

    run(test)


def test_a_pod_that_is_deleted_meanwhile_leaves_nothing() -> None:
    async def test(cluster: ClaimedCluster) -> None:
        cluster.memory.before = lambda method, path: (
            failure(503, "Unavailable") if path.endswith("/status") else None
        )
        cluster.add_node("n1")
        one = cluster.claiming_pod("p")
        await cluster.settle()
        cluster.remove_pod(one)
        cluster.memory.before = lambda method, path: None
        await cluster.settle()
        await cluster.settle()
        left = cluster.stored("p-gpu")
        # The controller of claims removes the consumer that does not exist any more.
        assert not cluster.devices() or left["status"]["reservedFor"]
        assert cluster.used() == {}

    run(test)


@pytest.mark.parametrize("is_seen", [True, False])
def test_the_devices_of_a_pod_that_has_ended_are_taken_until_they_are_given_back(is_seen: bool) -> None:
    async def test(cluster: ClaimedCluster) -> None:
        one = cluster.claiming_pod("p")
        await cluster.settle()
        cluster.is_watching_claims = is_seen
        cluster.add_node("n1")
        await cluster.settle()
        assert cluster.placed() == {"p": "n1"}
        cluster.core.requests.clear()
        cluster.finish(one)
        await cluster.settle()
        assert cluster.used() == {}
        assert cluster.taken("n1") == ["d0"]
        # There is no moment in which the core has neither the pod nor the devices.
        [ending] = [each for each in cluster.core.requests if each.releases.allocations_to_release]
        assert [each.node_id for each in ending.updated_nodes] == ["n1"]

    run(test)


@pytest.mark.parametrize("is_seen", [True, False])
def test_devices_that_are_given_back_are_taken_meanwhile(is_seen: bool) -> None:
    async def test(cluster: ClaimedCluster) -> None:
        cluster.failing["bind"] = [ApiError(422, "Invalid", "no")]
        one = cluster.claiming_pod("p")
        await cluster.settle()
        cluster.is_watching_claims = is_seen
        cluster.add_node("n1")
        await cluster.settle()
        ending = [each for each in cluster.core.requests if each.releases.allocations_to_release]
        assert [each.node_id for each in ending[0].updated_nodes] == ["n1"]
        assert not cluster.devices()
        assert cluster.taken("n1") == []
        assert not cluster.claims.tags(one).problems

    run(test)


def test_members_of_a_gang_are_bound_when_all_have_their_devices() -> None:
    async def test(cluster: ClaimedCluster) -> None:
        order: list[str] = []

        def note(method: str, path: str) -> None:
            if path.endswith("/status"):
                order.append("claim")

        cluster.memory.before = note
        put_pod = cluster.put_pod

        def noted(pod: Pod) -> Pod:
            if pod.spec.node_name and pod.status.phase == "Running":
                order.append("bind")
            return put_pod(pod)

        cluster.put_pod = noted  # type: ignore[method-assign]
        cluster.add_node("n1")
        cluster.pod_group("g", 3)
        for number in range(3):
            cluster.claiming_pod(f"g-{number}", group="g")
        await cluster.settle()
        assert len(cluster.placed()) == 3
        assert order == ["claim"] * 3 + ["bind"] * 3

    run(test)


@pytest.mark.parametrize("failing", [0, 2])
def test_a_claim_that_fails_costs_no_started_member(failing: int) -> None:
    async def test(cluster: ClaimedCluster) -> None:
        cluster.memory.before = refuse(f"g-{failing}-gpu")
        cluster.add_node("n1")
        cluster.pod_group("g", 3)
        for number in range(3):
            cluster.claiming_pod(f"g-{number}", group="g")
        await cluster.settle()
        for number in range(3):
            assert "PodClaimsBindFailure" in cluster.reasons(f"g-{number}")
        assert not cluster.placed()
        assert not cluster.devices()
        await cluster.advance(LATER)
        assert len(cluster.placed()) == 3
        assert sorted(cluster.devices()) == ["g-0-gpu", "g-1-gpu", "g-2-gpu"]
        assert sorted(cluster.devices().values()) == [["d3"], ["d4"], ["d5"]]

    run(test)


def test_a_restart_brings_devices_back_as_allocations() -> None:
    async def test(cluster: ClaimedCluster) -> None:
        cluster.add_node("n1")
        cluster.claiming_pod("p")
        await cluster.settle()
        await cluster.restart()
        assert TAG_DEVICES in tags(cluster, "p")
        assert cluster.used() == {"vcore": 1000, "pods": 1, GPU: 1}
        assert cluster.devices() == {"p-gpu": ["d0"]}

    run(test)


@pytest.mark.parametrize("writes", range(5))
def test_a_restart_between_two_writes_leaves_no_device_behind(writes: int) -> None:
    async def test(cluster: ClaimedCluster) -> None:
        cluster.add_node("n1")
        cluster.put_claim("shared")
        cluster.claiming_pod("p", "shared")
        one = cluster.claiming_pod("q")
        cluster.memory.bodies.clear()
        cluster.memory.before = lambda method, path: (
            failure(503, "Unavailable")
            if method == "PATCH" and len(cluster.memory.bodies) >= writes
            else None
        )
        await cluster.settle()
        cluster.memory.before = lambda method, path: None
        await cluster.restart()
        await cluster.settle()
        assert cluster.placed() == {"p": "n1", "q": "n1"}
        given = cluster.devices()
        assert sorted(given) == ["q-gpu", "shared"]
        assert given["q-gpu"] != given["shared"]
        cluster.remove_pod(one)
        await cluster.settle()
        assert cluster.used() == {"vcore": 1000, "pods": 1, GPU: 1}

    run(test)
