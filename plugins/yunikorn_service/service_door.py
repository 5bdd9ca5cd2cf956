"""Doors of the default packages, which take a greater part in the life of a service than others.

They have options of their own on the command line, add parts to the core before it is made, and one of them
is the door of resource managers, which closes the core.
"""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar, Self

import attrs
import click

from yunikorn.api import Door
from yunikorn.clock import Clock
from yunikorn.errors import UsageError
from yunikorn_service.service_settings import Patience, ServerSettings

if TYPE_CHECKING:
    from yunikorn.interface.scheduler import Scheduler
    from yunikorn.interface.sinks import EventReceiver
    from yunikorn_service.measurements import Measurements

_log = logging.getLogger("yunikorn.service")


@attrs.define
class CoreParts:
    """Parts of a core that doors add before it is made."""

    clock: Clock
    configured: Mapping[str, Door] = attrs.Factory(dict)
    """Doors with the options of configurations, by name."""
    history_file: str = ""
    """See `ServiceOptions`."""
    make: Callable[..., Scheduler] | None = None
    """Class of the scheduler; None for `Scheduler`."""
    event_receivers: list[EventReceiver] = attrs.Factory(list)
    measurements: Measurements | None = None
    history: Any = None
    """`yunikorn_history.recorded_history.RecordedHistory`, for doors that read it; None without one."""


class ServiceDoor(Door):
    """Door of a default package."""

    for_resource_managers: ClassVar[bool] = False
    """True for the door of resource managers: it is opened last, and its `stop` closes the core."""
    ended: asyncio.Future[int] | None = None
    """Exit status, once the door has ended by itself; None for a door that ends only by `stop`."""

    @classmethod
    @abstractmethod
    def flags(cls) -> Sequence[click.Option]:
        """Return the options of commands that open and set the door."""

    @classmethod
    @abstractmethod
    def of_flags(cls, values: Mapping[str, Any], settings: ServerSettings) -> Self | None:
        """Return the door for the values of its options; None to leave it closed.

        Raises `UsageError` or `click.BadParameter` for options that cannot be used.
        """

    @property
    def config_source(self) -> str:
        """Place of the configuration, if the door reads it itself; else empty."""
        return ""

    @property
    def hang(self) -> float:
        """Seconds without progress after which the core is reported as hanging."""
        return Patience().hang

    def around(self) -> AbstractContextManager[None]:
        """Return a context for the whole run of the service, its log included."""
        return nullcontext()

    def prepare(self, parts: CoreParts) -> None:
        """Add parts to the core, before it is made."""

    async def report(self, green: bool) -> None:
        """Report to clients whether the core makes progress."""


def reload_certificates(reload: Callable[[], bool]) -> None:
    """Read certificates again by a function that returns True if they have changed; log the result."""
    try:
        if reload():
            _log.info("SIGHUP: the certificates were reloaded for new connections")
    except UsageError as error:
        _log.error("SIGHUP: the old certificates stay in use: %s", error)


def option(*names: str, **attributes: Any) -> click.Option:
    """Return an option of a command, with the arguments of `click.option`."""
    return click.Option(names, **attributes)
