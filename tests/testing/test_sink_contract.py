"""Violations that the contract of event sinks detects."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence

from tests.testing.test_contract_violations import broken_promises, violation
from yunikorn.api import Context, Event, EventSink
from yunikorn_testing import EventSinkContract
from yunikorn_testing.answers_contract import DIFFERENT


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
    found = violation(Misspelt(), "test_wants_name_existing_events")
    assert "did you mean 'APP_ALLOC'?" in found


class Behind(EventSink):
    """Writes events in a thread that gets no processor until very many wait."""

    name = "behind"

    def opened(self, context: Context) -> None:
        self._waiting: list[Event] = []
        self._changed, self._is_over = threading.Condition(), False
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def _write(self) -> None:
        with self._changed:
            while not self._is_over:
                self._changed.wait_for(lambda: self._is_over or len(self._waiting) >= 2 * DIFFERENT)
                self._waiting.clear()

    def send(self, batch: Sequence[Event]) -> None:
        with self._changed:
            self._waiting += batch
            self._changed.notify_all()

    def closed(self) -> None:
        with self._changed:
            self._is_over = True
            self._changed.notify_all()
        self._thread.join()


def test_a_sink_whose_thread_is_behind_keeps_the_promises() -> None:
    class TestBehind(EventSinkContract):
        sink = Behind()

    TestBehind().test_memory_is_independent_of_earlier_events()
