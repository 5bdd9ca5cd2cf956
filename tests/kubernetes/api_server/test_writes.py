"""The queue of writes, deletions and creations."""

from __future__ import annotations

import asyncio
import gc

import pytest

from tests.kubernetes.api_server.memory_server import failure, lost, refused
from tests.kubernetes.api_server.virtual_time import run_virtual
from tests.kubernetes.api_server.writing_kit import WEB, once, placeholder, writing
from yunikorn_kubernetes.api_server.api_resources import PODS
from yunikorn_kubernetes.api_server.calls import ApiError
from yunikorn_kubernetes.api_server.pod_binding import BindOutcome, PodRef
from yunikorn_kubernetes.api_server.transport import ServerAnswer
from yunikorn_kubernetes.api_server.write_queue import Priority


def test_bindings_go_first_and_writes_are_bounded() -> None:
    async def scenario() -> None:
        names = [f"p{number}" for number in range(40)]
        async with writing(pods=names, workers=4) as each:
            each.memory.delay = 0.1
            refs = [PodRef("default", name, f"u{number}") for number, name in enumerate(names, 1)]
            deleted = [each.writes.delete_pod(ref) for ref in refs[:20]]
            bound = [each.writes.bind(ref, "n1") for ref in refs[20:]]
            await asyncio.gather(*deleted, *bound)
            methods = [method for method, _ in each.calls()]
            # No worker has begun when both are queued.
            assert methods == ["POST"] * 20 + ["DELETE"] * 20
            assert each.memory.most_running == 4

    run_virtual(scenario())


def test_draining_completes_bindings_and_abandons_conditions() -> None:
    async def scenario() -> None:
        names = [f"p{number}" for number in range(20)]
        async with writing(pods=names, workers=2) as each:
            each.memory.delay = 0.1
            refs = [PodRef("default", name, f"u{number}") for number, name in enumerate(names, 1)]
            for ref in refs[10:]:
                each.writes.set_condition(ref, "Unschedulable", "no room")
            bound = [each.writes.bind(ref, "n1") for ref in refs[:10]]
            assert await each.writes.drain(60.0)
            assert {(await future).outcome for future in bound} == {BindOutcome.BOUND}
            assert "PATCH" not in {method for method, _ in each.calls()}
            late = each.writes.bind(refs[10], "n1")
            assert (await late).outcome is BindOutcome.ABANDONED

    run_virtual(scenario())


def test_draining_gives_each_write_one_more_attempt() -> None:
    async def scenario() -> None:
        async with writing(pods=["web", "old"]) as each:
            each.memory.before = lambda method, path: refused()
            bound = each.writes.bind(WEB, "n1")
            deleted = each.writes.delete_pod(PodRef("default", "old", "u2"))
            await asyncio.sleep(20.0)
            assert await each.writes.drain(5.0)
            assert (await bound).outcome is BindOutcome.ABANDONED
            assert not await deleted

    run_virtual(scenario())


def test_draining_ends_in_time_and_leaves_no_future_incomplete() -> None:
    async def scenario() -> None:
        async with writing() as each:
            each.memory.delay = 3600.0
            bound = each.writes.bind(WEB, "n1")
            await asyncio.sleep(0.1)
            assert not await each.writes.drain(5.0)
        assert (await bound).outcome is BindOutcome.ABANDONED

    run_virtual(scenario())


def test_a_process_without_lease_writes_nothing() -> None:
    async def scenario() -> None:
        leads = True
        async with writing(permitted=lambda: leads) as each:
            leads = False
            assert (await each.writes.bind(WEB, "n1")).outcome is BindOutcome.ABANDONED
            assert await each.writes.delete_pod(WEB) is False
            assert each.calls() == []

    run_virtual(scenario())


def test_a_bug_in_a_write_ends_that_write_only(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with writing(workers=1) as each:
            each.memory.before = once(ZeroDivisionError("bug"))
            assert (await each.writes.bind(WEB, "n1")).outcome is BindOutcome.ABANDONED
            assert (await each.writes.bind(WEB, "n1")).outcome is BindOutcome.BOUND

    run_virtual(scenario())
    assert "bug: a write to the API server failed" in caplog.text


def test_a_deletion_is_repeated_until_it_is_done() -> None:
    async def scenario() -> None:
        async with writing() as each:
            each.memory.before = lambda method, path: (
                failure(403, "Forbidden") if method == "DELETE" else None
            )
            deleted = each.writes.delete_pod(WEB)
            await asyncio.sleep(3600.0)
            assert not deleted.done()
            each.memory.before = lambda method, path: None
            assert await deleted
            assert each.memory.objects["/api/v1", "pods"] == {}
            assert await each.writes.delete_pod(WEB)

    run_virtual(scenario())


def test_a_deletion_spares_a_pod_of_another_uid() -> None:
    async def scenario() -> None:
        async with writing() as each:
            assert await each.writes.delete_pod(PodRef("default", "web", "u0"))
            assert each.stored()
            each.memory.before = once(failure(409, "Conflict", "try again"), method="DELETE")
            assert await each.writes.delete_pod(WEB)
            assert each.memory.objects["/api/v1", "pods"] == {}

    run_virtual(scenario())


def test_a_creation_whose_answer_was_lost_is_found_again() -> None:
    async def scenario() -> None:
        async with writing() as each:
            each.memory.after = once(lost())
            made = await each.writes.create(PODS, "default", placeholder())
            assert made.metadata.name == "tg-1"
            with pytest.raises(ApiError, match="AlreadyExists"):
                await each.writes.create(PODS, "default", placeholder())

    run_virtual(scenario())


def test_a_creation_that_is_refused_fails_soon_and_an_outage_after_two_minutes() -> None:
    async def scenario() -> None:
        async with writing() as each:
            each.memory.before = once(*[failure(403, "Forbidden", "exceeded quota")] * 9)
            with pytest.raises(ApiError, match="403 exceeded quota"):
                await each.writes.create(PODS, "default", placeholder())
            each.memory.before = lambda method, path: refused() if method == "POST" else None
            with pytest.raises(ApiError, match="connection refused"):
                await each.writes.create(PODS, "default", placeholder())
            assert len(each.calls()) == 4 + 9
            created = each.writes.create(PODS, "default", placeholder())
            assert each.writes.waiting[Priority.CREATE] == 1
            assert await each.writes.drain(5.0)
            with pytest.raises(ApiError):
                await created

    run_virtual(scenario())


def test_a_creation_that_no_caller_waits_for_any_more_is_no_error_of_the_loop() -> None:
    async def scenario() -> None:
        faults: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
        async with writing() as each:
            each.memory.before = once(ServerAnswer(422, {}, b"{}"))
            creation = asyncio.ensure_future(each.writes.create(PODS, "default", placeholder()))
            await asyncio.sleep(0)
            creation.cancel()
            await asyncio.sleep(1.0)
            assert each.calls() == [("POST", "pods")]
        gc.collect()
        assert not faults

    run_virtual(scenario())
