"""A scheduler for programs that live in an asyncio event loop: the core has its own thread.

`LoopCallback` adapts a callback that lives in the event loop to a core that lives in a thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from yunikorn.errors import CONTAINED, CallbackError
from yunikorn.interface.callback import OPTIONAL, implements
from yunikorn.interface.commands import RegisterResourceManager, Stop, Update
from yunikorn.interface.messages import (
    RegisterResourceManagerRequest,
    RegisterResourceManagerResponse,
    UpdateRequest,
    UpdateResponse,
)
from yunikorn.interface.scheduler import Scheduler
from yunikorn_service.background import begin_watched
from yunikorn_service.runtime.sliced_reads import Reading
from yunikorn_service.runtime.threaded import CoreStopped, ThreadedScheduler

_log = logging.getLogger("yunikorn_service.runtime")

T = TypeVar("T")


class AsyncScheduler:
    """The methods of a `Scheduler` as coroutines, carried out by a `ThreadedScheduler`.

    A coroutine waits while the core's inbox is full, without blocking the event loop. Callbacks are called in
    the event loop, see `LoopCallback`.
    """

    def __init__(self, threaded: ThreadedScheduler) -> None:
        self.threaded = threaded
        self.preparation: Callable[[], Coroutine[Any, Any, None]] | None = None
        """Awaited once, before the first registration; must not raise."""
        self._preparing = asyncio.Lock()

    async def __aenter__(self) -> AsyncScheduler:
        self.threaded.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def prepare(self) -> None:
        """Wait for what precedes the first registration; every registration calls it."""
        async with self._preparing:
            if self.preparation is not None:
                await self.preparation()
                self.preparation = None

    async def register_resource_manager(
        self, request: RegisterResourceManagerRequest, callback: object
    ) -> RegisterResourceManagerResponse:
        """Register a resource manager. See `Scheduler.register_resource_manager`.

        The methods of `callback` may be coroutines.
        """
        await self.prepare()
        adapted = LoopCallback(callback, request.rm_id, self.threaded, asyncio.get_running_loop())
        return await self._put(RegisterResourceManager(request, adapted))

    async def update(self, request: UpdateRequest) -> None:
        """Apply an update, and wait until it is applied. See `Scheduler.update`."""
        await self._put(Update(request))

    async def stop(self, rm_id: str) -> None:
        """Shut a resource manager down. See `Scheduler.stop`."""
        await self._put(Stop(rm_id))

    async def call(self, operation: Callable[[Scheduler], T]) -> T:
        """Run an operation in the core's thread, and return its result or raise its error.

        Any error is the caller's business alone: the core goes on.
        """
        return await self._put(operation, tolerant=True)

    async def carry_out(self, operation: Callable[[Scheduler], T]) -> T:
        """Apply a command or run another operation, and return its result or raise its error.

        An error other than a `YunikornError` is a bug of the core, which stops.
        """
        return await self._put(operation)

    async def begin(self, operation: Callable[[Scheduler], T]) -> asyncio.Future[T]:
        """Put an operation like that of `carry_out` into the inbox, and return the future of its result."""
        return await self._enter(operation, tolerant=False)

    async def read(self, reading: Reading[T]) -> T:
        """Carry out a reading in slices between the core's decisions, and return its result.

        See `yunikorn_service.runtime.sliced_reads`. Raises the error of the reading, or `CoreStopped`.
        """
        loop = asyncio.get_running_loop()
        while True:
            room = asyncio.Event()
            make_room = functools.partial(loop.call_soon_threadsafe, room.set)
            done = self.threaded.offer_read(reading, make_room)
            if done is not None:
                return await asyncio.wrap_future(done)
            await room.wait()

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


ASKED = ("predicates", "node_predicates", "update_configuration")
"""Methods whose answer the core waits for."""
WAITING = 250_000
"""Maximum number of calls that wait for the event loop.

