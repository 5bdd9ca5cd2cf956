"""Readings of the core in slices between decisions."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from collections.abc import Generator, Iterator
from concurrent.futures import Future

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request

from tests.core.kit import RM
from tests.service.kit import CONFIG, PATIENCE, CollectingCallback, work
from tests.whole_readings import read_at_once
from yunikorn.clock import SystemClock, stopwatch
from yunikorn.errors import UsageError
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import NodeAction, RegisterResourceManagerRequest
from yunikorn.interface.scheduler import Scheduler
from yunikorn_rest import shapes
from yunikorn_rest.answers import RequestRefused
from yunikorn_rest.encoding import MOST, AnswerLists
from yunikorn_rest.endpoints import Call, RestContext
from yunikorn_rest.lists import Page
from yunikorn_rest.lookup import find_partition
from yunikorn_rest.node_reader import read_node
from yunikorn_rest.routes.partition_routes import read_partitions
from yunikorn_service.async_scheduler import AsyncScheduler
from yunikorn_service.runtime.sliced_reads import STALLED, Reading, SlicedReads, Slices
from yunikorn_service.runtime.threaded import CoreStopped, ThreadedScheduler


def counting(steps: int) -> Iterator[int]:
    """Return a stopwatch that advances by `steps` per reading of the watch."""
    return itertools.count(0, steps)


def numbers(count: int, log: list[str], name: str = "") -> Generator[None, None, int]:
    """Take `count` steps and return their number."""
    for number in range(count):
        log.append(f"{name}{number}")
        yield
    return count


def reading(count: int, log: list[str], name: str = "") -> Reading[int]:
    """Return a reading that takes `count` steps."""
    return lambda _: numbers(count, log, name)


def test_a_slice_ends_when_its_time_is_over() -> None:
    watch = counting(1)
    reads = SlicedReads(lambda: next(watch), slice_ns=8)
    log: list[str] = []
    done: Future[int] = Future()
    reads.start(RM().scheduler, reading(1000, log), done)
    reads.advance()
    assert 3 <= len(log) <= 8
    while reads:
        reads.advance()
    assert done.result(0) == len(log) == 1000


def test_a_slice_makes_at_least_one_step() -> None:
    watch = counting(1_000_000)
    reads = SlicedReads(lambda: next(watch), slice_ns=1)
    log: list[str] = []
    done: Future[int] = Future()
    reads.start(RM().scheduler, reading(3, log), done)
    for expected in (1, 2, 3):
        reads.advance()
        assert len(log) == expected


def test_readings_take_turns() -> None:
    watch = counting(1)
    reads = SlicedReads(lambda: next(watch), slice_ns=30)
    log: list[str] = []
    scheduler = RM().scheduler
    for name in "ab":
        reads.start(scheduler, reading(100, log, name), Future())
    reads.advance()
    assert {entry[0] for entry in log} == {"a", "b"}


def test_a_cancelled_reading_is_dropped() -> None:
    reads = SlicedReads(lambda: 0, slice_ns=1)
    done: Future[int] = Future()
    log: list[str] = []
    reads.start(RM().scheduler, reading(3, log), done)
    done.cancel()
    reads.advance()
    assert not reads
    assert log == []


def test_an_error_of_a_reading_is_the_callers(registry: Registry) -> None:
    def broken(_: Scheduler) -> Generator[None, None, int]:
        yield
        raise RequestRefused(404, "there is none")

    with ThreadedScheduler(lambda clock: Scheduler(registry, clock), SystemClock()) as core:
        with pytest.raises(RequestRefused):
            core.read(broken).result(PATIENCE)
        assert core.failure is None
        assert core.read(lambda _: numbers(3, [])).result(PATIENCE) == 3


def test_a_stopped_core_ends_readings(registry: Registry) -> None:
    started = threading.Event()

    def endless(_: Scheduler) -> Generator[None, None, None]:
        while True:
            started.set()
            yield

    core = ThreadedScheduler(lambda clock: Scheduler(registry, clock), SystemClock())
    core.start()
    done = core.read(endless)
    assert started.wait(PATIENCE)
    assert core.halt(PATIENCE)
    with pytest.raises(CoreStopped):
        done.result(PATIENCE)
    with pytest.raises(CoreStopped):
        core.read(endless)


def test_decisions_continue_during_a_reading(registry: Registry) -> None:
    """A reading that never ends on its own delays no decision."""
    callback = CollectingCallback()
    over = threading.Event()

    def long(_: Scheduler) -> Generator[None, None, str]:
        while not over.is_set():
            yield
        return "done"

    with ThreadedScheduler(lambda clock: Scheduler(registry, clock), SystemClock()) as core:
        core.register_resource_manager(RegisterResourceManagerRequest("rm", config=CONFIG), callback)
        done = core.read(long)
        core.update(work(5))
        assert len(callback.allocations(5)) == 5
        assert not done.done()
        over.set()
        assert done.result(PATIENCE) == "done"


def test_a_stalled_reading_lets_others_and_the_core_go_on() -> None:
    reads = SlicedReads(lambda: 0, slice_ns=1)
    go_on: list[bool] = []

    def stalled(_: Scheduler) -> Slices[str]:
        while not go_on:
            yield STALLED
        return "done"

    first: Future[str] = Future()
    second: Future[int] = Future()
    scheduler = RM().scheduler
    reads.start(scheduler, stalled, first)
    assert reads.can_advance
    reads.start(scheduler, reading(100, []), second)
    reads.advance()
    assert second.result(0) == 100
    assert reads
    assert not reads.can_advance
    go_on.append(True)
    reads.advance()
    assert first.result(0) == "done"
    assert not reads


def test_a_reading_at_once_cannot_wait_for_a_receiver() -> None:
    def stalled(_: Scheduler) -> Slices[None]:
        yield STALLED

    with pytest.raises(UsageError, match="the reading waits for a receiver"):
        read_at_once(RM().scheduler, stalled)


def test_parts_are_encoded_while_the_reading_continues(registry: Registry) -> None:
    most = 0

    def reading(_: Scheduler, gathering: AnswerLists) -> Slices[str]:
        nonlocal most
        for number in range(1000):
            yield from gathering.put(shapes.Bucket(bucket_name=str(number)), f"list {number % 2}")
            most = max(most, gathering.waiting)
        return "result"

    async def gather() -> None:
        core = AsyncScheduler(ThreadedScheduler(lambda clock: Scheduler(registry, clock), SystemClock()))
        async with core:
            site = RestContext(core, registry, stopwatch)
            result, gathering = await Call(site, Request({"type": "http"})).gather(reading)
        assert result == "result"
        for number in range(2):
            found = gathering.list(f"list {number}")
            entries = json.loads(b"".join(found.writer.pieces))
            assert [entry["bucketName"] for entry in entries] == [
                str(other) for other in range(number, 1000, 2)
            ]
            assert len(found) == 500
        assert b"".join(gathering.list("none").writer.pieces) == b"[]"

    asyncio.run(gather())
    assert 0 < most <= MOST


def test_an_abandoned_answer_ends_its_reading(registry: Registry) -> None:
    def reading(_: Scheduler, gathering: AnswerLists) -> Slices[str]:
        while True:
            yield from gathering.put(shapes.Bucket())

    async def abandon() -> None:
        core = AsyncScheduler(ThreadedScheduler(lambda clock: Scheduler(registry, clock), SystemClock()))
        async with core:
            call = Call(RestContext(core, registry, stopwatch), Request({"type": "http"}))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(call.gather(reading), 0.05)
            await core.read(lambda _: numbers(3, []))

    asyncio.run(abandon())


def read_nodes(scheduler: Scheduler) -> Generator[None, None, list[shapes.Node]]:
    """Read all nodes as the route does."""
    at = find_partition(scheduler, "default")[1]
    known = at.partition.nodes
    chosen, _ = yield from Page().select(list(known.values()), lambda node: node.id, lambda _: True)
    found = []
    for node in chosen:
        if known.get(node.id) is node:
            found.append((yield from read_node(node, at.policies.topology)))
        yield
    return found


ACTIONS = st.sampled_from(("step", "ask", "schedule", "release", "add", "remove", "occupy"))


@given(st.lists(st.tuples(ACTIONS, st.integers(0, 7)), max_size=60))
def test_each_node_is_consistent_while_decisions_are_made(actions: list[tuple[str, int]]) -> None:
    rm = RM()
    for number in range(6):
        rm.node(f"n{number}", vcore=4)
    rm.app()
    rm.ask("app", "first", 8, vcore=1)
    rm.schedule()
    lasting = set(rm.at_work().partition.nodes)
    before = set(lasting)
    slices = read_nodes(rm.scheduler)
    next(slices)
    found: list[shapes.Node] | None = None
    for turn, (action, number) in enumerate(actions):
        nodes = rm.at_work().partition.nodes
        if action == "ask":
            rm.ask("app", f"ask{turn}", 1 + number, vcore=1)
        elif action == "schedule":
            rm.schedule(number)
        elif action == "release" and rm.running:
            rm.release("app", sorted(rm.running)[number % len(rm.running)])
        elif action == "add":
            rm.node(f"new{turn}", vcore=4)
        elif action == "remove" and f"n{number}" in nodes:
            rm.change_node(f"n{number}", NodeAction.DECOMMISSION)
            lasting.discard(f"n{number}")
        elif action == "occupy" and f"n{number}" in nodes:
            rm.change_node(f"n{number}", occupied={"vcore": number % 3})
        elif action == "step" and found is None:
            try:
                next(slices)
            except StopIteration as end:
                found = end.value
    while found is None:
        try:
            next(slices)
        except StopIteration as end:
            found = end.value
    assert found is not None
    ids = [node.node_id for node in found]
    assert len(ids) == len(set(ids))
    assert lasting <= set(ids) <= before
    for node in found:
        used = sum(one.resource["vcore"] for one in node.allocations)
        assert used == node.allocated.get("vcore", 0)
        assert node.available.get("vcore", 0) + used + node.occupied.get("vcore", 0) == 4


def test_reading_at_once_returns_the_result() -> None:
    (partition,) = read_at_once(RM().scheduler, read_partitions)
    assert partition.name == "default"
