"""Plugins that a registration opens, their order, cleanup after a failed registration, and nested calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import attrs
import pytest

from tests.core.kit import RM, document, partition, queue, with_plugins
from tests.core.test_memory import held
from tests.shim_plugins.shim import Listening
from yunikorn.api import Application, Ask, Context, Event, EventSink, Node, PlacementRule, Predicate
from yunikorn.clock import ManualClock
from yunikorn.errors import ConfigError, UsageError
from yunikorn.interface.messages import RegisterResourceManagerRequest, ReSyncSchedulerCacheArgs
from yunikorn.interface.scheduler import Scheduler

reported: list[str] = []
"""Life-cycle calls of plugins, in order."""


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    yield
    reported.clear()
    Rule.left = None


@attrs.define(eq=False)
class Rule(PlacementRule):
    """Raises after `left` more instances have been created."""

    name = "rule"
    left: ClassVar[int | None] = None

    def __attrs_post_init__(self) -> None:
        if Rule.left is not None:
            Rule.left -= 1
            if Rule.left < 0:
                raise RuntimeError("no licence left")

    def opened(self, context: Context) -> None:
        reported.append(f"rule opened in {context.partition}")

    def closed(self) -> None:
        reported.append("rule closed")

    def place(self, app: Application) -> str:
        return "root.a"


@attrs.define(eq=False)
class File(EventSink):
    """Represents a file that a single sink may write to."""

    name = "file"
    mark: str = ""

    def opened(self, context: Context) -> None:
        reported.append(f"file opened{self.mark}")

    def send(self, batch: Sequence[Event]) -> None:
        return None

    def closed(self) -> None:
        reported.append(f"file closed{self.mark}")


def two_partitions() -> str:
    rules = [{"name": "rule"}]
    first, second = (partition(queue("a"), name=name, placementrules=rules) for name in ("default", "second"))
    return document(first, second)


def made_by(config: str) -> int:
    """Return the number of rules that a registration creates, those of the check included."""
    Rule.left = 100
    RM(config, with_plugins(placement_rules=[Rule]))
    used, Rule.left = 100 - Rule.left, None
    reported.clear()
    assert used > 2
    return used


def test_failed_registration_closes_all_plugins() -> None:
    scheduler = Scheduler(with_plugins(placement_rules=[Rule]), ManualClock())
    request = RegisterResourceManagerRequest("rm", config=two_partitions())
    for left in range(made_by(two_partitions())):
        Rule.left = left
        with pytest.raises(ConfigError, match="no licence left"):
            scheduler.register_resource_manager(request, RM())
        opened, closed = (sum(operation in one for one in reported) for operation in ("opened", "closed"))
        assert opened == closed, "what was opened before the failure is closed"
        assert scheduler.session_state("rm") == "Stopped"
    reported.clear()
    Rule.left = None
    scheduler.register_resource_manager(request, RM())
    assert reported == ["rule opened in default", "rule opened in second"]


def test_failed_registrations_leave_no_timers() -> None:
    scheduler = Scheduler(with_plugins(placement_rules=[Rule]), ManualClock())
    request = RegisterResourceManagerRequest("rm", config=two_partitions())
    callback, made = RM(), made_by(two_partitions())

    def fail(times: int) -> int:
        for _ in range(times):
            Rule.left = made - 1
            with pytest.raises(ConfigError, match="no licence left"):
                scheduler.register_resource_manager(request, callback)
            assert scheduler.next_timer() is None
        return held(scheduler)

    before = fail(20)
    assert fail(20) <= before + 5


def test_checked_configuration_opens_no_plugins() -> None:
    rm = RM(document(partition(queue("a"))), with_plugins(placement_rules=[Rule]))
    rm.scheduler.check_configuration("rm", two_partitions())
    assert reported == []


def test_old_sinks_of_an_rm_close_before_new_ones_open() -> None:
    config = document(partition(queue("a"), placementrules=[{"name": "rule"}]), events={"sinks": ["file"]})
    rm = RM(config, with_plugins(event_sinks=[File], placement_rules=[Rule]))
    begin = ["rule opened in default", "file opened"]
    assert reported == begin
    rm.scheduler.register_resource_manager(RegisterResourceManagerRequest("rm", config=config), rm)
    # A rule that cannot be opened refuses the registration, so it is opened before anything ends.
    assert reported == [*begin, begin[0], "rule closed", "file closed", begin[1]]


def test_changed_sink_is_opened_after_the_old_one_is_closed() -> None:
    def config(mark: str) -> str:
        return document(partition(queue("a")), events={"sinks": [{"name": "file", "mark": mark}]})

    rm = RM(config(" 1"), with_plugins(event_sinks=[File]))
    rm.reload(config(" 2"))
    assert reported == ["file opened 1", "file closed 1", "file opened 2"]


# -- stopping and starting -----------------------------------------------------------------------------------

CALLS = {
    "stop_queue": ("rm", "default", "root.a"),
    "start_queue": ("rm", "default", "root.a"),
    "stop_partition": ("rm", "default"),
    "start_partition": ("rm", "default"),
    "drain_node": ("rm", "default", "n1"),
    "undrain_node": ("rm", "default", "n1"),
}


@pytest.mark.parametrize("call", CALLS)
def test_plugins_are_not_closed_or_opened_during_a_decision(call: str) -> None:
    refusals: list[str] = []

    class Meddler(Predicate):
        """Calls the scheduler from within a predicate."""

        name = "meddler"

        def check(self, ask: Ask, node: Node) -> None:
            try:
                getattr(rm.scheduler, call)(*CALLS[call])
            except UsageError as error:
                refusals.append(str(error))

    rm = RM(document(partition(queue("a"), predicates=["meddler"])), with_plugins(predicates=[Meddler]))
    rm.node("n1", vcore=1)
    rm.app()
    rm.ask(vcore=1)
    assert len(rm.schedule()) == 1
    assert refusals
    assert refusals[0].startswith(f"{call} was called while the core is making decisions: ")


def test_results_of_stopping_and_starting_are_delivered_immediately() -> None:
    rm = Listening(document(partition(queue("a"))))
    rm.node("n1", vcore=1)
    for call, message in (("stop_queue", "queue stopped"), ("start_queue", "queue started")):
        rm.everything.clear()
        getattr(rm.scheduler, call)(*CALLS[call])
        assert [event.message for event in rm.events] == [message]


# -- an interrupt --------------------------------------------------------------------------------------------


class Interrupted(Listening):
    """Is interrupted during a cache update."""

    interrupts = True

    def resync_scheduler_cache(self, args: ReSyncSchedulerCacheArgs) -> None:
        if self.interrupts:
            raise KeyboardInterrupt
        super().resync_scheduler_cache(args)


def test_interrupt_during_cache_updates_loses_no_response() -> None:
    rm = Interrupted(document(partition(queue("a"))))
    rm.node("n1", vcore=2)
    rm.app()
    rm.ask(key="first", vcore=1)
    with pytest.raises(KeyboardInterrupt):
        rm.schedule()
    assert rm.entries("new_allocations") == []
    rm.interrupts = False
    rm.ask(key="second", vcore=1)
    assert rm.schedule() == [("app", "second", "n1")]
    assert [one.allocation_key for one in rm.entries("new_allocations")] == ["first", "second"]
