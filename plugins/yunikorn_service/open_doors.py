"""Doors of a running service: opened, reloaded and closed together."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Sequence

from yunikorn import api
from yunikorn.api import Door
from yunikorn.clock import Clock
from yunikorn.containment import contained, describe_error, exact_text
from yunikorn.errors import UsageError
from yunikorn.framework.kinds import DOOR
from yunikorn.framework.registry import Registry
from yunikorn_service.service_door import CoreParts, ServiceDoor

_log = logging.getLogger("yunikorn.service")

OPENING = 60.0
"""Seconds that the door of another package has to open, and to read its files again."""
CLOSING = 10.0
"""Seconds that the door of another package has to close."""


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

    def core_parts(self, clock: Clock) -> CoreParts:
        """Return the parts that the doors add to the core."""
        parts = CoreParts(clock)
        for door in self._doors:
            if isinstance(door, ServiceDoor):
                door.prepare(parts)
        return parts

    async def open(self, service: api.Service) -> dict[str, str]:
        """Open all doors, or none; returns their addresses by name. Raises `UsageError`."""
        bound: dict[str, str] = {}
        try:
            for door in self._doors:
                self._opened.append(door)
                bound[door.name] = await self._open(door, service)
        except UsageError:
            # The last one has closed what it had opened.
            self._opened.pop()
            await self.close()
            raise
        return {name: address for name, address in bound.items() if address}

    async def close(self) -> None:
        """Close all doors that are open."""
        while self._opened:
            door = self._opened.pop(0)
            async with self._contained(door, "closing", CLOSING):
                await door.stop()

    async def reload(self) -> None:
        """Let all doors read their files again."""
        for door in self._opened:
            async with self._contained(door, "reloading", OPENING):
                await door.reload()

    def unready(self) -> str:
        """Return the reason for which a door is not ready; empty if all are."""
        for door in self._doors:
            try:
                reason = exact_text(door.unready())
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

    async def _open(self, door: Door, service: api.Service) -> str:
        if isinstance(door, ServiceDoor):
            return await door.start(service)
        try:
            async with asyncio.timeout(OPENING):
                return exact_text(await door.start(service))
        except TimeoutError:
            reason = f"it took longer than {OPENING:g} s"
        except asyncio.CancelledError:
            raise
        except contained() as error:
            reason = describe_error(error)
        raise UsageError(f"{self._named(door)} cannot be opened: {reason}")

    @contextlib.asynccontextmanager
    async def _contained(self, door: Door, operation: str, limit: float) -> AsyncIterator[None]:
        """Log failures of a door of another package, whose time is limited; others propagate."""
        if isinstance(door, ServiceDoor):
            yield
            return
        try:
            async with asyncio.timeout(limit):
                yield
        except TimeoutError:
            _log.error("%s %s took longer than %g s and was ended", operation, self._named(door), limit)
        except asyncio.CancelledError:
            raise
        except contained() as error:
            _log.error("%s %s: %s", operation, self._named(door), describe_error(error))

    def _named(self, door: Door) -> str:
        """Return a door with its package, for messages."""
        offer = next((one for one in self._registry.offers(DOOR) if one.cls is type(door)), None)
        return f"door {door.name if offer is None else offer.origin}"
