"""Bindings: their outcome is always what the server has."""

from __future__ import annotations

import asyncio
import datetime
import random

import pytest

from tests.kubernetes.api_server.memory_server import failure, lost, refused
from tests.kubernetes.api_server.virtual_time import run_virtual
from tests.kubernetes.api_server.writing_kit import WEB, once, placeholder, writing
from yunikorn_kubernetes.api_server.api_resources import PODS
from yunikorn_kubernetes.api_server.pod_binding import BindOutcome, BindResult, PodRef
from yunikorn_kubernetes.api_server.transport import ServerAnswer


def test_a_binding_is_one_call() -> None:
    async def scenario() -> None:
        async with writing() as each:
            assert await each.writes.bind(WEB, "n1") == BindResult(BindOutcome.BOUND, "n1")
            assert each.stored()["spec"]["nodeName"] == "n1"
            assert each.calls() == [("POST", "pods/web/binding")]
            assert each.memory.bodies[-1]["metadata"]["uid"] == "u1"
            assert not any(each.writes.waiting.values())

    run_virtual(scenario())


def test_a_pod_that_is_bound_to_the_node_already_is_bound() -> None:
    async def scenario() -> None:
        async with writing() as each:
            each.memory.pod("web", node="n1")
            assert await each.writes.bind(WEB, "n1") == BindResult(BindOutcome.BOUND, "n1")
            assert each.calls() == [("POST", "pods/web/binding"), ("GET", "pods/web")]

    run_virtual(scenario())


def test_a_pod_on_another_node_is_elsewhere() -> None:
    async def scenario() -> None:
        async with writing() as each:
            each.memory.pod("web", node="n2")
            result = await each.writes.bind(WEB, "n1")
            assert result == BindResult(BindOutcome.ELSEWHERE, "n2", "409 pod is already assigned to n2")

    run_virtual(scenario())


@pytest.mark.parametrize("how", ["deleted", "replaced", "terminating"])
def test_a_pod_that_is_gone_is_not_bound(how: str) -> None:
    async def scenario() -> None:
        async with writing() as each:
            if how == "deleted":
                each.memory.remove("pods", "default/web")
            elif how == "replaced":
                each.memory.remove("pods", "default/web")
                each.memory.pod("web", uid="u9")
            else:
                now = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC).isoformat()
                each.memory.pod("web", uid="u1", deletionTimestamp=now)
                each.memory.before = once(failure(409, "Conflict", "pod web is being deleted"))
            assert (await each.writes.bind(WEB, "n1")).outcome is BindOutcome.GONE
            if how != "deleted":
                assert "nodeName" not in each.stored()["spec"]

    run_virtual(scenario())


@pytest.mark.parametrize("fault", [lost(), failure(500, "InternalError"), failure(504, "Timeout")])
def test_a_binding_whose_answer_was_lost_is_looked_up(fault: ServerAnswer | Exception) -> None:
    async def scenario() -> None:
        async with writing() as each:
            each.memory.after = once(fault)
            assert await each.writes.bind(WEB, "n1") == BindResult(BindOutcome.BOUND, "n1")
            assert each.calls() == [("POST", "pods/web/binding"), ("GET", "pods/web")]

    run_virtual(scenario())


def test_a_lost_binding_that_was_not_executed_is_repeated_for_the_same_node() -> None:
    async def scenario() -> None:
        async with writing() as each:
            each.memory.before = once(lost(), lost())
            assert await each.writes.bind(WEB, "n1") == BindResult(BindOutcome.BOUND, "n1")
            post, get = ("POST", "pods/web/binding"), ("GET", "pods/web")
            assert each.calls() == [post, get, post, get, post]

    run_virtual(scenario())


def test_a_binding_has_no_outcome_while_the_server_does_not_answer() -> None:
    async def scenario() -> None:
        async with writing() as each:
            each.memory.after = once(lost())

            def silent(method: str, path: str) -> Exception | None:
                return lost() if method == "GET" else None

            each.memory.before = silent
            bound = each.writes.bind(WEB, "n1")
            await asyncio.sleep(2 * 3600.0)
            assert not bound.done()
            assert ("POST", "pods/web/binding") not in each.calls()[1:]
            each.memory.before = lambda method, path: None
            await asyncio.sleep(31.0)
            assert bound.result() == BindResult(BindOutcome.BOUND, "n1")

    run_virtual(scenario())


def test_a_server_that_refuses_connections_is_tried_for_two_minutes() -> None:
    async def scenario() -> None:
        async with writing() as each:
            each.memory.before = lambda method, path: refused() if method == "POST" else None
            loop = asyncio.get_running_loop()
            started = loop.time()
            result = await each.writes.bind(WEB, "n1")
            assert result.outcome is BindOutcome.FAILED
            assert result.message == "no answer from the API server: connection refused"
            assert 121 * 0.9 <= loop.time() - started <= 121 * 1.1
            assert each.calls() == [("POST", "pods/web/binding")] * 9

    run_virtual(scenario())


