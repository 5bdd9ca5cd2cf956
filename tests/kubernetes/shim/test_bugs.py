"""Exceptions that no part of the shim raises on purpose: the work is repeated, or given up like a failure."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.kubernetes.shim.fake_cluster import FakeCluster
from yunikorn_kubernetes.objects import Pod
from yunikorn_kubernetes.shim.translator import Translator


def run(test: Callable[[FakeCluster], Coroutine[Any, Any, None]]) -> None:
    """Run a test in an event loop."""

    async def main() -> None:
        cluster = FakeCluster()
        cluster.add_node("n1", cpu="1")
        await cluster.start()
        try:
            await test(cluster)
        finally:
            await cluster.kill()

    asyncio.run(main())


@pytest.mark.parametrize("call", ["assume", "bind volumes", "bind"])
def test_a_bug_in_a_binding_gives_the_room_back_and_the_pod_is_tried_again(
    call: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.failing[call] = [KeyError("volume")]
        cluster.add_pod("p1")
        await cluster.settle()
        assert cluster.placed() == {}
        assert cluster.used() == {}
        cluster.add_pod("p2", app="other")
        await cluster.settle()
        assert cluster.placed() == {"p2": "n1"}
        cluster.finish(cluster.pod("p2"))
        await cluster.settle()
        await cluster.advance(600)
        assert cluster.placed()["p1"] == "n1"
        note = next(note for of, _, note in cluster.events if of == "p1" and "bug" in note)
        assert "bug of the scheduler, see its log: KeyError: 'volume'" in note

    run(test)
    assert "bug: " in caplog.text
    assert "Traceback" in caplog.text


def test_a_pod_that_was_bound_before_a_bug_keeps_its_room() -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.failing["bind answer"] = [KeyError("answer")]
        cluster.add_pod("p1")
        await cluster.settle()
        cluster.add_pod("p2")
        await cluster.settle()
        await cluster.advance(600)
        assert cluster.placed() == {"p1": "n1"}
        assert cluster.used() == {"vcore": 1000, "pods": 1}

    run(test)


def test_a_bug_in_the_status_of_a_failed_pod_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    async def test(cluster: FakeCluster) -> None:
        cluster.failing["patch"] = [KeyError("status"), KeyError("status")]
        cluster.add_pod("p1", queue="root")
        await cluster.settle()
        assert cluster.pod("p1").status.phase == "Failed"

    run(test)
    assert "cannot be set to Failed, next attempt in 5 s: bug: KeyError: 'status'" in caplog.text


def test_a_pod_that_cannot_be_handled_does_not_stop_a_recovery(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(cluster: FakeCluster) -> None:
        read = Translator.tags

        def tags(translator: Translator, pod: Pod) -> dict[str, str]:
            if pod.metadata.name == "p1":
                raise KeyError("tag")
            return read(translator, pod)

        cluster.add_pod("p1", cpu="9")
        cluster.add_pod("p2", app="other")
        await cluster.settle()
        monkeypatch.setattr(Translator, "tags", tags)
        await cluster.restart()
        assert cluster.used() == {"vcore": 1000, "pods": 1}

    run(test)
    assert "bug: pod default/p1 was not handled" in caplog.text
