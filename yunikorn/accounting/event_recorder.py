"""The event recorder: collects events until they are handed to the event sinks.

No event is built without a listener. Check `EventRecorder.enabled` before building an expensive message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from yunikorn.api import Event
from yunikorn.event_types import EventChange, EventDetail, EventType

if TYPE_CHECKING:
    from yunikorn.clock import Clock

MESSAGE_LENGTH = 1024
"""Maximum length of an event message in characters, as in YuniKorn 1.9; longer messages are cut."""


def shortened(message: str) -> str:
    """Cut a message to `MESSAGE_LENGTH`."""
    return message if len(message) <= MESSAGE_LENGTH else message[: MESSAGE_LENGTH - 3] + "..."


class EventRecorder:
    """Buffer of events for the event sinks, oldest first."""

    __slots__ = ("_clock", "enabled", "events")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.events: list[Event] = []
        """Collected events, oldest first."""
        self.enabled = True
        """True if any sink wants events; also true until the sinks are known, so that early events are
        kept."""

    def record(
        self,
        kind: EventType,
        object_id: str,
        reference_id: str = "",
        *,
        change: EventChange = EventChange.NONE,
        detail: EventDetail = EventDetail.DETAILS_NONE,
        message: str = "",
        resource: Mapping[str, int] | None = None,
        reason: str = "",
    ) -> None:
        """Record an event, if `enabled`.

        Kinds, changes and details are those of YuniKorn 1.9. Every event has a `change`, a `detail` or a
        `reason`, because the RM receives one of the three.
        """
        if not self.enabled:
            return
        message = shortened(message)
        # A tally changes later: copy the present amounts.
        amount = None if resource is None else dict(resource)
        self.events.append(
            Event(kind, object_id, reference_id, message, change, detail, amount, self._clock.now(), reason)
        )

    def listen(self, *, wanted: bool) -> None:
        """Enable or disable recording; disabling discards the collected events."""
        self.enabled = wanted
        if not wanted:
            self.events.clear()

    def drain(self) -> list[Event]:
        """Return the collected events and clear the buffer."""
        if not self.events:
            return []
        events, self.events = self.events, []
        return events
