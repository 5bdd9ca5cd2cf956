"""A scheduler for programs that live in an asyncio event loop: the core has its own thread."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import TypeVar

from yunikorn.interface.loop_callback import LoopCallback
from yunikorn.interface.messages import (
    RegisterResourceManagerRequest,
    RegisterResourceManagerResponse,
    UpdateRequest,
)
from yunikorn.interface.scheduler import Scheduler
from yunikorn.interface.threaded import ThreadedScheduler

T = TypeVar("T")


class AsyncScheduler:
    """The methods of a `Scheduler` as coroutines, carried out by a `ThreadedScheduler`.

    A coroutine waits while the core's inbox is full, without blocking the event loop. Callbacks are called in
    the event loop, see `LoopCallback`.
    """

    def __init__(self, threaded: ThreadedScheduler) -> None:
        self.threaded = threaded

    async def __aenter__(self) -> AsyncScheduler:
        self.threaded.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def register_resource_manager(
        self, request: RegisterResourceManagerRequest, callback: object
    ) -> RegisterResourceManagerResponse:
        """Register a resource manager. See `Scheduler.register_resource_manager`.

        The methods of `callback` may be coroutines.
        """
        adapted = LoopCallback(callback, request.rm_id, self.threaded, asyncio.get_running_loop())
        return await self._put(lambda core: core.register_resource_manager(request, adapted))

    async def update(self, request: UpdateRequest) -> None:
        """Apply an update, and wait until it is applied. See `Scheduler.update`."""
        await self._put(lambda core: core.update(request))

    async def stop(self, rm_id: str) -> None:
        """Shut a resource manager down. See `Scheduler.stop`."""
        await self._put(lambda core: core.stop(rm_id))

    async def call(self, operation: Callable[[Scheduler], T]) -> T:
        """Run an operation in the core's thread, and return its result or raise its error.

        Any error is the caller's business alone: the core goes on.
        """
        return await self._put(operation, tolerant=True)

    async def carry_out(self, operation: Callable[[Scheduler], T]) -> T:
        """Run an operation that changes the core, and return its result or raise its error.

        An error other than a `YunikornError` is a bug of the core, which stops.
        """
        return await self._put(operation)

    async def begin(self, operation: Callable[[Scheduler], T]) -> asyncio.Future[T]:
        """Put an operation like that of `carry_out` into the inbox, and return the future of its result."""
        return await self._enter(operation, tolerant=False)

    async def load_ahead(self, text: str) -> None:
        """Load a configuration outside of the event loop and the core. See `Scheduler.load_ahead`."""
        await asyncio.to_thread(self.threaded.load_ahead, text)

    async def halt(self) -> None:
        """Stop the core. See `ThreadedScheduler.halt`."""
        await asyncio.to_thread(self.threaded.halt)

    async def close(self) -> None:
        """Shut all resource managers down and stop the core. See `ThreadedScheduler.close`."""
        await asyncio.to_thread(self.threaded.close)

    async def _put(self, operation: Callable[[Scheduler], T], *, tolerant: bool = False) -> T:
        return await (await self._enter(operation, tolerant=tolerant))

    async def _enter(self, operation: Callable[[Scheduler], T], *, tolerant: bool) -> asyncio.Future[T]:
        loop = asyncio.get_running_loop()
        while True:
            room = asyncio.Event()
            make_room = functools.partial(loop.call_soon_threadsafe, room.set)
            done = self.threaded.offer(operation, make_room, tolerant=tolerant)
            if done is not None:
                return asyncio.wrap_future(done)
            await room.wait()
