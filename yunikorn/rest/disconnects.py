"""End of the work for clients that have disconnected before they had their answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from starlette.types import Receive

T = TypeVar("T")


async def unless_gone(receive: Receive, work: Awaitable[T]) -> T | None:
    """Return the result of `work`, or None if the client disconnects first, which cancels the work.

    Nothing else may receive meanwhile, apart from further questions whether the client has disconnected.
    """
    worker, is_gone = asyncio.current_task(), False
    assert worker is not None

    async def watch() -> None:
        nonlocal is_gone
        while (await receive())["type"] != "http.disconnect":
            pass
        is_gone = True
        worker.cancel()

    watcher = asyncio.create_task(watch())
    try:
        return await work
    except asyncio.CancelledError:
        if not is_gone or worker.uncancel():
            raise
        return None
    finally:
        watcher.cancel()
