"""Doors: parts of a service through which people and programs reach its core."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Protocol, TypeVar

from yunikorn.api.base import Plugin

T = TypeVar("T")


class RunningCore(Protocol):
    """Core of a running service, which has a thread of its own.

    The coroutines wait without blocking the event loop. An operation gets the scheduler
    (`yunikorn.interface.scheduler`), and runs between two decisions. The core begins when all doors are open.
    """

    def read(self, reading: Callable[[Any], Generator[Any, None, T]]) -> Awaitable[T]:
        """Carry out a generator function of the scheduler, in slices between decisions; return its result.

        The core goes on at each `yield`, and may have changed after it.
        """
        ...

    def call(self, operation: Callable[[Any], T]) -> Awaitable[T]:
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

    def run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine of the door until it ends, or until the door has stopped: then it is cancelled.

        Its exception is logged with the name of the door, which is not ready from then on.
        """
        ...


class Door(Plugin):
    """Part of a service through which people or programs reach its core.

    `yunikorn serve --NAME` opens a door, and `--NAME-OPTION VALUE` sets an option, an attribute of the class.
    Help shows the first line of the docstring, and `metadata={"help": TEXT}` of an attribute. The coroutines
    run in the event loop of the service, and must not block it.
    """

    async def start(self, service: Service) -> str:
        """Open the door; return the address to print, or an empty text.

        An exception ends the service with its text, as does a door that is not open after a minute. The core
        begins when all doors are open: wait for it only in `service.run_in_background`.
        """
        raise TypeError(f"{type(self).__name__} has no start(service)")

    async def stop(self) -> None:
        """Close the door; called once, before the core ends, also if `start` has failed or was cancelled.

        After ten seconds the call is ended.
        """

    async def reload(self) -> None:
        """Read files again, such as certificates; called after SIGHUP."""

    def unready(self) -> str:
        """Return the reason for which the door is not ready; empty if it is. Readiness probes read it."""
        return ""
