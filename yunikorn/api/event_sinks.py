"""Base class of plugins that receive events."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from yunikorn.api.base import Plugin
from yunikorn.api.views import Event


class EventSink(Plugin):
    """Base class of receivers of events."""

    @property
    def wants(self) -> Collection[str] | None:
        """Events that the sink receives; None for all of them.

        Each text is a type, or a type with a detail or a reason: `wants = ("APP", "NODE:NODE_ALLOC")`. An
        event that no sink wants is not made. Read after `opened` and after `reloaded`; a class attribute or
        an option of this name takes the place of the property.
        """
        return None

    def send(self, batch: Sequence[Event]) -> None:
        """Receive events, oldest first. The batch is immutable; its events are made when it is first read.

        A sink that raises an exception is disabled and reported.
        """
        raise TypeError(f"{type(self).__name__} has no send(batch)")
