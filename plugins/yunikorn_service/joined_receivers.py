"""Several receivers of events in the place of the one that a core has, such as those of REST and history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from yunikorn.accounting.event_batch import EventBatch
from yunikorn.framework.event_wants import union_of
from yunikorn.interface.sinks import EventReceiver


class JoinedReceivers:
    """Receivers that each get the events they want, from the resource managers that let them."""

    def __init__(self, receivers: Sequence[EventReceiver]) -> None:
        self._receivers = receivers
        self.failures_seen = 0
        self.wanted = union_of(one.wanted for one in receivers)
        self._fewer: dict[str, list[EventReceiver]] = {}
        """Receivers by the resource manager that keeps its events from the others."""

    def append(self, batch: EventBatch) -> None:
        """Pass each receiver the events that it wants."""
        for receiver in self._fewer.get(batch.source[0], self._receivers):
            receiver.append(batch.selected(receiver.wanted))

    def configure(self, rm_id: str, settings: Mapping[str, str] | None) -> bool:
        """Let each receiver apply the settings; returns False if none gets events of the resource manager."""
        found = [one for one in self._receivers if one.configure(rm_id, settings)]
        if settings is not None:
            # At the end of a session its last events follow, so that its receivers stay as they are.
            self._fewer.pop(rm_id, None)
            if len(found) < len(self._receivers):
                self._fewer[rm_id] = found
            # A receiver may switch itself off until the first registration.
            self.wanted = union_of(one.wanted for one in self._receivers)
        return bool(found)
