"""Conditions and states of pods: only the latest, only differences, and never after a binding."""

from __future__ import annotations

import asyncio

import pytest

from tests.kubernetes.api_server.memory_server import Json, failure, lost, refused
from tests.kubernetes.api_server.virtual_time import run_virtual
from tests.kubernetes.api_server.writing_kit import WEB, once, writing
from yunikorn_kubernetes.api_server.pod_binding import BindOutcome, PodRef


def test_a_condition_is_a_patch_of_the_version_that_was_seen() -> None:
    async def scenario() -> None:
        async with writing() as each:
            each.writes.set_condition(WEB, "Unschedulable", "no room in root.shop")
            await asyncio.sleep(1.0)
            assert each.calls() == [("PATCH", "pods/web/status")]
            assert each.memory.bodies[-1] == {
                "metadata": {"uid": "u1", "resourceVersion": "101"},
                "status": {
                    "conditions": [
                        {
                            "type": "PodScheduled",
                            "status": "False",
                            "reason": "Unschedulable",
                            "message": "no room in root.shop",
                            "lastTransitionTime": "2023-11-14T22:13:20Z",
                        }
                    ]
                },
            }

    run_virtual(scenario())


def test_only_the_latest_condition_is_written_and_none_twice() -> None:
    async def scenario() -> None:
        async with writing() as each:
            for number in range(100):
                each.writes.set_condition(WEB, "Unschedulable", f"message {number}")
            await asyncio.sleep(1.0)
            assert each.calls() == [("PATCH", "pods/web/status")]
            assert each.stored()["status"]["conditions"][0]["message"] == "message 99"
            each.writes.set_condition(WEB, "Unschedulable", "message 99")
            await asyncio.sleep(60.0)
            assert each.calls() == []

    run_virtual(scenario())


def test_a_condition_that_the_pod_has_is_not_written_after_a_restart() -> None:
    async def scenario() -> None:
        async with writing() as each:
            condition = {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": "no room",
            }
            each.memory.put(
                "pods",
                {
                    "metadata": {"name": "web", "namespace": "default"},
                    "spec": {},
                    "status": {"conditions": [condition]},
                },
            )
            await asyncio.sleep(0.1)
            each.writes.set_condition(WEB, "Unschedulable", "no room")
            await asyncio.sleep(60.0)
            assert each.calls() == []
            each.writes.set_condition(WEB, "SchedulingSkipped", "over quota")
            await asyncio.sleep(60.0)
            assert "lastTransitionTime" not in each.memory.bodies[-1]["status"]["conditions"][0]

    run_virtual(scenario())


def test_messages_of_the_same_reason_have_a_distance() -> None:
    async def scenario() -> None:
        async with writing() as each:
            for number in range(60):
                each.writes.set_condition(WEB, "Unschedulable", f"{number} nodes lack room")
                await asyncio.sleep(1.0)
            assert len(each.calls()) in (4, 5)
            each.writes.set_condition(WEB, "SchedulingSkipped", "over quota")
            await asyncio.sleep(60.0)
            assert each.stored()["status"]["conditions"][0]["reason"] == "SchedulingSkipped"

    run_virtual(scenario())


def test_a_condition_never_follows_a_binding() -> None:
    async def scenario() -> None:
        async with writing() as each:
            each.writes.set_condition(WEB, "Unschedulable", "no room")
            bound = each.writes.bind(WEB, "n1")
            each.writes.set_condition(WEB, "Unschedulable", "still no room")
            assert (await bound).outcome is BindOutcome.BOUND
            await asyncio.sleep(60.0)
            assert each.calls() == [("POST", "pods/web/binding")]

    run_virtual(scenario())


def test_a_condition_of_an_outdated_version_is_refused_and_written_for_the_latest() -> None:
    async def scenario() -> None:
        async with writing() as each:
            each.memory.put(
                "pods", {"metadata": {"name": "web", "namespace": "default"}, "spec": {}}, silent=True
            )
            each.writes.set_condition(WEB, "Unschedulable", "no room")
            await asyncio.sleep(5.0)
            assert "status" not in each.stored()
            each.memory.break_streams(lost())
            await asyncio.sleep(60.0)
            assert each.stored()["status"]["conditions"][0]["message"] == "no room"

    run_virtual(scenario())


@pytest.mark.parametrize("how", ["bound", "deleted", "finished", "forgotten", "refused"])
def test_conditions_of_pods_that_wait_no_more_are_dropped(how: str) -> None:
    async def scenario() -> None:
        async with writing() as each:
            each.memory.before = lambda method, path: refused() if method == "PATCH" else None
            each.writes.set_condition(WEB, "Unschedulable", "no room")
            await asyncio.sleep(5.0)
            if how == "bound":
                each.memory.pod("web", node="n1")
            elif how == "deleted":
                each.memory.remove("pods", "default/web")
            elif how == "finished":
                pod: Json = {
                    "metadata": {"name": "web", "namespace": "default"},
                    "status": {"phase": "Failed"},
                }
                each.memory.put("pods", pod)
            elif how == "forgotten":
                each.writes.forget("u1")
            each.memory.before = once(failure(422, "Invalid"), method="PATCH") if how == "refused" else once()
            await asyncio.sleep(60.0)
            each.calls()
            await asyncio.sleep(600.0)
            assert each.calls() == []
            assert not any(each.writes.waiting.values())

    run_virtual(scenario())


def test_a_status_is_merged_even_if_the_first_attempts_fail() -> None:
    async def scenario() -> None:
        async with writing() as each:
            each.memory.before = once(refused(), failure(500, "InternalError"), method="PATCH")
            status = {"phase": "Failed", "reason": "ApplicationRejected", "message": "no queue"}
            assert await each.writes.set_status(WEB, status)
            assert each.stored()["status"]["phase"] == "Failed"
            assert not await each.writes.set_status(PodRef("default", "web", "u2"), status)
            assert not await each.writes.set_status(PodRef("default", "none", "u2"), status)

    run_virtual(scenario())
