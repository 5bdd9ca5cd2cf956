"""Polling loops that observe the core, and continue after errors."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from yunikorn.errors import CONTAINED

_log = logging.getLogger("yunikorn.service")


async def look_repeatedly(look: Callable[[float], Awaitable[None]], interval: float, purpose: str) -> None:
    """Call `look` with the loop's time every `interval` seconds, until the task is cancelled.

    Errors do not end the loop, since a look may read data that another thread is changing. Each type of error
    is logged once.
    """
    loop = asyncio.get_running_loop()
    reported: set[type[BaseException]] = set()
    while True:
        try:
            await look(loop.time())
        except CONTAINED as error:
            if type(error) not in reported:
                reported.add(type(error))
                text = "%s: a check failed; checks continue: %s: %s"
                _log.error(text, purpose, type(error).__name__, error, exc_info=error)
        await asyncio.sleep(interval)
