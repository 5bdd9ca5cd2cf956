"""The client for an event loop: it keeps a session with the scheduler, whatever happens to the connection."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator

from yunikorn.errors import CONTAINED, UsageError
from yunikorn.interface.callback import Callback
from yunikorn.interface.client.callback_stream import perform
from yunikorn.interface.client.client_errors import ClientError, ConnectionLost, Interrupted, OutOfStep
from yunikorn.interface.client.client_session import ClientSession
from yunikorn.interface.client.options import ClientOptions
from yunikorn.interface.messages import (
    RegisterResourceManagerRequest,
    UpdateConfigurationRequest,
    UpdateConfigurationResponse,
    UpdateRequest,
    UpdateResponse,
)

_log = logging.getLogger("yunikorn.client")

Report = Callable[[], Iterable[UpdateRequest]]


class AsyncClient:
    """A resource manager's connection to a scheduler far away.

    `callback` is the same object as in process: `recv_update_response(response)`, and whatever it implements
    of `yunikorn.interface.callback.ResourceManagerCallback`. Its methods are called in the event loop and may
    be coroutines. Without a callback, iterate over `responses()`.

    `report` returns everything that the resource manager has, as updates: its applications, its nodes with
    what runs on them, and what it still asks for. It is called at the beginning of each session, the first
    one included, and may be a method of the callback. When the connection is lost or the scheduler needs it,
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
        """How many sessions there were."""
        self.last_trouble = ""
        """Why there is or was no session, in the scheduler's words or gRPC's."""

    # -- life ---------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Connect, register, report; returns when that is done, however long the scheduler cannot be reached.

        Raises `Refused` if it will not have this registration. To wait no longer than a time, put
        `asyncio.timeout` around; `last_trouble` says what was in the way.
        """
        if self._keeper is not None:
            raise UsageError("this client was started already: make a new one")
        self._keeper = asyncio.create_task(self._keep())
        running = asyncio.ensure_future(self._running.wait())
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
        """Wait until it is over: returns after `close` or `disconnect`, raises what ended it otherwise."""
        await asyncio.shield(self._started)

    async def close(self) -> None:
        """Shut down: the scheduler gets what was handed over, and removes everything of this RM.

        Nothing is told of what runs. For a restart use `disconnect`: the scheduler then keeps its books.
        """
        self._leaving = True
        if self._session is not None:
            self._session.leave()
            with contextlib.suppress(Exception):
                async with asyncio.timeout(self._options.patience):
                    await self.wait()
        await self.disconnect()

    async def disconnect(self) -> None:
        """Leave without a word: the scheduler waits for this RM to come back, for as long as it is set to."""
        self._leaving = True
        if self._keeper is not None and not self._keeper.done():
            self._keeper.cancel()
            await asyncio.wait({self._keeper})
        if self._keeper is not None and not self._keeper.cancelled():
            self._keeper.exception()  # what nobody waited for is in the log

    async def __aenter__(self) -> AsyncClient:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def connected(self) -> bool:
        """Whether there is a session at this moment."""
        return self._session is not None

    # -- updates and calls --------------------------------------------------------------------------------

    async def update(self, request: UpdateRequest) -> bool:
        """Send an update; waits while too many wait to be sent already.

        Returns whether it is on its way. False means that there is no session at present, or that it ended
        meanwhile: the next report has to say what this update says. An empty `rm_id` is filled in. Raises
        `MalformedMessage` and `UsageError` for what cannot be sent, and what ended the client if it is over.
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
        """The same without waiting, also from callbacks: between its own statements nothing happens."""
        session = self._current()
        if session is None:
            return False
        session.put(request, session.encode(request))
        return True

    async def responses(self) -> AsyncIterator[UpdateResponse]:
        """What the scheduler says, where there is no callback; ends with the client, or raises what ended it.

        A response with the action RESYNC ends a session; those that follow are of the next one.
        """
        if self._callback is not None:
            raise UsageError("this client has a callback, which gets the responses")
        while (response := await self._heard.get()) is not None:
            self._unread.release()
            yield response
        await self.wait()

    async def update_configuration(self, configs: str) -> UpdateConfigurationResponse:
        """Have the scheduler use this configuration (YAML), if it lets RMs change theirs.

        The answer says whether it does, and why not. Raises `CallFailed` if there is none.
        """
        return await self._asking().callbacks.update_configuration(UpdateConfigurationRequest(configs))

    async def fail_application(self, application_id: str, reason: str, partition_name: str = "") -> None:
        """Have an application fail; raises `CallFailed` with the reason if it does not."""
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
        """One session after the other, until this side ends it or there is no use in going on."""
        clock = asyncio.get_running_loop().time
        delays = self._options.delays()
        try:
            while True:
                begun = clock()
                if await self._one_session():
                    return
                if self._report is None and self.sessions:
                    raise ConnectionLost(f"the session is over, and there is no report: {self.last_trouble}")
                if clock() - begun >= self._options.lasting:
                    delays = self._options.delays()
                await self._pause(delays)
        except asyncio.CancelledError:
            if not self._leaving:
                raise
        except Exception as error:
            _log.error("the client ends: %s: %s", type(error).__name__, error)
            raise
        finally:
            self._heard.put_nowait(None)

    async def _pause(self, delays: Iterator[float]) -> None:
        delay = next(delays, self._options.lasting)
        _log.warning("%s: trying again in %g s", self.last_trouble, delay)
        await self._sleep(delay)

    async def _one_session(self) -> bool:
        """Open a session and keep it while it lasts; returns whether this side has ended it."""
        session = ClientSession(self._address, self._registration, self._callback, self._take, self._options)
        try:
            await session.open()
            self._report_to(session)
            await session.run()
        except Interrupted as trouble:
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
        # Nothing else happens in between: whatever changes later is an update of this session.
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
