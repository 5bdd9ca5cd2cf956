"""The client against a real API server: what servers in memory cannot show."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.kubernetes.cluster import Cluster, Obj
from tests.kubernetes.cluster.objects import config_map, nodes, pod
from yunikorn.clock import SystemClock
from yunikorn_kubernetes.api_server.api_connection import ApiConnection
from yunikorn_kubernetes.api_server.api_credentials import find_credentials
from yunikorn_kubernetes.api_server.api_resources import (
    CONFIG_MAPS,
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    EVENTS,
    LEASES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    PRIORITY_CLASSES,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    ApiResource,
)
from yunikorn_kubernetes.api_server.back_off import seeded
from yunikorn_kubernetes.api_server.calls import STRATEGIC_PATCH, ApiError, ApiServer
from yunikorn_kubernetes.api_server.lease import LeaderElection, LeadershipLost, LeaseTimes
from yunikorn_kubernetes.api_server.pod_binding import BindOutcome, PodRef
from yunikorn_kubernetes.api_server.pod_events import PodEvents, reference
from yunikorn_kubernetes.api_server.reflector import ObjectChange, Reflector
from yunikorn_kubernetes.api_server.writes import QueuedWrites
from yunikorn_kubernetes.objects import Pod

pytestmark = pytest.mark.net

PATIENCE = 60.0
"""Seconds that a test waits for a state of the cluster."""


@asynccontextmanager
async def connect(cluster: Cluster) -> AsyncIterator[ApiServer]:
    """Return a server of the cluster, with the credentials of its kubeconfig."""
    credentials = find_credentials(str(cluster.kubeconfig), environment=os.environ)
    server = ApiServer(ApiConnection(credentials, user_agent="yunikorn/test"))
    try:
        yield server
    finally:
        await server.close()


@asynccontextmanager
async def running(*coroutines: object) -> AsyncIterator[None]:
    """Run tasks while the context is active."""
    tasks = [asyncio.ensure_future(each) for each in coroutines]  # type: ignore[call-overload]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def until(condition: Callable[[], object]) -> None:
    """Wait until a condition is true."""
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.02)


def ref(item: Pod) -> PodRef:
    """Return the identity of a pod."""
    return PodRef.of(item)


WATCHED: tuple[ApiResource[Any], ...] = (
    *(CONFIG_MAPS, CSI_DRIVERS, CSI_NODES, CSI_STORAGE_CAPACITIES, NAMESPACES, NODES),
    *(PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, PRIORITY_CLASSES, STORAGE_CLASSES),
    VOLUME_ATTACHMENTS,
)


def test_all_resources_can_be_listed_and_watched(cluster: Cluster) -> None:
    async def scenario() -> None:
        async with connect(cluster) as server:

            async def read(resource: ApiResource[Any]) -> None:
                listing = await server.list(resource, resource_version="0")
                assert listing.resource_version.isdecimal()
                assert not listing.unreadable
                version = listing.resource_version
                async for _ in server.watch(resource, resource_version=version, timeout_seconds=1):
                    pass

            await asyncio.gather(*map(read, WATCHED))
            for dynamic in (LEASES, EVENTS):
                assert (await server.list(dynamic)).resource_version.isdecimal()
            assert {item.metadata.name for item in (await server.list(PRIORITY_CLASSES, limit=1)).items} == {
                "system-cluster-critical",
                "system-node-critical",
            }

    asyncio.run(scenario())


def test_a_reflector_survives_restarts_compaction_and_an_outage(cluster: Cluster) -> None:
    kubectl = cluster.kubectl
    seen: list[tuple[str, str]] = []

    def handler(change: ObjectChange[Pod]) -> None:
        seen.append((change.kind.value, change.object.metadata.name))

    def names(reflector: Reflector[Pod]) -> set[str]:
        return {key.partition("/")[2] for key in reflector.store}

    async def scenario() -> None:
        async with connect(cluster) as server:
            pods = Reflector(server, PODS, handler, random=seeded(1))
            async with running(pods.run()):
                await pods.synced.wait()
                for name in ("kept", "gone"):
                    kubectl.create(pod(name))
                await until(lambda: names(pods) == {"kept", "gone"})
                await asyncio.to_thread(cluster.restart_api_server, kill=True)
                kubectl.create(pod("after-restart"))
                await until(lambda: "after-restart" in names(pods))

                await asyncio.to_thread(cluster.stop_api_server)
                await until(lambda: pods.failure is not None)
                await asyncio.to_thread(cluster.start_api_server)
                kubectl.delete("Pod", "gone")
                kubectl.create(config_map("later", {}))
                await asyncio.to_thread(cluster.expire_watches)
                kubectl.create(pod("after-expiry"))
                await until(lambda: names(pods) == {"kept", "after-restart", "after-expiry"})
                assert pods.failure is None
            assert pods.handler_failures == 0

    asyncio.run(scenario())
    for name in ("kept", "gone", "after-restart", "after-expiry"):
        assert seen.count(("ADDED", name)) == 1
    assert [name for kind, name in seen if kind == "DELETED"] == ["gone"]


def test_bindings_conditions_and_deletions(cluster: Cluster) -> None:
    kubectl = cluster.kubectl
    kubectl.create_all(nodes(2))
    for name in ("one", "two", "old"):
        kubectl.create(pod(name))

    async def scenario() -> None:
        async with connect(cluster) as server:
            pods = Reflector(server, PODS, lambda change: None, random=seeded(1))
            writes = QueuedWrites(server, pods.store, clock=SystemClock(), random=seeded(2))
            async with running(pods.run(), writes.run()):
                await pods.synced.wait()
                one, two, old = (ref(pods.store[f"default/{name}"]) for name in ("one", "two", "old"))

                def conditions(name: str) -> dict[str, str]:
                    status = pods.store[f"default/{name}"].status
                    return {each.type: f"{each.status} {each.reason}".strip() for each in status.conditions}

                writes.set_condition(one, "Unschedulable", "no room")
                await until(lambda: conditions("one").get("PodScheduled") == "False Unschedulable")
                waiting = pods.store["default/one"]

                assert (await writes.bind(one, "node-0")).outcome is BindOutcome.BOUND
                assert (await writes.bind(one, "node-0")).outcome is BindOutcome.BOUND
                elsewhere = await writes.bind(one, "node-1")
                assert (elsewhere.outcome, elsewhere.node) == (BindOutcome.ELSEWHERE, "node-0")
                await until(lambda: conditions("one").get("PodScheduled") == "True")

                # The version that was seen before the binding protects the condition of the server.
                late = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
                meta = {"resourceVersion": waiting.metadata.resource_version}
                with pytest.raises(ApiError) as caught:
                    await server.patch(
                        PODS,
                        "default",
                        "one",
                        {"metadata": meta, "status": {"conditions": [late]}},
                        subresource="status",
                        media_type=STRATEGIC_PATCH,
                    )
                assert caught.value.is_conflict

                assert (
                    await writes.bind(PodRef("default", "two", one.uid), "node-0")
                ).outcome is BindOutcome.GONE
                assert (
                    await writes.bind(PodRef("default", "none", "x"), "node-0")
                ).outcome is BindOutcome.GONE
                status = {"phase": "Failed", "reason": "ApplicationRejected", "message": "no queue"}
                assert await writes.set_status(two, status)
                await until(lambda: pods.store["default/two"].status.reason == "ApplicationRejected")
                assert await writes.delete_pod(PodRef("default", "old", two.uid))
                assert "default/old" in pods.store
                assert await writes.delete_pod(old)
                await until(lambda: "default/old" not in pods.store)
                body = {"metadata": {"name": "made"}, "spec": pod("made")["spec"]}
                assert (await writes.create(PODS, "default", body)).spec.scheduler_name == "yunikorn"
                with pytest.raises(ApiError, match="already exists"):
                    await writes.create(PODS, "default", body)

    asyncio.run(scenario())


def test_bindings_during_a_restart_of_the_api_server_have_true_outcomes(cluster: Cluster) -> None:
    kubectl = cluster.kubectl
    kubectl.create_all(nodes(1))
    count = 60
    kubectl.create_all([pod(f"p{number}") for number in range(count)])

    async def scenario() -> None:
        async with connect(cluster) as server:
            listing = await server.list(PODS, "default")
            writes = QueuedWrites(server, {}, clock=SystemClock(), random=seeded(2), workers=4)
            async with running(writes.run()):
                bound = [writes.bind(ref(item), "node-0") for item in listing.items]
                await until(lambda: sum(future.done() for future in bound) >= 5)
                await asyncio.to_thread(cluster.restart_api_server, kill=True)
                async with asyncio.timeout(PATIENCE):
                    results = await asyncio.gather(*bound)
            assert {result.outcome for result in results} == {BindOutcome.BOUND}
            after = await server.list(PODS, "default")
            assert len(after.items) == count
            assert {item.spec.node_name for item in after.items} == {"node-0"}

    asyncio.run(scenario())


def test_events_and_their_series_are_accepted(cluster: Cluster) -> None:
    kubectl = cluster.kubectl
    kubectl.create_all(nodes(1))
    kubectl.create(pod("web"))

    def ours() -> list[Obj]:
        # Controllers of the cluster report events of the node as well.
        return [each for each in kubectl.list("Event") if each["reportingComponent"] == "yunikorn"]

    async def scenario() -> None:
        async with connect(cluster) as server:
            events = PodEvents(server, instance="yunikorn-0", clock=SystemClock(), random=seeded(1))
            web = reference(PODS, await server.get(PODS, "default", "web"))
            node = reference(NODES, await server.get(NODES, "", "node-0"))
            async with running(events.run()):
                for _ in range(3):
                    events.report(web, "Scheduling", "Scheduling", "queued " * 300)
                events.report(web, "TaskFailed", "Reject", "no queue", warning=True)
                events.report(node, "NodeAccepted", "Add", "node-0 is part of the scheduler")
                await until(lambda: len(ours()) >= 3 or events.dropped)
            assert events.dropped == 0
            found = (await server.list(EVENTS, "default")).items
            written = {each["reason"]: each for each in found if each["reportingController"] == "yunikorn"}
            assert set(written) == {"Scheduling", "TaskFailed", "NodeAccepted"}
            assert written["Scheduling"]["series"]["count"] == 3
            assert len(written["Scheduling"]["note"]) == 1024
            name = written["TaskFailed"]["metadata"]["name"]
            series = {"count": 2, "lastObservedTime": "2026-01-02T03:04:05.000006Z"}
            await server.patch(EVENTS, "default", name, {"series": series})

    asyncio.run(scenario())


def test_two_candidates_follow_each_other(cluster: Cluster) -> None:
    times = LeaseTimes(duration=3.0, renew_deadline=2.0, retry=0.2)

    async def scenario() -> None:
        async with connect(cluster) as server:
            one, two = (
                LeaderElection(
                    server,
                    "default",
                    "yunikorn",
                    name,
                    clock=SystemClock(),
                    random=seeded(1),
                    times=times,
                )
                for name in ("one", "two")
            )
            await one.acquire()
            kept = asyncio.create_task(one.keep())
            waiting = asyncio.create_task(two.acquire())
            await until(lambda: two.holder == "one")
            kept.cancel()
            await asyncio.gather(kept, return_exceptions=True)
            await one.release()
            async with asyncio.timeout(PATIENCE):
                await waiting
            assert not one.holds()
            record = await server.get(LEASES, "default", "yunikorn")
            assert record["spec"]["holderIdentity"] == "two"
            assert record["spec"]["leaseTransitions"] == 1

            kept = asyncio.create_task(two.keep())
            await asyncio.to_thread(cluster.stop_api_server)
            with pytest.raises(LeadershipLost, match="not renewed for 2 seconds"):
                await kept
            await asyncio.to_thread(cluster.start_api_server)
            async with asyncio.timeout(PATIENCE):
                await one.acquire()
            assert one.holds()

    asyncio.run(scenario())
