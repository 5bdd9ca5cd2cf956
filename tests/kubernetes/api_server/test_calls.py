"""Calls to an API server: paths, pages, errors, pauses that the server asks for, and rate limits."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.kubernetes.api_server.memory_server import MemoryServer, answer, failure, lost, refused
from tests.kubernetes.api_server.virtual_time import run_virtual
from yunikorn_kubernetes.api_server.api_resources import CSI_NODES, NODES, PODS
from yunikorn_kubernetes.api_server.calls import ApiError, ApiServer
from yunikorn_kubernetes.api_server.rate_limit import RateLimit
from yunikorn_kubernetes.api_server.transport import ServerAnswer
from yunikorn_kubernetes.api_server.watch_lines import Bookmark, WatchEventType


def test_paths_name_group_namespace_and_subresource() -> None:
    assert PODS.path() == "/api/v1/pods"
    assert PODS.path("shop", "web-1", "binding") == "/api/v1/namespaces/shop/pods/web-1/binding"
    assert CSI_NODES.path(name="a/b") == "/apis/storage.k8s.io/v1/csinodes/a%2Fb"
    assert NODES.api_version == "v1"
    assert CSI_NODES.api_version == "storage.k8s.io/v1"


def test_a_list_in_pages_has_all_objects() -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        for number in range(7):
            memory.pod(f"p{number}")
        found = await ApiServer(memory).list(PODS, limit=3)
        assert [pod.metadata.name for pod in found.items] == [f"p{number}" for number in range(7)]
        assert found.resource_version == "107"
        assert [path.partition("continue=")[2] for _, path in memory.calls] == ["", "3", "6"]

    run_virtual(scenario())


def test_the_check_of_a_right_is_one_request_for_any_number_of_objects() -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        for number in range(7):
            memory.pod(f"p{number}")
        server = ApiServer(memory)
        await server.check_list(PODS, "default")
        assert memory.calls == [("GET", "/api/v1/namespaces/default/pods?limit=1")]

        memory.before = lambda method, path: failure(403, "Forbidden", "pods is forbidden")
        with pytest.raises(ApiError, match="403 pods is forbidden"):
            await server.check_list(PODS)

    run_virtual(scenario())


def test_a_list_whose_first_page_has_expired_is_read_at_once() -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        for number in range(5):
            memory.pod(f"p{number}")
        memory.before = lambda method, path: failure(410, "Expired") if "continue=" in path else None
        found = await ApiServer(memory).list(PODS, limit=2)
        assert len(found.items) == 5

    run_virtual(scenario())


def test_an_object_that_cannot_be_decoded_does_not_hide_the_others(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        memory.pod("good")
        memory.put(
            "pods", {"metadata": {"name": "odd", "namespace": "default"}, "spec": {"priority": "high"}}
        )
        found = await ApiServer(memory).list(PODS)
        assert [pod.metadata.name for pod in found.items] == ["good"]

    run_virtual(scenario())
    assert (
        "Pod default/odd is left out: Expected `int | null`, got `str` - at `$.spec.priority`" in caplog.text
    )


def test_errors_have_status_reason_message_and_pause() -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        server = ApiServer(memory)
        with pytest.raises(ApiError, match='404 pods "web" not found') as caught:
            await server.get(PODS, "default", "web")
        assert (caught.value.status, caught.value.reason) == (404, "NotFound")
        assert caught.value.is_not_found
        assert not caught.value.is_temporary

        memory.before = lambda method, path: ServerAnswer(
            502, {"retry-after": "7"}, b"<html>bad gateway</html>"
        )
        with pytest.raises(ApiError, match="502 <html>bad gateway</html>") as caught:
            await server.get(PODS, "default", "web")
        assert caught.value.retry_after == 7.0
        assert caught.value.is_temporary
        assert caught.value.maybe_executed

        memory.before = lambda method, path: ServerAnswer(200, {}, b"<html>login</html>")
        with pytest.raises(ApiError, match="unreadable answer") as caught:
            await server.get(PODS, "default", "web")
        assert caught.value.maybe_executed

    run_virtual(scenario())


@pytest.mark.parametrize(("fault", "maybe_executed"), [(lost(), True), (refused(), False)])
def test_a_lost_answer_says_if_the_server_may_have_executed_the_call(
    fault: Exception, maybe_executed: bool
) -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        memory.before = lambda method, path: fault
        with pytest.raises(ApiError, match="no answer from the API server: connection") as caught:
            await ApiServer(memory).bind("default", "web", "uid", "node")
        assert caught.value.status == 0
        assert caught.value.maybe_executed is maybe_executed

    run_virtual(scenario())


def test_a_throttled_call_is_tried_again_after_the_pause_that_the_server_asks_for() -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        memory.pod("web")
        answers: Iterator[ServerAnswer | None] = iter(
            [failure(429, "TooManyRequests", retry_after="7"), None]
        )
        memory.before = lambda method, path: next(answers)
        started = asyncio.get_running_loop().time()
        pod = await ApiServer(memory).get(PODS, "default", "web")
        assert pod.metadata.name == "web"
        assert asyncio.get_running_loop().time() - started == pytest.approx(7.0)

    run_virtual(scenario())


def test_a_call_that_is_always_throttled_fails() -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        memory.before = lambda method, path: failure(429, "TooManyRequests", retry_after="1")
        with pytest.raises(ApiError) as caught:
            await ApiServer(memory).get(PODS, "default", "web")
        assert caught.value.status == 429
        assert caught.value.retry_after == 1.0
        assert not caught.value.maybe_executed

    run_virtual(scenario())


def test_nothing_is_written_without_permission_not_even_by_a_call_that_was_throttled() -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        memory.pod("web")
        memory.before = lambda method, path: failure(429, "TooManyRequests", retry_after="7")
        leads = True
        server = ApiServer(memory, may_write=lambda: leads)
        write = asyncio.create_task(server.delete(PODS, "default", "web"))
        await asyncio.sleep(1.0)
        leads = False
        memory.before = lambda method, path: None
        with pytest.raises(ApiError, match="does not hold the lease") as caught:
            await write
        assert not caught.value.maybe_executed
        assert (await server.get(PODS, "default", "web")).metadata.name == "web"
        assert [method for method, _ in memory.calls] == ["DELETE", "GET"]

    run_virtual(scenario())


def test_the_rate_limit_permits_a_burst_and_then_one_request_at_a_time() -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        memory.pod("web")
        server = ApiServer(memory, rate_limit=RateLimit(10.0, 5.0))
        loop = asyncio.get_running_loop()
        started = loop.time()
        await asyncio.gather(*(server.get(PODS, "default", "web") for _ in range(25)))
        assert loop.time() - started == pytest.approx(2.0)

    run_virtual(scenario())


def test_a_cancelled_request_returns_its_permit() -> None:
    async def scenario() -> None:
        limit = RateLimit(1.0, 1.0)
        await limit.acquire()
        waiting = [asyncio.create_task(limit.acquire()) for _ in range(50)]
        await asyncio.sleep(0)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await asyncio.sleep(1.0)
        assert limit.try_acquire()
        assert not limit.try_acquire()

    run_virtual(scenario())


def test_writes_send_what_the_server_expects() -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        memory.pod("web", uid="u1")
        server = ApiServer(memory)
        await server.bind("default", "web", "u1", "node-1")
        assert memory.objects["/api/v1", "pods"]["default/web"]["spec"]["nodeName"] == "node-1"
        with pytest.raises(ApiError, match="already assigned to node-1") as caught:
            await server.bind("default", "web", "u1", "node-2")
        assert caught.value.is_conflict
        await server.patch(PODS, "default", "web", {"metadata": {"labels": {"a": "b"}}})
        assert (await server.get(PODS, "default", "web")).metadata.labels == {"a": "b"}
        with pytest.raises(ApiError, match="uid does not match"):
            await server.delete(PODS, "default", "web", uid="u2")
        await server.delete(PODS, "default", "web", uid="u1")
        made = await server.create(PODS, "default", {"metadata": {"name": "new"}, "spec": {}})
        assert made.metadata.namespace == "default"

    run_virtual(scenario())


def test_a_watch_reports_changes_bookmarks_and_errors() -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        server = ApiServer(memory)
        seen: list[tuple[WatchEventType, str] | str] = []

        async def collect() -> None:
            async for event in server.watch(PODS, resource_version="100"):
                if isinstance(event, Bookmark):
                    seen.append(event.resource_version)
                else:
                    seen.append((event.type, event.object.metadata.name))

        watching = asyncio.create_task(collect())
        await asyncio.sleep(1.0)
        memory.pod("a")
        memory.bookmark("pods")
        memory.remove("pods", "default/a")
        await asyncio.sleep(1.0)
        memory.send("pods", "ERROR", {"kind": "Status", "code": 500, "message": "etcd", "status": "Failure"})
        with pytest.raises(ApiError, match="500 etcd"):
            await watching
        assert seen == [(WatchEventType.ADDED, "a"), "101", (WatchEventType.DELETED, "a")]

    run_virtual(scenario())


def test_a_refused_watch_reports_the_refusal() -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        memory.before = lambda method, path: failure(403, "Forbidden", "pods is forbidden")
        with pytest.raises(ApiError, match="403 pods is forbidden"):
            async for _ in ApiServer(memory).watch(PODS, resource_version="1"):
                pass

    run_virtual(scenario())


def test_answers_of_a_list_may_lack_items() -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        memory.before = lambda method, path: answer(
            200, {"metadata": {"resourceVersion": "5"}, "items": None}
        )
        found = await ApiServer(memory).list(PODS)
        assert (found.items, found.resource_version) == ([], "5")

    run_virtual(scenario())
