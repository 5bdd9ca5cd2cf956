"""Contract test of doors, and the service of a test."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
import warnings
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from typing import Any, ClassVar, TypeVar

from yunikorn.api import Door
from yunikorn.containment import safe_repr
from yunikorn.framework.kinds import DOOR
from yunikorn.interface.scheduler import Scheduler
from yunikorn_commands.plugin_threads import describe_thread
from yunikorn_service.background import begin_shared
from yunikorn_testing.cluster import Cluster, Clusters
from yunikorn_testing.forbidden_calls import nothing_blocks_the_loop
from yunikorn_testing.plugin_contract import OfferContract

T = TypeVar("T")
TURNS = 20
"""Turns of the event loop in which work in the background gets going."""


class CoreSample:
    """Core of a service in a test: the scheduler of a cluster, in the event loop itself."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._is_running = asyncio.Event()

    def begin(self) -> None:
        """Let the core run; calls before wait."""
        self._is_running.set()

    async def read(self, reading: Callable[[Any], Generator[Any, None, T]]) -> T:
        """Carry out a generator function of the scheduler, with a turn of the loop at each `yield`."""
        await self._is_running.wait()
        steps = reading(self._scheduler)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                result: T = end.value
                return result
            await asyncio.sleep(0)

    async def call(self, operation: Callable[[Any], T]) -> T:
        """Run an operation of the scheduler."""
        await self._is_running.wait()
        return operation(self._scheduler)

    async def register_resource_manager(self, request: Any, callback: object) -> Any:
        """Register a resource manager."""
        return await self.call(lambda core: core.register_resource_manager(request, callback))

    async def update(self, request: Any) -> None:
        """Apply an update of a resource manager."""
        await self.call(lambda core: core.update(request))


class ServiceSample:
    """Service for the test of a door: its core and its clock are those of a cluster.

    async with ServiceSample(cluster).open(Statsd("127.0.0.1:8125")) as address:
        ...
    """

    def __init__(self, cluster: Cluster) -> None:
        """Create in an event loop."""
        self.cluster = cluster
        self.core = CoreSample(cluster.scheduler)
        self.now: Callable[[], int] = cluster.clock.now
        self.work: list[asyncio.Task[None]] = []
        """Work of the door in the background."""

    def unready(self) -> str:
        """Return an empty text: all other doors are ready."""
        return ""

    def run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine of the door until the door is closed. Its error is raised then."""
        self.work.append(begin_shared(work))

    @contextlib.asynccontextmanager
    async def open(self, door: Door) -> AsyncIterator[str]:
        """Open a door for the duration of the context; returns its address."""
        try:
            address = await door.start(self)
            self.core.begin()
            yield address
        finally:
            await door.stop()
            await self.close()

    async def close(self) -> None:
        """Cancel the work in the background. Raises its first error."""
        await asyncio.sleep(0)
        for task in self.work:
            task.cancel()
        for error in await asyncio.gather(*self.work, return_exceptions=True):
            if isinstance(error, Exception):
                raise error


class DoorContract(OfferContract):
    """Tests that a door must pass; set `door = Mine(...)`.

    The tests open the door, so set options with which it uses a place for tests, such as a free port.
    """

    kind = DOOR
    subject = "door"
    in_properties = True
    opening = "start(), so that nothing is open in a service that cannot start"
    door: ClassVar[Door]
    limit: ClassVar[float] = 10.0
    """Seconds that a call of the door may take; a service ends a longer `stop`."""

    # -- running ----------------------------------------------------------------------------------------

    def run(self, story: Callable[[Door, ServiceSample], Coroutine[Any, Any, None]]) -> None:
        """Run a test of a new door in an event loop of its own, whose thread must not be blocked."""
        errors: list[BaseException] = []
        cluster = Clusters()()

        async def told() -> None:
            await story(self._made(), ServiceSample(cluster))
            left = asyncio.all_tasks() - {asyncio.current_task()}
            assert not left, (
                f"after stop(), these tasks run: {', '.join(sorted(map(_named, left)))}; begin tasks by"
                " service.run_in_background, or cancel and await them in stop()"
            )

        def in_thread() -> None:
            try:
                asyncio.run(told())
            except BaseException as error:
                errors.append(error)

        with nothing_blocks_the_loop() as blocking:
            thread = threading.Thread(target=in_thread, daemon=True)
            thread.start()
            thread.join(3 * self.limit)
            place = describe_thread(thread) if thread.is_alive() else ""
        cluster.close()
        assert not place, f"the door blocks the event loop: {place}"
        assert not blocking, f"the door blocks the event loop: {blocking[0]}; await instead, or use a thread"
        for error in errors:
            raise error

    async def within(self, what: str, call: Coroutine[Any, Any, T]) -> T:
        """Await a call of the door, for a limited time."""
        try:
            async with asyncio.timeout(self.limit) as limit:
                return await call
        except TimeoutError:
            if not limit.expired():
                raise
        hint = "; the core begins when all doors are open" if what == "start()" else ""
        raise AssertionError(f"{what} takes longer than {self.limit:g} s{hint}")

    async def opened(self, door: Door, service: ServiceSample) -> str:
        """Open a door, and let the core run."""
        address: object = await self.within("start()", door.start(service))
        assert isinstance(address, str), f"start() returned {safe_repr(address)}: return an address, or ''"
        service.core.begin()
        for _ in range(TURNS):
            await asyncio.sleep(0)
        return address

    async def closed(self, door: Door, service: ServiceSample) -> None:
        """Close a door."""
        await self.within("stop()", door.stop())
        await service.close()

    # -- tests ------------------------------------------------------------------------------------------

    def test_door_opens_reloads_and_closes(self) -> None:
        """Check the calls of a service from start to end, SIGHUP included."""

        async def story(door: Door, service: ServiceSample) -> None:
            await self.opened(door, service)
            await self.within("reload()", door.reload())
            await self.closed(door, service)
            door.closed()

        self.run(story)

    def test_unready_returns_a_text(self) -> None:
        """Check that `unready` can be called at any time, and returns a reason or an empty text."""

        async def story(door: Door, service: ServiceSample) -> None:
            answers: list[object] = [door.unready()]
            await self.opened(door, service)
            answers.append(door.unready())
            await self.closed(door, service)
            answers.append(door.unready())
            for answer in answers:
                assert isinstance(answer, str), f"unready() returned {safe_repr(answer)}: return a text"

        self.run(story)

    def test_door_that_was_not_opened_closes(self) -> None:
        """Check that `stop` works after a `start` that failed or was cancelled, after each of its steps."""

        async def story(door: Door, service: ServiceSample) -> None:
            for turns in range(TURNS):
                tried, again = self._made(), ServiceSample(service.cluster)
                start = begin_shared(tried.start(again))
                for _ in range(turns):
                    await asyncio.sleep(0)
                start.cancel()
                await asyncio.wait([start])
                await self.closed(tried, again)

        with warnings.catch_warnings():
            # asyncio itself forgets a server whose start is cancelled at the wrong moment.
            warnings.simplefilter("ignore", ResourceWarning)
            self.run(story)
            gc.collect()

    def test_another_door_opens_after_the_first_is_closed(self) -> None:
        """Check that `stop` gives back what `start` takes, such as a port."""

        async def story(door: Door, service: ServiceSample) -> None:
            await self.opened(door, service)
            await self.closed(door, service)
            other, again = self._made(), ServiceSample(service.cluster)
            await self.opened(other, again)
            await self.closed(other, again)

        self.run(story)


def _named(task: asyncio.Task[Any]) -> str:
    return getattr(task.get_coro(), "__qualname__", task.get_name())
