"""Adapter between a callback that lives in an event loop and a core that lives in a thread."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections import deque
from collections.abc import Callable
from typing import Any

from yunikorn.errors import CONTAINED, CallbackError
from yunikorn.interface.callback import OPTIONAL, implements
from yunikorn.interface.messages import UpdateResponse
from yunikorn.interface.scheduler import Scheduler
from yunikorn.interface.threaded import CoreStopped, ThreadedScheduler

ASKED = ("predicates", "node_predicates", "update_configuration")
"""Methods whose answer the core waits for."""
WAITING = 10_000
"""Maximum number of calls that wait for the event loop."""
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
        self._worker: asyncio.Task[None] | None = None
        for method in OPTIONAL:
            if not implements(callback, method):
                setattr(self, method, None)
            elif method in ASKED:
                setattr(self, method, self._asking(method))
            else:
                setattr(self, method, self._telling(method))

    def __getattr__(self, name: str) -> object:
        return getattr(self._callback, name)

    def recv_update_response(self, response: UpdateResponse) -> None:
        """Queue a response for the callback."""
        self._hand("recv_update_response", response)

    # -- telling --------------------------------------------------------------------------------------

    def _telling(self, method: str) -> Callable[[object], None]:
        return lambda argument: self._hand(method, argument)

    def _hand(self, method: str, argument: object) -> None:
        if self._handed - self._taken >= WAITING:
            raise RuntimeError(f"its event loop has {WAITING} pending calls and executes none of them")
        self._handed += 1
        self._loop.call_soon_threadsafe(self._add, method, argument)

    def _add(self, method: str, argument: object) -> None:
        self._calls.append((method, argument))
        if self._worker is None:
            self._worker = self._loop.create_task(self._work())

    async def _work(self) -> None:
        while self._calls:
            method, argument = self._calls.popleft()
            try:
                await self._call(method, argument)
            except CONTAINED as error:
                self._report(method, error)
            self._taken += 1
        self._worker = None

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