A round that places the backlog of a large cluster makes one call for each request in a few seconds.
"""
PATIENCE = 10.0
"""Seconds for which the core waits for an answer."""


class LoopCallback:
    """Callback whose methods run in an event loop, one at a time, in the order of the core's calls.

    The methods of `callback` may be coroutines; the next call then waits for them. The core waits only for
    answers (`predicates`, `node_predicates`, `update_configuration`), and for at most `PATIENCE` seconds; a
    method without an answer by then counts as failed. When `WAITING` calls wait for the loop, further calls
    fail, and the core requests a new registration of the RM.
    """

    def __init__(
        self,
        callback: Any,
        rm_id: str,
        threaded: ThreadedScheduler,
        loop: asyncio.AbstractEventLoop,
        *,
        patience: float = PATIENCE,
    ) -> None:
        self._callback, self._rm_id = callback, rm_id
        self._threaded, self._loop = threaded, loop
        self._patience = patience
        self._handed = 0
        """Number of calls that the core made; counted in the core's thread."""
        self._taken = 0
        """Number of completed calls; counted in the loop."""
        self._calls: deque[tuple[str, object]] = deque()
        """Calls for the loop; the core's thread adds them, and the loop takes them."""
        self._is_woken = False
        """True while the loop has a wake-up before it: each costs the core's thread the interpreter."""
        self._worker: asyncio.Task[None] | None = None
        for method in OPTIONAL:
            if not implements(callback, method):
                setattr(self, method, None)
            elif method in ASKED:
                setattr(self, method, self._asking(method))
            else:
                setattr(self, method, self._notifier(method))

    def __getattr__(self, name: str) -> object:
        return getattr(self._callback, name)

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Queue a response for the callback."""
        self._hand("recv_update_response", response)

    # -- telling --------------------------------------------------------------------------------------

    def _notifier(self, method: str) -> Callable[[object], None]:
        return lambda argument: self._hand(method, argument)

    def _hand(self, method: str, argument: object) -> None:
        if self._handed - self._taken >= WAITING:
            raise RuntimeError(f"its event loop has {WAITING} pending calls and executes none of them")
        self._handed += 1
        self._calls.append((method, argument))
        if not self._is_woken:
            # Set first: the loop may clear it before the call below returns.
            self._is_woken = True
            try:
                self._loop.call_soon_threadsafe(self._wake)
            except RuntimeError:
                self._is_woken = False
                raise

    def _wake(self) -> None:
        self._is_woken = False
        if self._worker is None:
            self._worker = begin_watched(self._work(), "the delivery of calls of the core", _log)

    async def _work(self) -> None:
        """Execute the calls that have arrived by now; those that arrive meanwhile follow in a later turn."""
        for _ in range(len(self._calls)):
            method, argument = self._calls.popleft()
            try:
                await self._call(method, argument)
            except CONTAINED as error:
                self._report(method, error)
            self._taken += 1
        self._worker = None
        if self._calls:
            self._loop.call_soon(self._wake)

    def _report(self, method: str, error: BaseException) -> None:
        whose, operation = f"resource manager {self._rm_id}", f"calling {method}"

        def report(core: Scheduler) -> None:
            core.failures.report(whose, operation, CallbackError(whose, operation, error))
            if method == "recv_update_response":
                core.resync(self._rm_id, f"a response was lost: {type(error).__name__}: {error}")

        with contextlib.suppress(CoreStopped):
            self._threaded.post_call(report)

    # -- asking ---------------------------------------------------------------------------------------

    def _asking(self, method: str) -> Callable[[object], object]:
        def ask(question: object) -> object:
            answer = asyncio.run_coroutine_threadsafe(self._call(method, question), self._loop)
            try:
                return answer.result(self._patience)
            except TimeoutError:
                answer.cancel()
                raise TimeoutError(f"no answer within {self._patience:g} s") from None

        return ask

    async def _call(self, method: str, argument: object) -> object:
        result = getattr(self._callback, method)(argument)
        return await result if inspect.isawaitable(result) else result
