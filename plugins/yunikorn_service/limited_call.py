"""Calls that run code of plugins outside the core, with a time limit: a call that exceeds it is left behind.

Such a call cannot be interrupted. Its thread is a daemon, so that it does not keep the process from ending.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from concurrent.futures import TimeoutError as NotDone
from typing import Generic, TypeVar

from yunikorn.errors import UsageError
from yunikorn_commands.plugin_threads import describe_thread

T = TypeVar("T")


class LimitedCall(Generic[T]):
    """Call of a function in a thread of its own, for at most `limit` seconds."""

    def __init__(self, what: str, function: Callable[[], T], limit: float) -> None:
        """Start the call; `what` names it in messages."""
        self._what, self._function, self._limit = what, function, limit
        self._future: Future[T] = Future()
        self._thread = threading.Thread(target=self._run, name=what, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with contextlib.suppress(InvalidStateError):  # after the limit, the future is cancelled
            try:
                result = self._function()
            except BaseException as error:
                self._future.set_exception(error)
            else:
                self._future.set_result(result)

    def result(self) -> T:
        """Return the result, or raise the exception of the function; raises `UsageError` after the limit."""
        try:
            return self._future.result(self._limit)
        except NotDone:
            if self._future.done():
                raise
            raise self._too_long() from None

    async def wait(self) -> T:
        """Return the result as `result` does, without blocking the event loop."""
        waiting = asyncio.wrap_future(self._future)
        done, _ = await asyncio.wait([waiting], timeout=self._limit)
        if done:
            return waiting.result()
        raise self._too_long()

    def _too_long(self) -> UsageError:
        return UsageError(
            f"{self._what} has not ended within {self._limit:g} s; it runs {describe_thread(self._thread)}."
            " Its thread ends only with the process"
        )
