"""The scheduler in an event loop: coroutines, callbacks, back-pressure, and answers in time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import pytest

from tests.service.kit import CONFIG, PATIENCE, work
from yunikorn.clock import SystemClock
from yunikorn.errors import UsageError
from yunikorn.framework.registry import Registry
from yunikorn.interface.callback import implements
from yunikorn.interface.messages import (
    AcceptedNode,
    AddApplicationRequest,
    NodePredicatesArgs,
    RegisterResourceManagerRequest,
    UpdateRequest,
    UpdateResponse,
    UserGroupInformation,
)
from yunikorn.interface.scheduler import Scheduler
from yunikorn_service.async_scheduler import AsyncScheduler, LoopCallback
from yunikorn_service.runtime.threaded import CoreStopped, ThreadedScheduler


def play(
    registry: Registry, scenario: Callable[[AsyncScheduler], Awaitable[None]], capacity: int = 64
) -> None:
    """Run a test coroutine with a core; a coroutine that hangs fails."""

    async def run() -> None:
        threaded = ThreadedScheduler(
            lambda clock: Scheduler(registry, clock), SystemClock(), capacity=capacity
        )
        async with asyncio.timeout(PATIENCE), AsyncScheduler(threaded) as scheduler:
            await scenario(scheduler)

    asyncio.run(run())


class CoroutineCallback:
    """A callback whose methods are coroutines."""

    def __init__(self) -> None:
        self.received: asyncio.Queue[UpdateResponse] = asyncio.Queue()
        self.threads: set[threading.Thread] = set()

    async def recv_update_response(self, response: UpdateResponse) -> None:
        self.threads.add(threading.current_thread())
        await asyncio.sleep(0)
        await self.received.put(response)

    async def allocations(self, number: int) -> list[str]:
        keys: list[str] = []
        while len(keys) < number:
            keys += [one.allocation_key for one in (await self.received.get()).new_allocations]
        return keys


def test_responses_arrive_in_the_loop_and_in_order(registry: Registry) -> None:
    async def scenario(scheduler: AsyncScheduler) -> None:
        listener = CoroutineCallback()
        await scheduler.register_resource_manager(
            RegisterResourceManagerRequest("rm", config=CONFIG), listener
        )
        await scheduler.update(work(50))
        assert await listener.allocations(50) == [f"app-{i}" for i in range(50)]
        assert listener.threads == {threading.current_thread()}

    play(registry, scenario)


class CountedLoop:
    """Event loop that counts how often another thread wakes it."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.wakes = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self.loop, name)

    def call_soon_threadsafe(self, *arguments: Any) -> asyncio.Handle:
        self.wakes += 1
        return self.loop.call_soon_threadsafe(*arguments)


def test_calls_that_come_while_the_loop_is_busy_wake_it_once(registry: Registry) -> None:
    """A wake-up is a system call, in which the core's thread loses the interpreter to a busy loop."""

    async def scenario(scheduler: AsyncScheduler) -> None:
        listener = CoroutineCallback()
        loop = CountedLoop()
        adapted = LoopCallback(listener, "rm", scheduler.threaded, cast(asyncio.AbstractEventLoop, loop))

        def report(first: int) -> None:
            for number in range(first, first + 100):
                adapted.recv_update_response(UpdateResponse(accepted_nodes=[AcceptedNode(f"{number}")]))

        for turn in range(3):
            thread = threading.Thread(target=report, args=(100 * turn,))
            thread.start()
            thread.join()
            for number in range(100):
                response = await listener.received.get()
                assert response.accepted_nodes == [AcceptedNode(f"{100 * turn + number}")]
            assert loop.wakes == turn + 1

    play(registry, scenario)


def test_answers_arrive_before_the_end_of_their_update(registry: Registry) -> None:
    async def scenario(scheduler: AsyncScheduler) -> None:
        seen: list[str] = []

        class Listener:
            def recv_update_response(self, response: UpdateResponse) -> None:
                seen.extend(one.application_id for one in response.accepted_applications)

        await scheduler.register_resource_manager(
            RegisterResourceManagerRequest("rm", config=CONFIG), Listener()
        )
        for number in range(200):
            request = AddApplicationRequest(f"a{number}", "root.a", ugi=UserGroupInformation("ann"))
            await scheduler.update(UpdateRequest("rm", new_applications=[request]))
            assert seen[-1] == f"a{number}"

    play(registry, scenario)


