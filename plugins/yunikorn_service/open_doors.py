"""Doors of a running service: opened, reloaded and closed together."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any

from yunikorn import api
from yunikorn.api import Door
from yunikorn.containment import contained, describe_error, exact_text, safe_repr
from yunikorn.errors import UsageError, printable
from yunikorn.framework.kinds import DOOR
from yunikorn.framework.registry import Registry
from yunikorn_service.background import BackgroundTasks
from yunikorn_service.runtime.threaded import CoreStopped
from yunikorn_service.service_door import CoreParts, ServiceDoor

_log = logging.getLogger("yunikorn.service")

OPENING = 60.0
"""Seconds that the door of another package has to open, and to read its files again."""
CLOSING = 10.0
"""Seconds that the door of another package has to close."""
BLOCKED = 5.0
"""Further seconds after which a door that blocks the event loop, and cannot be ended, is reported."""
ENDED_BY_DOOR = 70
"""Exit status when a door blocks the event loop at the start or the end of a service."""


class OpenDoors:
    """The doors of one service. Failures of doors of other packages are contained, and name the door."""

    def __init__(self, doors: Sequence[Door], registry: Registry) -> None:
        """Take the doors in the order in which they are opened and closed."""
        self._registry = registry
        managed = [one for one in doors if isinstance(one, ServiceDoor) and one.for_resource_managers]
        self.for_resource_managers = managed[0] if managed else None
        """Door of resource managers, which is the last one; None for a service without."""
        self._doors = [*(one for one in doors if one not in managed), *managed]
        self._opened: list[Door] = []
        self._tasks = BackgroundTasks(_log)
        self._ended: dict[int, str] = {}
        """Errors of doors whose work in the background has ended by one, by the id of the door."""

    def prepared(self, parts: CoreParts) -> CoreParts:
        """Return the parts of a core, with those that the doors add."""
        for door in self._doors:
            if isinstance(door, ServiceDoor):
                door.prepare(parts)
        return parts

    async def open(self, service: api.Service) -> dict[str, str]:
        """Open all doors, and return their addresses by name.

        Raises `UsageError` for a door that cannot be opened; `close` then closes those before it.
        """
        bound: dict[str, str] = {}
        for door in self._doors:
            if isinstance(door, ServiceDoor):
                bound[door.name] = await door.start(service)
                self._opened.append(door)
            else:
                # Closed even if it cannot be opened: it need not undo a half of its start.
                self._opened.append(door)
                bound[door.name] = await self._open(door, service)
        return {name: address for name, address in bound.items() if address}

    async def close(self) -> None:
        """Close all doors that are open."""
        while self._opened:
            door = self._opened.pop(0)
            async with self._contained(door, "closing", CLOSING):
                await door.stop()
            await asyncio.sleep(0)  # work that has not begun could not end
            self._tasks.cancel(id(door))
        await self._tasks.close()

    async def reload(self) -> None:
        """Let all doors read their files again."""
        for door in self._opened:
            async with self._contained(door, "reloading", OPENING):
                await door.reload()

    def unready(self) -> str:
        """Return the reason for which a door is not ready; empty if all are."""
        for door in self._doors:
            try:
                reason = self._ended.get(id(door)) or _text(door.unready(), "unready()")
            except contained() as error:
                reason = f"{self._named(door)} has failed: {describe_error(error)}"
            if reason:
                return reason
        return ""

    def closed(self) -> None:
        """Release what the doors keep until the end of the core."""
        for door in self._doors:
            try:
                door.closed()
            except contained() as error:
                _log.error("closing %s: %s", self._named(door), describe_error(error))

    def run_in_background(self, door: Door, work: Coroutine[Any, Any, None]) -> None:
        """Run work of a door until the door is closed; an error makes the door not ready."""

        async def contained_work() -> None:
            try:
                await work
            except CoreStopped:
                pass
            except contained() as error:
                if _is_cancelled(error):
                    raise  # the door is closed
                reason = self._ended[id(door)] = f"{self._named(door)} has failed: {describe_error(error)}"
                _log.error("%s", reason, exc_info=error)

        self._tasks.begin(contained_work(), f"the work of {self._named(door)}", key=id(door))

    async def _open(self, door: Door, service: api.Service) -> str:
        try:
            async with _limited(OPENING, lambda: self._end(door, "start()")):
                return _text(await door.start(_ServiceOfDoor(service, self, door)), "start()")
        except _TookTooLong as error:
            reason = (
                f"{error} (the core begins when all doors are open: a door waits for it in"
                " service.run_in_background)"
            )
        except contained() as error:
            if _is_cancelled(error):
                raise  # a signal ends the service
            reason = describe_error(error)
        raise UsageError(f"{self._named(door)} cannot be opened: {reason}")

    @contextlib.asynccontextmanager
    async def _contained(self, door: Door, operation: str, limit: float) -> AsyncIterator[None]:
        """Log failures of a door of another package, whose time is limited; others propagate."""
        if isinstance(door, ServiceDoor):
            yield
            return
        blocked = self._report if operation == "reloading" else self._end
        try:
            async with _limited(limit, lambda: blocked(door, operation)):
                yield
        except _TookTooLong as error:
            _log.error("%s %s: %s", operation, self._named(door), error)
        except contained() as error:
            if _is_cancelled(error):
                raise
            _log.error("%s %s: %s", operation, self._named(door), describe_error(error))

    def _report(self, door: Door, operation: str) -> None:
        code = sys._current_frames()[threading.main_thread().ident or 0]
        place = printable(f"{code.f_code.co_filename}, line {code.f_lineno}")
        _log.error("%s: %s blocks the event loop of the service: %s", self._named(door), operation, place)

    def _end(self, door: Door, operation: str) -> None:
        """End the process, which nothing else could: the event loop takes neither signals nor calls."""
        self._report(door, operation)
        os._exit(ENDED_BY_DOOR)

    def _named(self, door: Door) -> str:
        """Return a door with its package, for messages."""
        offer = next((one for one in self._registry.offers(DOOR) if one.cls is type(door)), None)
        return f"door {door.name if offer is None else offer.origin}"


class _ServiceOfDoor:
    """The service as a door of another package has it."""

    def __init__(self, service: api.Service, doors: OpenDoors, door: Door) -> None:
        self.core, self.now, self.unready = service.core, service.now, service.unready
        self._doors, self._door = doors, door

    def run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine of the door. See `yunikorn.api.Service`."""
        self._doors.run_in_background(self._door, work)


class _TookTooLong(Exception):
    """Error for a door that took longer than it may."""


@contextlib.asynccontextmanager
async def _limited(seconds: float, blocked: Callable[[], object]) -> AsyncIterator[None]:
    """Limit the time of a block; `blocked` is called, by a thread, if the event loop cannot end it."""
    timer = threading.Timer(seconds + BLOCKED, blocked)
    timer.daemon = True
    timer.start()
    try:
        async with asyncio.timeout(seconds) as limit:
            yield
    except TimeoutError:
        if limit.expired():
            raise _TookTooLong(f"it took longer than {seconds:g} s, and was ended") from None
        raise
    except asyncio.CancelledError as error:
        if _is_cancelled(error):
            raise
        raise RuntimeError("it awaited work that was cancelled") from error
    finally:
        timer.cancel()


def _is_cancelled(error: BaseException) -> bool:
    """Return True if an error cancels the current task, and is not that of work a door has cancelled."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def _text(value: object, method: str) -> str:
    """Return the answer of a door. Raises `TypeError` for another answer than a text."""
    if not issubclass(type(value), str):
        raise TypeError(f"{method} returned {safe_repr(value)} instead of a text")
    return exact_text(value)  # type: ignore[arg-type]
