"""The event recorder: collects events until they are handed to the event sinks.

Nothing is made that no open sink wants. Callers on the path of a decision test one attribute for the kind of
event, such as `EventRecorder.wants_allocations`, before they prepare anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from yunikorn.accounting.event_batch import (
    ALLOCATED,
    ASKED,
    NO_SOURCE,
    RELEASED,
    RESIZED,
    USAGE,
    USED,
    Entry,
    EventBatch,
)
from yunikorn.api import Event
from yunikorn.event_types import DETAILS_OF_TYPE, EventChange, EventDetail, EventType
from yunikorn.framework.event_wants import EVERYTHING, Wanted
from yunikorn.resources import Resource

if TYPE_CHECKING:
    from yunikorn.clock import Clock
    from yunikorn.model.allocation import Allocation
    from yunikorn.model.application import Application
    from yunikorn.model.ask import Ask
    from yunikorn.model.ask_class import Pairs

MESSAGE_LENGTH = 1024
"""Maximum length of an event message in characters, as in YuniKorn 1.9; longer messages are cut."""

_REMOVALS = tuple(one for one in EventDetail if one.startswith("ALLOC_"))
_WAITING = tuple(one for one in EventDetail if one.startswith(("APP_RUNNABLE", "APP_CANNOTRUN")))


def shortened(message: str) -> str:
    """Cut a message to `MESSAGE_LENGTH`."""
    return message if len(message) <= MESSAGE_LENGTH else message[: MESSAGE_LENGTH - 3] + "..."


class EventRecorder:
    """Buffer of events for the event sinks, oldest first."""

    __slots__ = (
        "_clock",
        "_wanted",
        "enabled",
        "entries",
        "source",
        "wants_allocations",
        "wants_asks",
        "wants_releases",
        "wants_requests",
        "wants_usage",
        "wants_waiting",
    )

    def __init__(self, clock: Clock) -> None:
        """Record everything until the sinks are known, so that early events are kept."""
        self._clock = clock
        self.entries: list[Entry] = []
        """Collected events, oldest first, as in `EventBatch`."""
        self.source = NO_SOURCE
        """Resource manager and partition of the events; set by the session."""
        self.listen(EVERYTHING)

    def listen(self, wanted: Wanted) -> None:
        """Record these events from now on; collected events that are not wanted are discarded."""
        self._wanted = wanted
        self.enabled = bool(wanted)
        """True if any sink wants events of the core."""
        placed = wanted.takes(EventType.NODE, EventDetail.NODE_ALLOC)
        self.wants_allocations = placed or wanted.takes(EventType.APP, EventDetail.APP_ALLOC)
        """True if events of new allocations are wanted."""
        self.wants_releases = placed or wanted.takes_any(EventType.APP, _REMOVALS)
        """True if events of ended allocations are wanted."""
        self.wants_asks = wanted.takes(EventType.APP, EventDetail.APP_REQUEST)
        """True if events of new asks are wanted."""
        self.wants_usage = wanted.takes_any(EventType.USERGROUP, USAGE)
        """True if events of the usage of users and groups are wanted."""
        self.wants_requests = wanted.takes_any(EventType.REQUEST, DETAILS_OF_TYPE[EventType.REQUEST])
        """True if events that say why a request waits are wanted; these have long messages."""
        self.wants_waiting = wanted.takes_any(EventType.APP, _WAITING)
        """True if events of applications that wait to become running are wanted."""

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
        app: Application | None = None,
        node_id: str = "",
    ) -> None:
        """Record an event, if it is wanted; `app` and `node_id` are those that the event concerns.

        Kinds, changes and details are those of YuniKorn 1.9. Every event has a `change`, a `detail` or a
        `reason`, because the RM receives one of the three.
        """
        if not self.enabled or not self._wanted.takes(kind, detail, reason):
            return
        # A tally changes later: copy the present amounts.
        amount = resource if resource is None or isinstance(resource, Resource) else Resource(resource)
        message, now = shortened(message), self._clock.now()
        where = ("", "") if app is None else (app.id, _queue_of(app))
        self.entries.append(
            Event(
                kind, object_id, reference_id, message, change, detail, amount, now, reason, *where, node_id
            )
        )

    # -- changes on the path of a decision: called only if they are wanted ------------------------------

    def now(self) -> int:
        """Return the time of an event that happens now (ns)."""
        return self._clock.now()

    def allocated(self, allocation: Allocation, now: int) -> None:
        """Record a new allocation, if `wants_allocations`."""
        self.entries.append((ALLOCATED, now, allocation, allocation.resource))

    def released(self, allocation: Allocation, detail: EventDetail, message: str) -> None:
        """Record the end of an allocation, if `wants_releases`."""
        now, message = self._clock.now(), shortened(message)
        self.entries.append((RELEASED, now, allocation, allocation.resource, detail, message))

    def resized(self, allocation: Allocation, before: Resource) -> None:
        """Record a new size of an allocation, if `wants_releases`."""
        self.entries.append((RESIZED, self._clock.now(), allocation, before, allocation.resource))

    def asked(self, app: Application, asks: Sequence[Ask]) -> None:
        """Record new asks of an application, if `wants_asks`."""
        resources = [ask.resource for ask in asks]
        self.entries.append((ASKED, self._clock.now(), tuple(asks), resources, _queue_of(app)))

    def used(self, app: Application, change: EventChange, pairs: Pairs, now: int) -> None:
        """Record changed usage of the application's user and group, if `wants_usage`."""
        self.entries.append((USED, now, change, _queue_of(app), app.user, app.group, pairs))

    def drain(self) -> EventBatch:
        """Return the collected events and clear the buffer."""
        entries = self.entries
        if entries:
            self.entries = []
        return EventBatch(entries, self._wanted, self.source)


def _queue_of(app: Application) -> str:
    return app.chain[0].path if app.chain else ""
