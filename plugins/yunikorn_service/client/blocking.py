"""The client for programs with threads: an `AsyncClient` in its own thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

from yunikorn.errors import UsageError
from yunikorn.interface.callback import Callback
from yunikorn.interface.messages import (
    RegisterResourceManagerRequest,
    UpdateConfigurationResponse,
    UpdateRequest,
    UpdateResponse,
)
from yunikorn_service.client.async_client import AsyncClient, Report
from yunikorn_service.client.client_options import ClientOptions
from yunikorn_service.client.connection import ConnectionLost

T = TypeVar("T")


class Client:
    """Connection of a resource manager to a remote scheduler; methods may be called from any thread.

    The client runs an `AsyncClient` in its own thread; see there for the arguments. The callback's methods
    and `report` are called in that thread, one at a time, and must not wait for this object. Code that
    changes the resource manager and sends an update about the change should also run there, with `call`, so
    that no report is made between the two.

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
        self._client = AsyncClient(
            address, registration, callback, report=report, options=options, sleep=sleep
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._gate = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="yunikorn-client", daemon=True)

    # -- life ---------------------------------------------------------------------------------------------

    def start(self, timeout: float | None = None) -> None:
        """Connect, register, and send a report. See `AsyncClient.start`.

        Raises `ConnectionLost` if this takes longer than `timeout` seconds; the client cannot be used after
        that.
        """
        if self._thread.ident is not None:
            raise UsageError("this client was started already: make a new one")
        self._loop = asyncio.new_event_loop()
        self._thread.start()
        try:
            if not self._wait(_within(timeout, self._client.start)):
                trouble = self.last_trouble or "the scheduler has not answered"
                raise ConnectionLost(f"there is no session after {timeout:g} s: {trouble}")
        except BaseException:
            self._stop()
            raise

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end of the client, or for `timeout` seconds; return True if it has ended.

        Raises the error that ended the client, unless this side ended it.
        """
        return self._wait(_within(timeout, self._started.wait))

    def close(self) -> None:
        """Shut the resource manager down. See `AsyncClient.close`."""
        self._end(self._client.close)

    def disconnect(self) -> None:
        """Disconnect without shutting down. See `AsyncClient.disconnect`."""
        self._end(self._client.disconnect)

    def __enter__(self) -> Client:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def connected(self) -> bool:
        """True while there is a session."""
        return self._client.connected

    @property
    def last_trouble(self) -> str:
        """Reason why there is or was no session, as stated by the scheduler or gRPC."""
        return self._client.last_trouble

    # -- updates and calls --------------------------------------------------------------------------------

    def update(self, request: UpdateRequest) -> bool:
        """Send an update, and return True if it was queued. See `AsyncClient.update`.

        Does not wait in the client's thread, that is, in callbacks.
        """
        if threading.current_thread() is self._thread:
            return self._started.post(request)
        return self._wait(self._started.update(request))

    def call(self, operation: Callable[[], T]) -> T:
        """Run an operation in the client's thread, and return its result or raise its error."""
        if threading.current_thread() is self._thread:
            return operation()

        async def done() -> T:
            return operation()

        return self._wait(done())

    def responses(self) -> Iterator[UpdateResponse]:
        """Yield the scheduler's responses if there is no callback. See `AsyncClient.responses`."""
        responses = self._started.responses()
        while (response := self._wait(_next(responses))) is not None:
            yield response

    def update_configuration(self, configs: str) -> UpdateConfigurationResponse:
        """Request the use of a configuration. See `AsyncClient.update_configuration`."""
        return self._wait(self._started.update_configuration(configs))

    def fail_application(self, application_id: str, reason: str, partition_name: str = "") -> None:
        """Request the failure of an application. See `AsyncClient.fail_application`."""
        self._wait(self._started.fail_application(application_id, reason, partition_name))

    # -- the thread -----------------------------------------------------------------------------------

    @property
    def _started(self) -> AsyncClient:
        if self._loop is None:
            raise UsageError("this client was not started: call start(), or use it with `with`")
        return self._client

    def _run(self) -> None:
        assert self._loop is not None
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.close()

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        if threading.current_thread() is self._thread:
            work.close()
            raise UsageError("a callback must not wait for the client, which waits for the callback")
        with self._gate:
            if self._loop is None or self._closed:
                work.close()
                raise UsageError("this client is closed")
            done: Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return done.result()

    def _end(self, ending: Callable[[], Coroutine[Any, Any, None]]) -> None:
        if self._loop is not None and not self._closed:
            self._wait(ending())
            self._stop()

    def _stop(self) -> None:
        with self._gate:
            if self._closed or self._loop is None:
                return
            self._closed = True
            asyncio.run_coroutine_threadsafe(self._finish(), self._loop)
        self._thread.join()

    async def _finish(self) -> None:
        # Calls that wait in other threads get their result first.
        loop = asyncio.get_running_loop()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            _, late = await asyncio.wait(others, timeout=1.0)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        loop.call_soon(loop.stop)


async def _within(timeout: float | None, work: Callable[[], Awaitable[None]]) -> bool:
    """Wait for `timeout` seconds at most; return True if the work was done in this time."""
    try:
        async with asyncio.timeout(timeout):
            await work()
    except TimeoutError:
        return False
    return True


async def _next(responses: AsyncIterator[UpdateResponse]) -> UpdateResponse | None:
    return await anext(responses, None)
