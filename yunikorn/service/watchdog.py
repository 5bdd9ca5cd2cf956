"""Detection of a hanging core: a plugin that hangs cannot be interrupted, but can be reported."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from yunikorn.errors import CONTAINED
from yunikorn.interface.threaded import ThreadedScheduler
from yunikorn.service.looking import look_repeatedly

_log = logging.getLogger("yunikorn.core")


class Watchdog:
    """Observer of the core's progress; `look` must be called at intervals."""

    def __init__(self, core: ThreadedScheduler, patience: float) -> None:
        self._core = core
        self._patience = patience
        self._steps = -1
        self._since = 0.0
        self.hangs = False
        """True if the core is busy and has made no progress for the allowed time."""

    def look(self, now: float) -> bool:
        """Check the core at time `now` (seconds, any clock); returns True if `hangs` has changed."""
        core = self._core
        if core.steps != self._steps or not core.at_work:
            self._steps, self._since = core.steps, now
        hangs = now - self._since >= self._patience
        if hangs == self.hangs:
            return False
        self.hangs = hangs
        if hangs:
            _log.critical(
                "the core has made no progress for %.0f s; current activity: %s",
                now - self._since,
                self._doing(),
            )
        else:
            _log.warning("the core makes progress again")
        return True

    def _doing(self) -> object:
        try:
            return self._core.core_activity() or "none: its thread has ended"
        except CONTAINED as error:
            return f"unknown: {type(error).__name__}: {error}"


async def keep_watch(dog: Watchdog, told: Callable[[bool], Awaitable[object]], interval: float) -> None:
    """Check the core at intervals, and call `told` when its progress stops or resumes."""
    reported = dog.hangs

    async def look(now: float) -> None:
        nonlocal reported
        dog.look(now)
        if dog.hangs != reported:
            await told(not dog.hangs)
            reported = dog.hangs

    await look_repeatedly(look, interval, "watching the progress of the core")
