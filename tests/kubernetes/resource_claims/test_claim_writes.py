"""Writes to claims: their order, conflicts, devices that become ready, and the return of devices."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from tests.kubernetes.api_server.memory_server import failure, lost
from tests.kubernetes.resource_claims.kit import (
    FINALIZER,
    MARK,
    ClaimCluster,
    consumer,
    devices_of,
    owner,
    pod,
    run,
    settle,
    text_of,
)
from yunikorn_kubernetes.objects import Pod
from yunikorn_kubernetes.resource_claims.claim_binder import ClaimBindError
from yunikorn_kubernetes.workloads.pod_groups import PodGroup

READY = "Ready"
GROUP = {
    "metadata": {"namespace": "lab", "name": "gang", "uid": "uid-gang"},
    "spec": {"resourceClaims": [{"name": "all", "resourceClaimTemplateName": "template"}]},
}


def own(cluster: ClaimCluster, name: str = "p") -> Pod:
    """Return a pod with the claim `c` that was made for it."""
    cluster.claim("c", owner("Pod", name))
    made = pod(name, made={"gpu": "c"})
    cluster.add(made)
    return made


def grouped(name: str) -> Pod:
    """Return a pod of a PodGroup with a claim of the group."""
    return pod(name, made={"all": "shared"}, group="gang")


def gang() -> dict[str, PodGroup]:
    """Return the PodGroups by name."""
    return {"lab/gang": msgspec.convert(GROUP, PodGroup)}


def test_a_claim_gets_the_finalizer_then_devices_and_consumer() -> None:
    async def test() -> None:
        cluster = ClaimCluster()
        one = own(cluster)
        await cluster.binder.write(one, text_of(gpu=devices_of("a")))
        assert cluster.writes() == ["metadata", "status"]
        assert cluster.stored("c")["metadata"]["finalizers"] == [FINALIZER]
        assert cluster.status("c") == {"allocation": devices_of("a"), "reservedFor": [consumer(one)]}
        assert cluster.stored("c")["status"]["allocation"]["allocationTimestamp"] == "2023-11-14T22:13:20Z"

    run(test)


@pytest.mark.parametrize("number", [0, 1], ids=["finalizer", "status"])
def test_a_write_is_repeated_after_a_conflict(number: int) -> None:
    async def test() -> None:
        cluster = ClaimCluster()
        one, seen = own(cluster), [0]

        def conflict(method: str, path: str) -> Any:
            if method != "PATCH":
                return None
            seen[0] += 1
            return failure(409, "Conflict") if seen[0] == number + 1 else None

        cluster.memory.before = conflict
        await cluster.binder.write(one, text_of(gpu=devices_of("a")))
        assert cluster.status("c")["reservedFor"] == [consumer(one)]

    run(test)


@pytest.mark.parametrize(("times", "is_written"), [(3, True), (100, False)])
def test_a_server_that_has_just_started_refuses_writes_for_a_moment(times: int, is_written: bool) -> None:
    async def test() -> None:
        cluster = ClaimCluster()
        one, left = own(cluster), [times]

        def refuse(method: str, path: str) -> Any:
            left[0] -= 1
            return failure(403, "Forbidden", "no rights") if left[0] >= 0 else None

        cluster.memory.before = refuse
        binding = cluster.binder.write(one, text_of(gpu=devices_of("a")))
        [error] = await asyncio.gather(binding, return_exceptions=True)
        assert isinstance(error, ClaimBindError) is not is_written
        assert cluster.is_untouched("c") is not is_written

    run(test)


def test_a_write_whose_answer_is_lost_is_not_made_twice() -> None:
    async def test() -> None:
        cluster = ClaimCluster()
        one = own(cluster)
        cluster.memory.after = lambda method, path: (
            lost() if path.endswith("/status") and len(cluster.memory.bodies) == 2 else None
        )
        await cluster.binder.write(one, text_of(gpu=devices_of("a")))
        assert cluster.status("c")["reservedFor"] == [consumer(one)]
        assert cluster.writes() == ["metadata", "status"]

    run(test)


def test_the_same_devices_are_no_conflict() -> None:
    async def test() -> None:
        cluster = ClaimCluster()
        first, second = pod("p", "c"), pod("q", "c")
        cluster.claim("c")
        cluster.add(first, second)
        text = text_of(c=devices_of("a"))
        await asyncio.gather(cluster.binder.write(first, text), cluster.binder.write(second, text))
        assert cluster.status("c")["reservedFor"] == [consumer(first), consumer(second)]

    run(test)


def test_other_devices_are_refused() -> None:
    async def test() -> None:
        cluster = ClaimCluster()
        one = own(cluster)
        cluster.claim("c", owner("Pod", "p"), status={"allocation": devices_of("b")})
        with pytest.raises(ClaimBindError, match="the resource claim lab/c got other devices meanwhile"):
            await cluster.binder.write(one, text_of(gpu=devices_of("a")))

    run(test)


@pytest.mark.parametrize("text", ["", text_of(other=devices_of("a")), "[1]"])
def test_a_pod_needs_devices_for_all_claims(text: str) -> None:
    async def test() -> None:
        cluster = ClaimCluster()
        one = own(cluster)
        with pytest.raises(ClaimBindError):
            await cluster.binder.write(one, text)
        assert cluster.is_untouched("c")

    run(test)


def test_a_claim_that_is_gone_is_an_error() -> None:
    async def test() -> None:
        cluster = ClaimCluster()
        one = own(cluster)
        cluster.memory.remove("resourceclaims", "lab/c", api="/apis/resource.k8s.io/v1")
        with pytest.raises(ClaimBindError, match="the resource claim lab/c does not exist any more"):
            await cluster.binder.write(one, text_of(gpu=devices_of("a")))

    run(test)


def test_a_group_consumes_a_claim_once() -> None:
    async def test() -> None:
        cluster = ClaimCluster(gang())
        cluster.claim("shared", owner("PodGroup", "gang"))
        first, second = grouped("p"), grouped("q")
        cluster.add(first, second)
        for one in (first, second):
            await cluster.binder.write(one, text_of(all=devices_of("a")))
        group = {
            "apiGroup": "scheduling.k8s.io",
            "resource": "podgroups",
            "name": "gang",
            "uid": "uid-gang",
        }
        assert cluster.status("shared")["reservedFor"] == [group]
        cluster.claims.assume("uid-p")
        cluster.binder.give_back("uid-q")
        await settle()
        assert cluster.status("shared")["reservedFor"] == [group]
        cluster.claims.forget("uid-p")
        cluster.binder.give_back("uid-p")
        await settle()
        assert cluster.is_untouched("shared")

    run(test)


# -- devices that become ready ---------------------------------------------------------------------------


def conditional(cluster: ClaimCluster) -> tuple[Pod, str]:
    """Return a pod, and devices that have to become ready."""
    allocation = devices_of("a", bindingConditions=[READY], bindingFailureConditions=["Broken"])
    return own(cluster), text_of(gpu=allocation)


def set_condition(cluster: ClaimCluster, kind: str, message: str = "") -> None:
    """Report a condition of the device, as its driver does."""
    known = cluster.stored("c")
    conditions = [{"type": kind, "status": "True", "reason": "Driver", "message": message}]
    device = {"driver": "gpu.example.com", "pool": "n1", "device": "a", "conditions": conditions}
    known["status"]["devices"] = [device]
    cluster.memory.put("resourceclaims", known, api="/apis/resource.k8s.io/v1")
    cluster.report("c")


@pytest.mark.parametrize("is_reported", [True, False])
def test_devices_have_to_become_ready(is_reported: bool) -> None:
    async def test() -> None:
        cluster = ClaimCluster()
        one, text = conditional(cluster)
        await cluster.binder.write(one, text)
        if is_reported:  # else the watch is behind the write
            cluster.report("c")
        waiting = asyncio.ensure_future(cluster.binder.wait_until_ready("uid-p"))
        await settle()
        assert not waiting.done()
        set_condition(cluster, READY)
        await waiting

    run(test)


def test_a_condition_of_failure_ends_the_wait() -> None:
    async def test() -> None:
        cluster = ClaimCluster()
        one, text = conditional(cluster)
        await cluster.binder.write(one, text)
        set_condition(cluster, "Broken", "no link")
        with pytest.raises(ClaimBindError) as caught:
            await cluster.binder.wait_until_ready("uid-p")
        assert str(caught.value) == (
            "the resource claim lab/c: device gpu.example.com/n1/a has the condition Broken: no link"
        )

    run(test)


def test_the_wait_has_an_end() -> None:
    async def test() -> None:
        cluster = ClaimCluster(timeout=0.0)
        one, text = conditional(cluster)
        await cluster.binder.write(one, text)
        cluster.report("c")
        with pytest.raises(ClaimBindError) as caught:
            await cluster.binder.wait_until_ready("uid-p")
        assert str(caught.value) == (
            "the devices were not ready within 0 s: still waiting for"
            " condition Ready of device gpu.example.com/n1/a"
        )

    run(test)


# -- the return of devices -------------------------------------------------------------------------------


def test_devices_are_given_back() -> None:
    async def test() -> None:
        cluster = ClaimCluster()
        one = own(cluster)
        await cluster.binder.write(one, text_of(gpu=devices_of("a")))
        cluster.report("c")
        cluster.binder.give_back("uid-p")
        assert cluster.claims.tags(one).problems
        await settle()
        assert cluster.is_untouched("c")
        cluster.report("c")
        assert not cluster.claims.tags(one).problems

    run(test)


def test_a_return_waits_for_the_writes_of_a_cancelled_binding() -> None:
    async def test() -> None:
        cluster = ClaimCluster()
        one = own(cluster)
        binding = asyncio.ensure_future(cluster.binder.write(one, text_of(gpu=devices_of("a"))))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        binding.cancel()
        cluster.binder.give_back("uid-p")
        await settle()
        assert cluster.writes() == ["metadata", "status", "status", "metadata"]
        assert cluster.is_untouched("c")

    run(test)


def test_others_keep_a_shared_claim() -> None:
    async def test() -> None:
        cluster = ClaimCluster()
        cluster.claim("c")
        first, second = pod("p", "c"), pod("q", "c")
        cluster.add(first, second)
        for one in (first, second):
            cluster.claims.assume(one.metadata.uid)
            await cluster.binder.write(one, text_of(c=devices_of("a")))
        cluster.claims.forget("uid-p")
        cluster.binder.give_back("uid-p")
        await settle()
        assert cluster.status("c") == {"allocation": devices_of("a"), "reservedFor": [consumer(second)]}

    run(test)


def test_bound_pods_keep_their_devices() -> None:
    async def test() -> None:
        cluster = ClaimCluster()
        one = own(cluster)
        await cluster.binder.write(one, text_of(gpu=devices_of("a")))
        cluster.add(pod("p", made={"gpu": "c"}, node="n1"))
        cluster.binder.give_back("uid-p")
        await settle()
        assert cluster.status("c")["reservedFor"] == [consumer(one)]

    run(test)


@pytest.mark.parametrize("writes", [0, 1, 2])
def test_a_new_process_gives_back_what_is_left(writes: int) -> None:
    async def test() -> None:
        cluster = ClaimCluster()
        one = own(cluster)
        cluster.memory.before = lambda method, path: (
            lost() if method == "PATCH" and len(cluster.memory.bodies) >= writes else None
        )
        binding = asyncio.ensure_future(cluster.binder.write(one, text_of(gpu=devices_of("a"))))
        await settle()
        cluster.memory.before = lambda method, path: failure(403, "Forbidden")
        await asyncio.gather(binding, return_exceptions=True)
        cluster.memory.before = lambda method, path: None
        assert cluster.is_untouched("c") is (writes == 0)
        cluster.report("c")
        cluster.start()
        cluster.binder.recover()
        await settle()
        assert cluster.is_untouched("c")

    run(test)


def test_a_new_process_leaves_what_is_bound_and_what_others_have_allocated() -> None:
    async def test() -> None:
        cluster = ClaimCluster()
        bound, waiting = pod("p", "c", node="n1"), pod("q", "d")
        cluster.add(bound, waiting)
        for name, one, mark in (("c", bound, {MARK: "true"}), ("d", waiting, {})):
            status = {"allocation": devices_of("a"), "reservedFor": [consumer(one)]}
            cluster.claim(name, status=status, annotations=mark)
        cluster.binder.recover()
        await settle()
        assert cluster.writes() == []

    run(test)
