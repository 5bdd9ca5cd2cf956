"""Test kit for events: an event sink that records all events of a scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.core.kit import RM, document, with_plugins
from yunikorn import api


class EventCollector:
    """Events recorded so far, and a factory of RMs whose schedulers send events here."""

    def __init__(self) -> None:
        self.events: list[api.Event] = []

    def rm(self, *partitions: Any) -> RM:
        """Return an RM whose scheduler sends all events to this object."""
        events = self.events

        class Recorder(api.EventSink):
            name = "recorder"

            def send(self, batch: Sequence[api.Event]) -> None:
                events.extend(batch)

        return RM(self.text(*partitions), with_plugins(event_sinks=[Recorder]))

    @staticmethod
    def text(*partitions: Any) -> str:
        """Return the text of a configuration with the recording sink."""
        return document(*partitions, events={"sinks": ["recorder"]})

    def of(self, *details: str) -> list[tuple[str, str, str, str]]:
        """Return object, reference, change and detail of the events with these details, oldest first."""
        return [
            (one.object_id, one.reference_id, one.change, one.detail)
            for one in self.events
            if one.detail in details
        ]

    def messages(self, object_id: str) -> list[str]:
        """Return the messages of all events of an object, oldest first."""
        return [one.message for one in self.events if one.object_id == object_id and one.message]
