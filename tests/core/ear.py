"""An ear: an event sink that remembers what it was told, for tests to ask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.core.kit import RM, document, with_plugins
from yunikorn import api


class Ear:
    """What was told so far, and the way to an RM that listens."""

    def __init__(self) -> None:
        self.events: list[api.Event] = []

    def rm(self, *partitions: Any) -> RM:
        """An RM whose scheduler tells this ear everything."""
        events = self.events

        class Recorder(api.EventSink):
            name = "recorder"

            def send(self, batch: Sequence[api.Event]) -> None:
                events.extend(batch)

        return RM(self.text(*partitions), with_plugins(event_sinks=[Recorder]))

    @staticmethod
    def text(*partitions: Any) -> str:
        """The text of a configuration that tells this ear everything."""
        return document(*partitions, events={"sinks": ["recorder"]})

    def of(self, *details: str) -> list[tuple[str, str, str, str]]:
        """Object, reference, change and detail of the events with one of these details, oldest first."""
        return [
            (one.object_id, one.reference_id, one.change, one.detail)
            for one in self.events
            if one.detail in details
        ]

    def messages(self, object_id: str) -> list[str]:
        """What was said of an object in words, oldest first."""
        return [one.message for one in self.events if one.object_id == object_id and one.message]
