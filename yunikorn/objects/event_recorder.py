"""The event recorder: events, collected until they are handed to the sinks.

Nothing is built while nobody listens: look at `listening` before you describe something at length.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from yunikorn.api import Event

if TYPE_CHECKING:
    from yunikorn.clock import Clock

MESSAGE_LENGTH = 1024
"""Longest message of an event; more is cut (facts §12.1)."""


def shortened(message: str) -> str:
    """Cut a message to `MESSAGE_LENGTH`."""
    return message if len(message) <= MESSAGE_LENGTH else message[: MESSAGE_LENGTH - 3] + "..."


class EventRecorder:
    """Events that wait for the sinks, oldest first."""

    __slots__ = ("_clock", "_events", "enabled")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._events: list[Event] = []
        self.enabled = True
        """Whether anybody wants events; until that is known they are kept."""

    def record(
        self,
        kind: str,
        object_id: str,
        reference_id: str = "",
        *,
        change: str = "NONE",
        detail: str = "DETAILS_NONE",
        message: str = "",
        resource: Mapping[str, int] | None = None,
        reason: str = "",
    ) -> None:
        """Note an event of the catalogue in facts §12.3; nothing happens while nobody listens.

        It has a `change`, a `detail` or a `reason`: an RM is told one of the three.
        """
        if not self.enabled:
            return
        message = shortened(message)
        # A tally would change under the reader: the event keeps the amount of this moment.
        amount = None if resource is None else dict(resource)
        self._events.append(
            Event(kind, object_id, reference_id, message, change, detail, amount, self._clock.now(), reason)
        )

    def listen(self, *, wanted: bool) -> None:
        """Somebody wants events from now on, or nobody does: then those that wait go."""
        self.enabled = wanted
        if not wanted:
            self._events.clear()

    def drain(self) -> list[Event]:
        """Hand out what has been collected, and start anew."""
        if not self._events:
            return []
        events, self._events = self._events, []
        return events