def test_errors_are_raised_where_they_are_awaited(registry: Registry) -> None:
    async def scenario(scheduler: AsyncScheduler) -> None:
        with pytest.raises(UsageError, match="no resource manager 'ghost'"):
            await scheduler.update(UpdateRequest("ghost"))
        with pytest.raises(ZeroDivisionError):
            await scheduler.call(lambda core: 1 // 0)
        await scheduler.halt()
        with pytest.raises(CoreStopped):
            await scheduler.update(UpdateRequest("ghost"))

    play(registry, scenario)


def test_senders_wait_while_the_inbox_is_full_and_the_loop_goes_on(registry: Registry) -> None:
    async def scenario(scheduler: AsyncScheduler) -> None:
        await scheduler.register_resource_manager(
            RegisterResourceManagerRequest("rm", config=CONFIG), CoroutineCallback()
        )
        release, holding = threading.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()

        def hold(_: Scheduler) -> None:
            loop.call_soon_threadsafe(holding.set)
            release.wait(PATIENCE)

        held = asyncio.create_task(scheduler.call(hold))
        await holding.wait()
        senders = [asyncio.create_task(scheduler.update(UpdateRequest("rm"))) for _ in range(20)]
        for _ in range(10):
            await asyncio.sleep(0)
        assert not any(sender.done() for sender in senders)
        release.set()
        await asyncio.gather(held, *senders)

    play(registry, scenario, capacity=2)


def test_callback_that_raises_in_the_loop_is_reported_and_receives_resync(
    registry: Registry,
) -> None:
    async def scenario(scheduler: AsyncScheduler) -> None:
        asked_to_resync = asyncio.Event()

        class Clumsy:
            def recv_update_response(self, response: UpdateResponse) -> None:
                if response.action:
                    asked_to_resync.set()
                else:
                    raise LookupError("no such pod")

        await scheduler.register_resource_manager(
            RegisterResourceManagerRequest("rm", config=CONFIG), Clumsy()
        )
        await scheduler.update(work(1))
        await asked_to_resync.wait()
        [failure] = await scheduler.call(lambda core: list(core.failures))
        assert "resource manager rm" in failure.message
        assert "LookupError: no such pod" in failure.message

    play(registry, scenario)


class Predicate(CoroutineCallback):
    """Refuses nodes from a coroutine."""

    def __init__(self, refused: Mapping[str, str], answer: asyncio.Event | None = None) -> None:
        super().__init__()
        self.refused, self.answer = refused, answer

    async def node_predicates(self, args: NodePredicatesArgs) -> Mapping[str, str]:
        if self.answer is not None:
            await self.answer.wait()
        return self.refused


def test_optional_methods_may_be_coroutines(registry: Registry) -> None:
    async def scenario(scheduler: AsyncScheduler) -> None:
        listener = Predicate({"node-one": "it is too warm"})
        await scheduler.register_resource_manager(
            RegisterResourceManagerRequest("rm", config=CONFIG), listener
        )
        await scheduler.update(work(1, app="one"))
        waits = await scheduler.call(lambda core: core.explain("rm", "default", "one"))
        assert "it is too warm" in str(waits["one-0"])
        await scheduler.update(work(0, app="two"))
        await scheduler.update(
            UpdateRequest("rm", new_schedulable_nodes=work(1, app="three").new_schedulable_nodes)
        )
        assert await listener.allocations(1) == ["one-0"]

    play(registry, scenario)


def test_missing_answer_is_an_error(registry: Registry) -> None:
    async def scenario(scheduler: AsyncScheduler) -> None:
        silent = LoopCallback(
            Predicate({}, answer=asyncio.Event()),
            "rm",
            scheduler.threaded,
            asyncio.get_running_loop(),
            patience=0.01,
        )
        ask = getattr(silent, "node_predicates")  # noqa: B009
        with pytest.raises(TimeoutError, match=r"no answer within 0\.01 s"):
            await asyncio.to_thread(ask, NodePredicatesArgs("app", "key", ["node"]))

    play(registry, scenario)


def test_unimplemented_methods_of_a_callback_are_absent(registry: Registry) -> None:
    async def scenario(scheduler: AsyncScheduler) -> None:
        adapted = LoopCallback(Predicate({}), "rm", scheduler.threaded, asyncio.get_running_loop())
        assert implements(adapted, "node_predicates")
        assert not implements(adapted, "predicates")
        assert not implements(adapted, "send_events")

    play(registry, scenario)
