"""Bounds of what plugins report: kinds, texts, times of refresh, and sinks that report what they receive."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

import pytest

from tests.core.kit import RM, configuration, document, partition, queue, with_plugins
from yunikorn.api import Application, AppSortPolicy, Context, Event, EventSink
from yunikorn.framework.plugin_failures import MOST_KINDS, MOST_TEXTS, OVERFLOW, PluginFailures, read_seconds

PLUGIN = "mine of test (test 1.0)"


@pytest.fixture
def failures() -> PluginFailures:
    return PluginFailures()


def context_of(failures: PluginFailures) -> Context:
    return failures.context_of(PLUGIN, Context("", lambda: 0))


def test_kinds_of_reports_are_bounded_and_the_rest_is_counted(failures: PluginFailures) -> None:
    report = context_of(failures).report
    for number in range(1000):
        report(f"sending batch {number}", OSError("away"))
    by_operation = {failure.operation: failure.count for failure in failures}
    assert len(by_operation) == MOST_KINDS + 1
    assert by_operation["sending batch 0"] == 1
    assert by_operation[OVERFLOW] == 1000 - MOST_KINDS
    report("sending batch 0", OSError("away"))
    assert next(iter(failures)).count == 2, "a known kind is counted as before"


def test_reports_of_different_texts_are_all_counted_and_fewer_and_fewer_logged(
    failures: PluginFailures, caplog: pytest.LogCaptureFixture
) -> None:
    report = context_of(failures).report
    for number in range(1024):
        report("sending", f"attempt {number}")
        len(failures)
    (failure,) = failures
    assert failure.count == 1024
    assert failure.unlogged > 1000
    logged = [record.getMessage() for record in caplog.records]
    assert MOST_TEXTS < len(logged) < 24
    caplog.clear()
    failures.sum_up()
    assert f"({failure.unlogged} other texts were not logged)" in caplog.text


def test_reports_that_the_core_has_not_taken_need_bounded_memory(failures: PluginFailures) -> None:
    report = context_of(failures).report
    for number in range(10_000):
        report("sending", f"attempt {number}")
    (pending,) = failures.reports.take()
    assert (pending.times, len(pending.causes)) == (10_000, MOST_TEXTS)


def test_reports_of_several_threads_are_all_counted(failures: PluginFailures) -> None:
    report = context_of(failures).report
    threads = [
        threading.Thread(target=lambda: [report("sending", "away") for _ in range(500)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (failure,) = failures
    assert failure.count == 2000


class Echo(EventSink):
    """Reports another kind of failure for every event that it receives."""

    name = "echo"
    received: list[str]

    def opened(self, context: Context) -> None:
        self._report = context.report

    def send(self, batch: Sequence[Event]) -> None:
        for event in batch:
            self.received.append(event.type)
            self._report(f"sending event {len(self.received)}", "away")


def test_sink_that_reports_whatever_it_receives_does_not_feed_itself() -> None:
    echo: type[Echo] = type("EchoHere", (Echo,), {"received": []})
    other: type[Echo] = type("OtherHere", (Echo,), {"received": [], "name": "other"})
    names = {"sinks": ["echo"]}
    rm = RM(document(partition(queue("a")), events=names), with_plugins(event_sinks=[echo, other]))
    rm.node("n1", vcore=1)
    for _ in range(5):
        rm.schedule()
    assert "PLUGIN" not in echo.received
    rm.reload(document(partition(queue("a")), events={"sinks": ["echo", "other"]}))
    for number in range(50):
        rm.node(f"m{number}", vcore=1)
        rm.schedule()
    received = [*echo.received, *other.received]
    assert 0 < received.count("PLUGIN") <= 2 * (MOST_KINDS + 1), "two such sinks end, too"


class Restless(AppSortPolicy):
    """Asks to be recomputed far too often."""

    name = "restless"
    refresh_every = 0.001

    def key(self, app: Application) -> int:
        return 0


def test_refresh_every_has_a_floor(failures: PluginFailures) -> None:
    assert read_seconds(Restless(), "refresh_every", PLUGIN, failures) == 0.1
    (failure,) = failures
    assert (
        "reading its refresh_every: 0.001 seconds is too short; 0.1 seconds applies instead"
        in failure.message
    )
    rm = RM(
        configuration(queue("a", properties={"application.sort.policy": "restless"})),
        with_plugins(app_sort_policies=[Restless]),
    )
    assert "0.1 seconds applies instead" in rm.failures()[0]


def test_the_floor_applies_to_refresh_every_only(failures: PluginFailures) -> None:
    class Halves:
        half_life = 0.001
        refresh_every = 0

    assert read_seconds(Halves(), "half_life", PLUGIN, failures) == 0.001
    assert read_seconds(Halves(), "refresh_every", PLUGIN, failures) is None
    assert list(failures) == []


def test_reports_keep_their_order_across_plugins(
    failures: PluginFailures, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "yunikorn.plugins")
    other = failures.context_of("other", Context("", lambda: 0)).report
    context_of(failures).report("one", "a")
    other("two", "b")
    context_of(failures).report("one", "c")
    assert [(failure.plugin, failure.operation) for failure in failures] == [
        (PLUGIN, "one"),
        ("other", "two"),
    ]
