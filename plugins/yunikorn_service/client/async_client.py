"""The client for an event loop, which restores its session with the scheduler after a lost connection."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator

from yunikorn.errors import CONTAINED, UsageError
from yunikorn.interface.callback import Callback
from yunikorn.interface.messages import (
    RegisterResourceManagerRequest,
    UpdateConfigurationRequest,
    UpdateConfigurationResponse,
    UpdateRequest,
    UpdateResponse,
)
from yunikorn_service.background import begin_shared
from yunikorn_service.client.callback_stream import perform
from yunikorn_service.client.client_options import ClientOptions
from yunikorn_service.client.client_session import ClientSession
from yunikorn_service.client.connection import ClientError, ConnectionLost, OutOfStep, SessionInterrupted

_log = logging.getLogger("yunikorn.client")

Report = Callable[[], Iterable[UpdateRequest]]


class AsyncClient:
    """Connection of a resource manager to a remote scheduler.

    `callback` is the same object as in process: `recv_update_response(response)`, and any other method of
    `yunikorn.interface.callback.ResourceManagerCallback`. Its methods are called in the event loop and may be
    coroutines. Without a callback, iterate over `responses()`.

    `report` returns the whole state of the resource manager as updates: its applications, its nodes with
    their allocations, and its pending asks. It is called at the beginning of each session, the first one
    included, and may be a method of the callback. When the connection is lost or the scheduler requests it,
    the client registers again and sends a new report. Without `report` there is one session, and its loss is
    an error.

        async with AsyncClient("127.0.0.1:3333", RegisterResourceManagerRequest("mine"), shim) as client:
            await client.update(UpdateRequest("mine", asks=[...]))
            await client.wait()
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
        self._address, self._registration = address, registration
        self._callback = callback
        self._report: Report | None = report or getattr(callback, "report", None)
        self._options = options or ClientOptions()
        self._sleep = sleep
        self._session: ClientSession | None = None
        self._running = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self._heard: asyncio.Queue[UpdateResponse | None] = asyncio.Queue()
        self._unread = asyncio.Semaphore(self._options.waiting)
        self._leaving = False
        self.sessions = 0
        """Number of sessions so far."""
        self.last_trouble = ""
        """Reason why there is or was no session, as stated by the scheduler or gRPC."""

    # -- life ---------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Connect, register, and send a report; retry until the scheduler can be reached.

        Raises `Refused` if the scheduler refuses the registration. Use `asyncio.timeout` to limit the time;
        `last_trouble` then has the reason of the delay.
        """
        if self._keeper is not None:
            raise UsageError("this client was started already: make a new one")
        self._keeper = begin_shared(self._keep())
        running = begin_shared(self._running.wait())
        try:
            await asyncio.wait({self._keeper, running}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self.disconnect()
            raise
        finally:
            running.cancel()
        if self._keeper.done():
            self._keeper.result()

    async def wait(self) -> None:
        """Wait for the end: return after `close` or `disconnect`, else raise the error that ended it."""
        await asyncio.shield(self._started)

    async def close(self) -> None:
        """Shut down: the scheduler gets all queued updates, and removes everything of this RM.

        The client sends no releases for running allocations. Use `disconnect` for a restart: the scheduler
        then keeps its accounting.
        """
        self._leaving = True
        if self._session is not None:
            self._session.leave()
            with contextlib.suppress(Exception):
                async with asyncio.timeout(self._options.patience):
                    await self.wait()
        await self.disconnect()

    async def disconnect(self) -> None:
        """Disconnect without shutting down: the scheduler waits for this RM until its session timeout."""
        self._leaving = True
        if self._keeper is not None and not self._keeper.done():
            self._keeper.cancel()
            await asyncio.wait({self._keeper})

    async def __aenter__(self) -> AsyncClient:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def connected(self) -> bool:
        """True while there is a session."""
        return self._session is not None

    # -- updates and calls --------------------------------------------------------------------------------

    async def update(self, request: UpdateRequest) -> bool:
        """Send an update; wait while too many updates are queued.

        Returns True if the update was queued. False means that there is no session, or that it ended
        meanwhile: the next report has to contain the content of this update. An empty `rm_id` is filled in.
        Raises `MalformedMessage` and `UsageError` for an update that cannot be sent, and the error that ended
        the client if there is one.
        """
        session = self._current()
        if session is None:
            return False
        parts = session.encode(request)
        if session.is_full and not await session.room():
            return False
        session.put(request, parts)
        return True

    def post(self, request: UpdateRequest) -> bool:
        """Queue an update without waiting, also in callbacks; no other task runs meanwhile. See `update`."""
        session = self._current()
        if session is None:
            return False
        session.put(request, session.encode(request))
        return True

    async def responses(self) -> AsyncIterator[UpdateResponse]:
        """Yield the scheduler's responses if there is no callback, until the client ends.

        Raises the error that ended the client, unless this side ended it. A response with the action RESYNC
        ends a session; responses after that belong to the next one.
        """
        if self._callback is not None:
            raise UsageError("this client has a callback, which receives the responses")
        while (response := await self._heard.get()) is not None:
            self._unread.release()
            yield response
        await self.wait()

    async def update_configuration(self, configs: str) -> UpdateConfigurationResponse:
        """Request the use of this configuration (YAML), if the scheduler lets RMs change theirs.

        The response reports success, or the reason of the failure. Raises `CallFailed` without a response.
        """
        return await self._asking().callbacks.update_configuration(UpdateConfigurationRequest(configs))

    async def fail_application(self, application_id: str, reason: str, partition_name: str = "") -> None:
        """Request the failure of an application; raise `CallFailed` with the reason if the request fails."""
        await self._asking().callbacks.fail_application(application_id, partition_name, reason)

    @property
    def _started(self) -> asyncio.Task[None]:
        if self._keeper is None:
            raise UsageError("this client was not started: await start(), or use it with `async with`")
        return self._keeper

    def _current(self) -> ClientSession | None:
        keeper = self._started
        if keeper.done() and not keeper.cancelled() and keeper.exception() is not None:
            keeper.result()
        return None if self._leaving else self._session

    def _asking(self) -> ClientSession:
        session = self._current()
        if session is None:
            raise ConnectionLost(f"there is no session at present: {self.last_trouble or 'it was closed'}")
        return session

    # -- sessions -----------------------------------------------------------------------------------------

    async def _keep(self) -> None:
        """Run one session after the other, until this side ends the client or a retry is pointless."""
        clock = asyncio.get_running_loop().time
        delays = self._options.delays()
        try:
            while True:
                begun = clock()
                if await self._one_session():
                    return
                if self._report is None and self.sessions:
                    raise ConnectionLost(
                        "the session has ended, and there is no report function for a new one:"
                        f" {self.last_trouble}"
                    )
                if clock() - begun >= self._options.lasting:
                    delays = self._options.delays()
                await self._pause(delays)
        except asyncio.CancelledError:
            if not self._leaving:
                raise
        except Exception as error:
            _log.error("the client stops: %s: %s", type(error).__name__, error)
            raise
        finally:
            self._heard.put_nowait(None)

    async def _pause(self, delays: Iterator[float]) -> None:
        delay = next(delays, self._options.lasting)
        _log.warning("%s: trying again in %g s", self.last_trouble, delay)
        await self._sleep(delay)

    async def _one_session(self) -> bool:
        """Open a session and run it to its end; return True if this side has ended it."""
        session = ClientSession(self._address, self._registration, self._callback, self._take, self._options)
        try:
            await session.open()
            self._report_to(session)
            await session.run()
        except SessionInterrupted as trouble:
            self.last_trouble = str(trouble)
        except ClientError as trouble:
            self.last_trouble = str(trouble)
            raise
        finally:
            self._session = None
            self._running.clear()
            await session.close()
        return self._leaving

    def _report_to(self, session: ClientSession) -> None:
        # No other task runs between the report and the start of the session, so every later change is sent as
        # an update.
        for request in () if self._report is None else self._report():
            session.put(request, session.encode(request))
        self._session = session
        self.sessions += 1
        self._running.set()
        _log.info("resource manager %s has a session", self._registration.rm_id)

    async def _take(self, response: UpdateResponse) -> None:
        if self._callback is None:
            await self._unread.acquire()
            self._heard.put_nowait(response)
            return
        try:
            await perform(self._callback, "recv_update_response", response)
        except CONTAINED as error:
            _log.error("a response was lost: %s: %s", type(error).__name__, error, exc_info=error)
            raise OutOfStep(f"a response was lost: {type(error).__name__}: {error}") from error
