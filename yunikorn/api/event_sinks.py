"""Base class of plugins that receive events."""

from __future__ import annotations

from collections.abc import Sequence

from yunikorn.api.base import Plugin
from yunikorn.api.views import Event


class EventSink(Plugin):
    """Base class of receivers of events."""

    def send(self, batch: Sequence[Event]) -> None:
        """Receive events, oldest first. A sink that raises an exception is disabled and reported."""
        raise TypeError(f"{type(self).__name__} has no send(batch)")