def test_a_refusal_ends_a_binding_at_once() -> None:
    async def scenario() -> None:
        async with writing() as each:
            each.memory.before = once(failure(422, "Invalid", "no such node"))
            result = await each.writes.bind(WEB, "n1")
            assert result == BindResult(BindOutcome.FAILED, "", "422 no such node")

    run_virtual(scenario())


def test_a_server_that_has_not_read_all_rights_yet_is_tried_again() -> None:
    async def scenario() -> None:
        async with writing() as each:
            forbidden = failure(403, "Forbidden", "no rights")
            each.memory.before = once(forbidden, forbidden)
            assert (await each.writes.bind(WEB, "n1")).outcome is BindOutcome.BOUND
            each.memory.before = once(forbidden, forbidden)
            assert (await each.writes.create(PODS, "default", placeholder())).metadata.name == "tg-1"
            new = PodRef("default", "tg-1", each.stored("tg-1")["metadata"]["uid"])
            await asyncio.sleep(1.0)
            each.memory.before = once(forbidden, forbidden, method="PATCH")
            each.writes.set_condition(new, "Unschedulable", "no room")
            await asyncio.sleep(60.0)
            assert each.stored("tg-1")["status"]["conditions"][0]["message"] == "no room"
            each.memory.before = once(forbidden, forbidden, method="PATCH")
            assert await each.writes.set_status(new, {"phase": "Failed"})
            each.memory.before = lambda method, path: forbidden if method == "PATCH" else None
            assert not await each.writes.set_status(new, {"phase": "Failed"})
            each.memory.before = once(forbidden, failure(404, "NotFound"), method="PATCH")
            assert not await each.writes.set_status(new, {"phase": "Failed"})

    run_virtual(scenario())


def test_a_conflict_of_a_pod_without_node_is_tried_again() -> None:
    async def scenario() -> None:
        async with writing() as each:
            each.memory.before = once(failure(409, "Conflict", "the object has been modified"))
            assert (await each.writes.bind(WEB, "n1")).outcome is BindOutcome.BOUND

    run_virtual(scenario())


def test_the_deletion_of_a_pod_ends_its_binding() -> None:
    async def scenario() -> None:
        async with writing() as each:
            each.memory.before = lambda method, path: refused()
            bound = each.writes.bind(WEB, "n1")
            await asyncio.sleep(5.0)
            assert not bound.done()
            each.writes.forget("u1")
            assert (await bound).outcome is BindOutcome.GONE
            each.memory.before = lambda method, path: None
            each.memory.calls.clear()
            await asyncio.sleep(60.0)
            assert each.calls() == []

    run_virtual(scenario())


def test_a_pod_has_one_binding_at_a_time() -> None:
    async def scenario() -> None:
        async with writing() as each:
            first, second = each.writes.bind(WEB, "n1"), each.writes.bind(WEB, "n2")
            assert (await second) is (await first)
            assert (await first).node == "n1"
            third = each.writes.bind(WEB, "n2")
            assert await third == BindResult(BindOutcome.ELSEWHERE, "n1", "409 pod is already assigned to n1")

    run_virtual(scenario())


@pytest.mark.parametrize("seed", range(30))
def test_an_outcome_always_agrees_with_the_server(seed: int) -> None:
    """Bindings to random nodes under random faults; the next binding follows the outcome of the last one."""
    draw = random.Random(seed)

    async def scenario() -> None:
        names = [f"p{number}" for number in range(10)]
        async with writing(pods=names) as each:

            def fault(method: str, path: str) -> ServerAnswer | Exception | None:
                if draw.random() < 0.6:
                    return None
                faults: list[ServerAnswer | Exception] = [lost(), refused()]
                return draw.choice([*faults, failure(500, "InternalError"), failure(503, "Unavailable")])

            each.memory.before = each.memory.after = fault

            async def place(number: int, name: str) -> None:
                pod = PodRef("default", name, f"u{number}")
                while True:
                    node = f"n{draw.randrange(5)}"
                    result = await each.writes.bind(pod, node)
                    stored = each.memory.objects["/api/v1", "pods"].get(f"default/{name}")
                    now = stored["spec"].get("nodeName", "") if stored else None
                    if result.outcome is BindOutcome.FAILED:
                        assert now == ""
                    else:
                        assert (result.outcome is BindOutcome.BOUND) is (now == node)
                        assert result.node == (now or "")
                        return

            await asyncio.gather(*(place(number, name) for number, name in enumerate(names, 1)))

    run_virtual(scenario())
