"""Conversion of the core's events to the records that a resource manager receives.

Changes for RMs that keep a cache of their nodes: allocations to assume and to forget. The RM's cache assumes
an allocation before the RM gets the response with that allocation, because the next predicate may be asked at
once. The cache forgets an allocation that the core ends without a confirmation of the RM: its node was
removed, or its application failed or was removed. An allocation that the core only asks the RM to end
(preempted, timed out, replaced) still runs, and the RM forgets it when it ends. See
`docs/decisions/archive/0037`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from yunikorn.event_types import EventChange, EventDetail, EventType
from yunikorn.interface.messages import (
    AssumedAllocation,
    EventRecord,
    EventRecordType,
    ForgotAllocation,
    ReSyncSchedulerCacheArgs,
    TerminationType,
)
from yunikorn.quantities import in_words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from yunikorn.accounting.outbox import Outbox
    from yunikorn.api import Event


_FORGOTTEN = (TerminationType.STOPPED_BY_RM, TerminationType.SCHEDULING_FAILED_ON_RM)
"""Termination types of allocations that run no more."""


class EventRecords:
    """Converter of events to records; keeps the queues of applications, which the events do not name."""

    def __init__(self, queue_of: Callable[[str], str]) -> None:
        self._queue_of = queue_of
        """Lookup of an application's queue; empty for an unknown or forgotten application."""
        self._queues: dict[str, str] = {}
        self._roomy = 16
        """Number of entries above which those of forgotten applications are removed."""

    def of(self, events: Sequence[Event]) -> list[EventRecord]:
        """Return a record for each event, in order; events of types that records lack are left out."""
        for event in events:
            if event.detail == EventDetail.QUEUE_APP and event.change == EventChange.ADD:
                # Done first, because an application has events before it has its queue.
                self._queues[event.reference_id] = event.object_id
        records = [self._record(event) for event in events if event.type in EventRecordType.__members__]
        if len(self._queues) > self._roomy:
            # No event reports that a failed application, or one of a removed partition, was forgotten.
            self._queues = {app_id: path for app_id, path in self._queues.items() if self._queue_of(app_id)}
            self._roomy = max(16, 2 * len(self._queues))
        return records

    def _record(self, event: Event) -> EventRecord:
        return EventRecord(
            EventRecordType[event.type],
            event.object_id,
            self._group(event),
            event.reason or (event.change if event.detail == EventDetail.DETAILS_NONE else event.detail),
            _message(event),
            event.timestamp,
        )

    def _group(self, event: Event) -> str:
        if event.type == EventType.REQUEST:
            return event.reference_id
        if event.type == EventType.APP:
            return self._queues.get(event.object_id) or self._queue_of(event.object_id)
        return ""


def _message(event: Event) -> str:
    """Return the message of an event, with change, reference and amount, for which records have no field."""
    if event.message and event.resource is None:
        return event.message
    words = [event.change if event.change != EventChange.NONE else "", event.reference_id]
    if event.resource is not None:
        words.append(in_words(event.resource))
    text = " ".join(word for word in words if word)
    return f"{text}: {event.message}" if event.message else text


def cache_changes(outboxes: Iterable[Outbox]) -> ReSyncSchedulerCacheArgs | None:
    """Return the cache changes of all messages in these outboxes, or None if there are none.

    An allocation that began and ended since the last call is left out.
    """
    args = ReSyncSchedulerCacheArgs()
    for outbox in outboxes:
        begun = {placed.uuid: placed for placed in outbox.allocations}
        for release in outbox.releases:
            gone = release.allocation
            if release.termination in _FORGOTTEN and not begun.pop(gone.uuid, None):
                args.forget_allocations.append(ForgotAllocation(gone.key, gone.node.id))
        args.assumed_allocations += [
            AssumedAllocation(placed.key, placed.node.id) for placed in begun.values()
        ]
    return args if args.assumed_allocations or args.forget_allocations else None
