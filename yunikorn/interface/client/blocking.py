"""The client for programs with threads: the asynchronous one, in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

from yunikorn.errors import UsageError
from yunikorn.interface.callback import Callback
from yunikorn.interface.client.async_client import AsyncClient, Report
from yunikorn.interface.client.client_errors import ConnectionLost
from yunikorn.interface.client.options import ClientOptions
from yunikorn.interface.messages import (
    RegisterResourceManagerRequest,
    UpdateConfigurationResponse,
    UpdateRequest,
    UpdateResponse,
)

T = TypeVar("T")


class Client:
    """A resource manager's connection to a scheduler far away; its methods may be called from any thread.

    It is `AsyncClient` in a thread of its own: see there for what its arguments mean. The callback's methods
    and `report` are called in that thread, one at a time; they must not wait for this object. What changes
    the resource manager and tells the scheduler of it is best done there as well, with `call`, so that no
    report is made between the two.

        with Client("127.0.0.1:3333", RegisterResourceManagerRequest("mine"), shim) as client:
            client.update(UpdateRequest("mine", asks=[...]))
            client.wait()
    """

    def __init__(
        self,
        address: str,
        registration: RegisterResourceManagerRequest,
        callback: Callback | None = None,
        *,
        report: Report | None = None,
        options: ClientOptions | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        def make() -> AsyncClient:
            return AsyncClient(address, registration, callback, report=report, options=options, sleep=sleep)

        self._make = make
        self._client: AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._gate = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="yunikorn-client", daemon=True)

    # -- life ---------------------------------------------------------------------------------------------

    def start(self, timeout: float | None = None) -> None:
        """Connect, register, report. See `AsyncClient.start`.

        Raises `ConnectionLost` if that took longer than `timeout` seconds; the client is of no use then.
        """
        if self._thread.ident is not None:
            raise UsageError("this client was started already: make a new one")
        self._loop = asyncio.new_event_loop()
        self._thread.start()
        self._client = self._wait(self._made())
        try:
            self._wait(self._start(timeout))
        except BaseException:
            self._stop()
            raise

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is over, or for `timeout` seconds; returns whether it is over.

        Raises what ended it, if that was not this side.
        """
        return self._wait(self._over(timeout))

    def close(self) -> None:
        """Shut down. See `AsyncClient.close`."""
        self._end(lambda client: client.close())

    def disconnect(self) -> None:
        """Leave without a word. See `AsyncClient.disconnect`."""
        self._end(lambda client: client.disconnect())

    def __enter__(self) -> Client:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def connected(self) -> bool:
        """Whether there is a session at this moment."""
        return self._client is not None and self._client.connected

    @property
    def last_trouble(self) -> str:
        """Why there is or was no session, in the scheduler's words or gRPC's."""
        return "" if self._client is None else self._client.last_trouble

    # -- updates and calls --------------------------------------------------------------------------------

    def update(self, request: UpdateRequest) -> bool:
        """Send an update, and return whether it is on its way. See `AsyncClient.update`.

        In the client's thread, that is from callbacks, it does not wait.
        """
        if threading.current_thread() is self._thread:
            return self._at_work.post(request)
        return self._wait(self._at_work.update(request))

    def call(self, operation: Callable[[], T]) -> T:
        """Have something done in the client's thread, and return what it returns or raise what it raises."""
        if threading.current_thread() is self._thread:
            return operation()

        async def done() -> T:
            return operation()

        return self._wait(done())

    def responses(self) -> Iterator[UpdateResponse]:
        """What the scheduler says, where there is no callback. See `AsyncClient.responses`."""
        responses = self._at_work.responses()
        while True:
            response = self._wait(_next(responses))
            if response is None:
                return
            yield response

    def update_configuration(self, configs: str) -> UpdateConfigurationResponse:
        """Have the scheduler use this configuration. See `AsyncClient.update_configuration`."""
        return self._wait(self._at_work.update_configuration(configs))

    def fail_application(self, application_id: str, reason: str, partition_name: str = "") -> None:
        """Have an application fail. See `AsyncClient.fail_application`."""
        self._wait(self._at_work.fail_application(application_id, reason, partition_name))

    # -- the thread -----------------------------------------------------------------------------------

    @property
    def _at_work(self) -> AsyncClient:
        if self._client is None:
            raise UsageError("this client was not started: call start(), or use it with `with`")
        return self._client

    def _run(self) -> None:
        assert self._loop is not None
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.close()

    async def _made(self) -> AsyncClient:
        return self._make()

    async def _start(self, timeout: float | None) -> None:
        try:
            async with asyncio.timeout(timeout):
                await self._at_work.start()
        except TimeoutError:
            trouble = self._at_work.last_trouble or "the scheduler has not answered"
            raise ConnectionLost(f"there is no session after {timeout:g} s: {trouble}") from None

    async def _over(self, timeout: float | None) -> bool:
        try:
            async with asyncio.timeout(timeout):
                await self._at_work.wait()
        except TimeoutError:
            return False
        return True

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        if threading.current_thread() is self._thread:
            work.close()
            raise UsageError("a callback must not wait for the client, which waits for it")
        with self._gate:
            if self._loop is None or self._closed:
                work.close()
                raise UsageError("this client is not at work: it was closed")
            done: Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return done.result()

    def _end(self, ending: Callable[[AsyncClient], Coroutine[Any, Any, None]]) -> None:
        if self._client is None or self._closed:
            return
        self._wait(ending(self._client))
        self._stop()

    def _stop(self) -> None:
        with self._gate:
            if self._closed or self._loop is None:
                return
            self._closed = True
            asyncio.run_coroutine_threadsafe(self._finish(), self._loop)
        self._thread.join()

    async def _finish(self) -> None:
        # Those who wait in other threads get their answer first.
        loop = asyncio.get_running_loop()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            _, late = await asyncio.wait(others, timeout=1.0)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        loop.call_soon(loop.stop)


async def _next(responses: Any) -> UpdateResponse | None:
    found: UpdateResponse | None = await anext(responses, None)
    return found
