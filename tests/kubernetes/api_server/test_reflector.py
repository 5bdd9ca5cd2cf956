"""Reflector: a store that agrees with the server, whatever happens to connections, servers and versions."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import random
from collections.abc import Callable

import pytest

from tests.kubernetes.api_server.memory_server import Fault, MemoryServer, answer, failure, lost, refused
from tests.kubernetes.api_server.virtual_time import run_virtual
from yunikorn_kubernetes.api_server.api_resources import PODS, key_of
from yunikorn_kubernetes.api_server.back_off import seeded
from yunikorn_kubernetes.api_server.calls import ApiServer
from yunikorn_kubernetes.api_server.reflector import ChangeKind, ObjectChange, Reflector
from yunikorn_kubernetes.api_server.transport import ServerAnswer
from yunikorn_kubernetes.objects import Pod


class Watched:
    """Reflector of the pods of a server in memory, and what it reported."""

    def __init__(
        self, memory: MemoryServer, handler: Callable[[ObjectChange[Pod]], None] | None = None
    ) -> None:
        self.memory = memory
        self.recording = handler is None
        self.seen: list[tuple[str, str, str]] = []
        self.reflector = Reflector(ApiServer(memory), PODS, handler or self.record, random=seeded(1))
        self._task = asyncio.create_task(self.reflector.run())

    def record(self, change: ObjectChange[Pod]) -> None:
        """Record a change, and check that it follows from the changes before."""
        meta = change.object.metadata
        stored = self.reflector.store.get(key_of(meta))
        if change.kind is ChangeKind.ADDED:
            assert change.previous is None
        else:
            assert change.previous is not None
            assert change.previous.metadata.uid == meta.uid
        assert (stored is change.object) is (change.kind is not ChangeKind.DELETED)
        self.seen.append((change.kind.value, meta.name, meta.uid))

    def news(self) -> list[tuple[str, str]]:
        """Return the kinds and names of the changes since the last call."""
        news = [(kind, name) for kind, name, _ in self.seen]
        self.seen.clear()
        return news

    def lists(self) -> int:
        """Return the number of lists."""
        return sum(method == "GET" for method, _ in self.memory.calls)

    async def stop(self) -> None:
        """Cancel the reflector; its handler must not have failed."""
        if self.recording:
            assert self.reflector.handler_failures == 0
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


async def watched(
    memory: MemoryServer, handler: Callable[[ObjectChange[Pod]], None] | None = None
) -> Watched:
    """Return a reflector after its first list."""
    made = Watched(memory, handler)
    await made.reflector.synced.wait()
    await asyncio.sleep(0.1)
    return made


def test_a_write_is_in_the_store_before_the_watch_tells_of_it() -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        server = ApiServer(memory)
        memory.pod("a")
        each = await watched(memory)
        each.news()
        for name in ("a", "a", "b"):
            memory.put("pods", {"metadata": {"name": name, "namespace": "default"}}, silent=True)
            each.reflector.written(await server.get(PODS, "default", name))
        assert each.news() == [("MODIFIED", "a"), ("MODIFIED", "a"), ("ADDED", "b")]
        # The watch tells of all versions, which are known, and then of later ones.
        for _, kind, body in memory.history["/api/v1", "pods"][1:]:
            memory.send("pods", kind, body)
        await asyncio.sleep(0.1)
        assert each.news() == []
        late = await server.get(PODS, "default", "b")
        memory.remove("pods", "default/b")
        await asyncio.sleep(0.1)
        each.reflector.written(late)
        assert each.news() == [("DELETED", "b")]
        await each.stop()

    run_virtual(scenario())


def test_the_store_begins_with_a_list_and_follows_the_watch() -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        memory.pod("a")
        each = await watched(memory)
        assert memory.calls[0] == ("GET", "/api/v1/pods?resourceVersion=0")
        assert memory.calls[1][1].startswith(
            "/api/v1/pods?watch=1&allowWatchBookmarks=true&resourceVersion=101&timeoutSeconds="
        )
        memory.pod("b")
        memory.pod("a", labels={"x": "y"})
        memory.remove("pods", "default/b")
        await asyncio.sleep(0.1)
        assert each.news() == [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]
        assert list(each.reflector.store) == ["default/a"]
        await each.stop()

    run_virtual(scenario())


def test_a_watch_that_ends_continues_from_the_last_version_and_bookmarks_advance_it() -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        each = await watched(memory)
        memory.version = 900
        memory.bookmark("pods")
        await asyncio.sleep(1.0)
        memory.break_streams()
        await asyncio.sleep(0.1)
        assert "resourceVersion=900" in memory.calls[-1][1]
        memory.pod("a")
        await asyncio.sleep(0.1)
        assert each.news() == [("ADDED", "a")]
        assert each.lists() == 1
        await each.stop()

    run_virtual(scenario())


def test_the_length_of_watches_varies() -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        each = await watched(memory)
        for _ in range(20):
            await asyncio.sleep(2.0)
            memory.break_streams()
        await each.stop()
        lengths = {int(path.rpartition("=")[2]) for method, path in memory.calls if method == "WATCH"}
        assert len(lengths) > 10
        assert min(lengths) >= 300
        assert max(lengths) <= 600

    run_virtual(scenario())


def as_event(memory: MemoryServer) -> None:
    """Let the watch begin, and then report the expiry as an event."""
    memory.compact()


def as_answer(memory: MemoryServer) -> None:
    """Refuse the watch with the status."""
    memory.before = lambda method, path: failure(410, "Expired") if method == "WATCH" else None


@pytest.mark.parametrize("expire", [as_event, as_answer])
def test_an_expired_version_is_a_new_list_whose_difference_is_reported(
    expire: Callable[[MemoryServer], None],
) -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        for name in ("kept", "changed", "gone", "replaced"):
            memory.pod(name)
        each = await watched(memory)
        each.news()
        memory.streams.clear()
        stream = memory.streams
        memory.remove("pods", "default/gone", silent=True)
        memory.remove("pods", "default/replaced", silent=True)
        for name in ("changed", "replaced", "new"):
            memory.put("pods", {"metadata": {"name": name, "namespace": "default"}}, silent=True)
        expire(memory)
        assert stream is memory.streams
        # The open watch is replaced by one that begins before the oldest version.
        await each.stop()
        each._task = asyncio.create_task(each.reflector.run())
        await asyncio.sleep(3.0)
        memory.before = lambda method, path: None
        await asyncio.sleep(3.0)
        assert sorted(each.news()) == sorted(
            [
                ("DELETED", "gone"),
                ("DELETED", "replaced"),
                ("ADDED", "new"),
                ("ADDED", "replaced"),
                ("MODIFIED", "changed"),
            ]
        )
        assert sorted(each.reflector.store) == [
            f"default/{name}" for name in ("changed", "kept", "new", "replaced")
        ]
        assert ("GET", "/api/v1/pods") in memory.calls
        await each.stop()

    run_virtual(scenario())


def test_an_outage_of_hours_is_survived_with_pauses_of_half_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "yunikorn.kubernetes")

    async def scenario() -> None:
        memory = MemoryServer()
        memory.pod("a")
        memory.pod("b")
        each = await watched(memory)
        each.news()
        memory.before = lambda method, path: refused()
        memory.break_streams(lost())
        memory.calls.clear()
        await asyncio.sleep(3 * 3600.0)
        assert each.reflector.failure is not None
        attempts = len(memory.calls)
        assert 3 * 3600 / 30 <= attempts <= 3 * 3600 / 15 + 8
        memory.remove("pods", "default/a", silent=True)
        memory.before = lambda method, path: None
        await asyncio.sleep(31.0)
        assert each.reflector.failure is None
        assert each.news() == [("DELETED", "a")]
        await each.stop()

    run_virtual(scenario())
    messages = [record.getMessage() for record in caplog.records]
    assert messages[0] == "pods cannot be read: no answer from the API server: connection reset"
    assert messages[-1].startswith("pods can be read again, after 108")
    assert len(messages) == 2 + 3 * 6 - 1 or len(messages) == 2 + 3 * 6


def test_pauses_grow_from_a_second_and_begin_again_after_a_healthy_time() -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        each = await watched(memory)
        loop = asyncio.get_running_loop()
        times: list[float] = []

        def fault(method: str, path: str) -> Exception:
            times.append(loop.time())
            return refused()

        for _ in range(2):
            times.clear()
            memory.before = fault
            memory.break_streams(lost())
            times.append(loop.time())
            await asyncio.sleep(100.0)
            pauses = [later - earlier for earlier, later in itertools.pairwise(times)]
            for pause, first in zip(pauses, [0.8, 1.6, 3.2, 6.4, 12.8, 15.0], strict=False):
                assert first - 0.001 <= pause <= 2 * first + 0.001
            memory.before = lambda method, path: None
            await asyncio.sleep(200.0)
        await each.stop()

    run_virtual(scenario())


def test_pauses_do_not_grow_while_watches_report_changes_before_they_break() -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        each = await watched(memory)
        for number in range(20):
            memory.pod(f"p{number}")
            await asyncio.sleep(0.1)
            memory.break_streams(lost())
            await asyncio.sleep(1.7)
            assert len(each.reflector.store) == number + 1
            assert each.reflector.failure is None
        await each.stop()

    run_virtual(scenario())


def test_a_server_that_ends_each_watch_at_once_is_not_called_in_a_tight_loop() -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        memory.before = lambda method, path: ServerAnswer(200, {}, b"") if method == "WATCH" else None
        each = await watched(memory)
        await asyncio.sleep(300.0)
        assert len(memory.calls) < 30
        await each.stop()

    run_virtual(scenario())


def test_a_server_that_always_answers_410_is_not_listed_in_a_tight_loop() -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        memory.before = lambda method, path: failure(410, "Expired") if method == "WATCH" else None
        each = await watched(memory)
        await asyncio.sleep(300.0)
        assert each.lists() < 30
        await each.stop()

    run_virtual(scenario())


def test_a_server_that_forbids_everything_for_a_while_is_not_asked_for_a_list() -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        each = await watched(memory)
        memory.before = lambda method, path: failure(403, "Forbidden", "no rights are known")
        memory.break_streams(lost())
        memory.calls.clear()
        memory.pod("a")
        await asyncio.sleep(5.0)
        memory.before = lambda method, path: None
        await asyncio.sleep(10.0)
        assert each.news() == [("ADDED", "a")]
        assert {method for method, _ in memory.calls} == {"WATCH"}
        await each.stop()

    run_virtual(scenario())


def test_an_overloaded_server_is_asked_after_its_pause_and_not_for_a_list() -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        each = await watched(memory)
        memory.before = lambda method, path: failure(429, "TooManyRequests", retry_after="40")
        memory.break_streams(lost())
        memory.calls.clear()
        await asyncio.sleep(201.0)
        assert 4 <= len(memory.calls) <= 6
        assert {method for method, _ in memory.calls} == {"WATCH"}
        await each.stop()

    run_virtual(scenario())


def event(memory: MemoryServer, kind: str, name: str, uid: str, version: int) -> None:
    """Send an event whatever the state of the server is."""
    meta = {"name": name, "namespace": "default", "uid": uid, "resourceVersion": str(version)}
    memory.send("pods", kind, {"metadata": meta})


@pytest.mark.parametrize("status", [500, 502, 504])
def test_a_server_in_trouble_is_not_asked_for_a_list_at_once(status: int) -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        each = await watched(memory)
        memory.calls.clear()
        for name in "abc":
            memory.before = lambda method, path: failure(status, "Timeout", "etcd is slow")
            memory.break_streams(lost())
            await asyncio.sleep(1.5)
            memory.before = lambda method, path: None
            memory.pod(name)
            await asyncio.sleep(60.0)
            assert each.news() == [("ADDED", name)]
        assert {method for method, _ in memory.calls} == {"WATCH"}
        # The server may have lost what it reported, and not say so.
        memory.before = lambda method, path: (
            failure(status, "Timeout", "too large version") if method == "WATCH" else None
        )
        memory.break_streams(lost())
        await asyncio.sleep(60.0)
        assert each.lists() >= 1
        await each.stop()

    run_virtual(scenario())


def test_duplicate_and_late_events_change_nothing() -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        each = await watched(memory)
        event(memory, "ADDED", "a", "u1", 205)
        event(memory, "ADDED", "a", "u1", 205)
        event(memory, "MODIFIED", "a", "u1", 204)
        event(memory, "ADDED", "a", "u0", 203)
        event(memory, "DELETED", "a", "u0", 204)
        await asyncio.sleep(0.1)
        assert each.seen == [("ADDED", "a", "u1")]
        event(memory, "DELETED", "a", "u1", 206)
        event(memory, "DELETED", "a", "u1", 206)
        event(memory, "MODIFIED", "a", "u1", 205)
        event(memory, "DELETED", "b", "u2", 209)
        event(memory, "ADDED", "b", "u2", 208)
        await asyncio.sleep(0.1)
        assert each.seen == [("ADDED", "a", "u1"), ("DELETED", "a", "u1")]
        assert each.reflector.store == {}
        await each.stop()

    run_virtual(scenario())


def test_an_object_that_replaces_another_is_a_deletion_and_an_addition() -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        each = await watched(memory)
        event(memory, "ADDED", "a", "u1", 205)
        event(memory, "ADDED", "a", "u2", 207)
        event(memory, "DELETED", "a", "u1", 206)
        await asyncio.sleep(0.1)
        assert each.seen == [("ADDED", "a", "u1"), ("DELETED", "a", "u1"), ("ADDED", "a", "u2")]
        await each.stop()

    run_virtual(scenario())


def test_an_exception_of_the_handler_concerns_one_change(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[str] = []

    def handler(change: ObjectChange[Pod]) -> None:
        if change.object.metadata.name == "b":
            raise KeyError("no such queue")
        seen.append(change.object.metadata.name)

    async def scenario() -> None:
        memory = MemoryServer()
        memory.pod("a")
        memory.pod("b")
        memory.pod("c")
        each = await watched(memory, handler)
        memory.pod("b", labels={"x": "y"})
        memory.pod("d")
        await asyncio.sleep(0.1)
        assert seen == ["a", "c", "d"]
        assert each.reflector.handler_failures == 2
        assert each.lists() == 1
        await each.stop()

    run_virtual(scenario())
    assert "bug: MODIFIED of Pod default/b was not handled" in caplog.text


def test_an_object_that_becomes_unreadable_is_kept_as_it_was(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        memory.pod("a", node="n1")
        each = await watched(memory)
        memory.put("pods", {"metadata": {"name": "a", "namespace": "default"}, "spec": {"priority": "high"}})
        memory.pod("b")
        await asyncio.sleep(0.1)
        memory.compact()
        memory.before = lambda method, path: failure(410, "Expired") if method == "WATCH" else None
        memory.break_streams(lost())
        await asyncio.sleep(10.0)
        assert each.reflector.store["default/a"].spec.node_name == "n1"
        assert each.news() == [("ADDED", "a"), ("ADDED", "b")]
        await each.stop()

    run_virtual(scenario())
    assert "an event of Pod default/a is left out" in caplog.text


def test_half_a_line_at_the_end_of_a_watch_is_read_again() -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        each = await watched(memory)
        body = memory.put("pods", {"metadata": {"name": "a", "namespace": "default"}}, silent=True)
        line = json.dumps({"type": "ADDED", "object": body}).encode()
        stream = memory.streams[0][1]
        stream.put(line[: len(line) // 2])
        await asyncio.sleep(2.0)
        memory.break_streams(lost())
        await asyncio.sleep(2.0)
        assert each.news() == [("ADDED", "a")]
        await each.stop()

    run_virtual(scenario())


def test_a_server_that_was_restored_from_a_backup_is_listed_again() -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        memory.pod("old")
        each = await watched(memory)
        memory.version = 5000
        memory.pod("lost")
        memory.remove("pods", "default/old")
        await asyncio.sleep(0.1)
        each.news()
        memory.version = memory.oldest = 200
        memory.history.clear()
        memory.objects.clear()
        memory.put(
            "pods", {"metadata": {"name": "old", "namespace": "default", "uid": "uid-101"}}, silent=True
        )
        memory.bookmark("pods")
        memory.bookmark("pods")
        await asyncio.sleep(10.0)
        assert each.news() == [("DELETED", "lost"), ("ADDED", "old")]
        memory.pod("old", labels={"x": "y"})
        await asyncio.sleep(0.1)
        assert each.news() == [("MODIFIED", "old")]
        await each.stop()

    run_virtual(scenario())


def test_a_bug_of_ours_does_not_end_the_watch(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        each = await watched(memory)
        each.reflector.store = None  # type: ignore[assignment]
        memory.pod("a")
        await asyncio.sleep(0.1)
        each.reflector.store = {}
        await asyncio.sleep(10.0)
        assert each.news() == [("ADDED", "a")]
        await each.stop()

    run_virtual(scenario())
    assert "bug: the watch of pods ended; it begins again" in caplog.text


def test_large_lists_leave_time_for_other_tasks() -> None:
    async def scenario() -> None:
        memory = MemoryServer()
        items = [{"metadata": {"name": f"p{n}", "uid": f"u{n}", "resourceVersion": "5"}} for n in range(2000)]
        body = {"metadata": {"resourceVersion": "9"}, "items": items}
        memory.before = lambda method, path: answer(200, body) if method == "GET" else None
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        each = Watched(memory)
        await each.reflector.synced.wait()
        assert len(each.reflector.store) == 2000
        assert turns > 20
        task.cancel()
        await each.stop()

    run_virtual(scenario())


def sometimes(draw: random.Random, fault: Callable[[], ServerAnswer | Exception]) -> Fault:
    """Return a fault of every second call."""
    return lambda method, path: fault() if draw.random() < 0.5 else None


@pytest.mark.parametrize("seed", range(20))
def test_the_store_agrees_with_the_server_after_random_faults(seed: int) -> None:
    draw = random.Random(seed)

    async def scenario() -> None:
        memory = MemoryServer()
        each = Watched(memory)
        faults: list[Callable[[], ServerAnswer | Exception]] = [
            refused,
            lost,
            lambda: failure(500, "InternalError"),
            lambda: failure(410, "Expired"),
        ]
        for _ in range(120):
            action = draw.random()
            name = f"p{draw.randrange(8)}"
            if action < 0.4:
                memory.pod(name, labels={"n": str(draw.random())})
            elif action < 0.6 and f"default/{name}" in memory.objects.get(("/api/v1", "pods"), {}):
                memory.remove("pods", f"default/{name}")
            elif action < 0.7:
                memory.break_streams(draw.choice([None, lost()]))
            elif action < 0.75:
                memory.compact()
                memory.break_streams(lost())
            elif action < 0.85:
                memory.before = sometimes(draw, draw.choice(faults))
            elif action < 0.95:
                memory.before = lambda method, path: None
            await asyncio.sleep(draw.choice([0.0, 0.0, 0.5, 20.0]))
        memory.before = lambda method, path: None
        await asyncio.sleep(100.0)
        stored = memory.objects.get(("/api/v1", "pods"), {})
        assert {
            key: (pod.metadata.uid, pod.metadata.resource_version)
            for key, pod in each.reflector.store.items()
        } == {
            key: (pod["metadata"]["uid"], pod["metadata"]["resourceVersion"]) for key, pod in stored.items()
        }
        living: set[str] = set()
        for kind, _, uid in each.seen:
            assert (uid in living) is (kind != "ADDED")
            (living.discard if kind == "DELETED" else living.add)(uid)
        await each.stop()

    run_virtual(scenario())
