"""The contract of an event sink."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from yunikorn.api import Event, EventSink
from yunikorn.kinds import EVENT_SINK
from yunikorn.resources import Resource
from yunikorn.testing.plugin_contract import PluginContract, Yaml


class EventSinkContract(PluginContract):
    """What an event sink keeps: `sink = Mine(...)`.

    The sink is really used: give it options with which it writes where a test may write.
    """

    kind = EVENT_SINK
    subject = "sink"
    sink: ClassVar[EventSink]

    def name_in(self, document: Yaml) -> None:
        """As the only sink."""
        document["events"] = {"sinks": [self.named("name")]}

    def batches(self) -> Sequence[Sequence[Event]]:
        """Events of all types, with all and with nothing in them, and a batch of none."""
        kinds = ("REQUEST", "APP", "NODE", "QUEUE", "USERGROUP", "PLUGIN")
        plain = [Event(kind, f"{kind.lower()}-1") for kind in kinds]
        full = Event(
            "APP", "app-1", "ask-1", 'text, "quotes"\nand ä', "ADD", "APP_ALLOC", Resource(vcore=1), 2**62
        )
        return [plain, [full], [], [full] * 100]

    def test_it_takes_every_event(self) -> None:
        """Whatever its type, in batches of any size, none included."""
        sink = self.fresh()
        try:
            for batch in self.batches():
                sink.send(batch)
        finally:
            sink.closed()

    def test_it_leaves_a_batch_as_it_is(self) -> None:
        """Other sinks get the same one."""
        sink = self.fresh()
        try:
            for batch in self.batches():
                given = list(batch)
                sink.send(given)
                assert given == list(batch)
        finally:
            sink.closed()

    def test_it_takes_events_after_a_reload(self) -> None:
        """`reloaded` tells it that it stays in use."""
        sink = self.fresh()
        try:
            for batch in self.batches():
                sink.send(batch)
                sink.reloaded(self.context())
        finally:
            sink.closed()

    def test_it_may_end_without_an_event(self) -> None:
        """Nothing happened while it was open."""
        self.fresh().closed()
