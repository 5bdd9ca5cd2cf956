"""Violations that the contract of event sinks detects."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from tests.testing.test_contract_violations import broken_promises
from yunikorn.api import Event, EventSink


class MadeEarly(EventSink):
    """Opens a database in its constructor, which only the thread of the constructor may use."""

    name = "made-early"

    def __init__(self) -> None:
        self._database = sqlite3.connect(":memory:")

    def send(self, batch: Sequence[Event]) -> None:
        self._database.execute("select 1")


class Misspelt(EventSink):
    """Wants events that do not exist, and says so only when asked."""

    name = "misspelt"

    @property
    def wants(self) -> tuple[str, ...]:
        return ("APP:APP_ALOC",)

    def send(self, batch: Sequence[Event]) -> None:
        pass


def test_sink_that_is_bound_to_the_thread_of_its_constructor_is_found() -> None:
    found = broken_promises(MadeEarly())
    assert set(found) == {"test_creation_opens_nothing", "test_sink_works_in_a_thread_of_its_own"}
    text = found["test_sink_works_in_a_thread_of_its_own"]
    assert "sending events (the sink is switched off): ProgrammingError" in text


def test_misspelt_subscription_is_found() -> None:
    found = broken_promises(Misspelt())
    assert "did you mean 'APP_ALLOC'?" in found["test_wants_name_existing_events"]
