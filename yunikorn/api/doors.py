"""Doors: parts of a service through which people and programs reach its core."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, Protocol

from yunikorn.api.base import Plugin


class RunningCore(Protocol):
    """Core of a running service, which has a thread of its own.

    The coroutines wait without blocking the event loop. An operation gets the scheduler
    (`yunikorn.interface.scheduler`), and runs between two decisions.
    """

    def read(self, reading: Any) -> Awaitable[Any]:
        """Carry out a generator function of the scheduler, in slices between decisions; return its result."""
        ...

    def call(self, operation: Callable[[Any], Any]) -> Awaitable[Any]:
        """Run a short operation, and return its result or raise its error; the core goes on."""
        ...

    def register_resource_manager(self, request: Any, callback: object) -> Awaitable[Any]:
        """Register a resource manager, with the messages of `yunikorn.interface.messages`."""
        ...

    def update(self, request: Any) -> Awaitable[None]:
        """Apply an update of a resource manager."""
        ...


class Service(Protocol):
    """Running service that a door belongs to."""

    @property
    def core(self) -> RunningCore:
        """Core of the service."""
        ...

    @property
    def now(self) -> Callable[[], int]:
        """Clock of the service (ns since 1970)."""
        ...

    def unready(self) -> str:
        """Return the reason for which a door of the service is not ready; empty if all are."""
        ...


class Door(Plugin):
    """Part of a service through which people or programs reach its core.

    `yunikorn serve --NAME` opens a door, and `--NAME-OPTION VALUE` sets an option, an attribute of the class.
    The coroutines run in the event loop of the service, and must not block it.
    """

    line: ClassVar[str]
    """Help line of the option that opens the door, as a sentence."""

    async def start(self, service: Service) -> str:
        """Open the door; return the address to print, or an empty text.

        An exception ends the service with its text, as does a door that is not open after a minute.
        """
        raise TypeError(f"{type(self).__name__} has no start(service)")

    async def stop(self) -> None:
        """Close the door; called once, before the core ends. After ten seconds the call is ended."""

    async def reload(self) -> None:
        """Read files again, such as certificates; called after SIGHUP."""

    def unready(self) -> str:
        """Return the reason for which the door is not ready; empty if it is. Readiness probes read it."""
        return ""
