"""Several receivers of events in a service: each gets what it wants, and what resource managers let it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.core.kit import RM, document, partition, queue, with_plugins
from yunikorn.accounting.event_batch import EventBatch
from yunikorn.api import Ask, Node, Predicate
from yunikorn.clock import ManualClock
from yunikorn.event_types import EventType
from yunikorn.framework.event_wants import EVERYTHING, NOTHING_WANTED, Wanted, read_wants
from yunikorn.interface.scheduler import Scheduler
from yunikorn_service.joined_receivers import JoinedReceivers

CONFIG = document(partition(queue("a"), predicates=["broken"]))
NO_EVENTS = {"event.trackingEnabled": "false"}


class KeptEvents:
    """A receiver that keeps everything, from those who have not switched it off."""

    failures_seen = 0

    def __init__(self, wanted: Wanted = EVERYTHING, *, obeys: bool = True) -> None:
        self.wanted, self._obeys = wanted, obeys
        self.batches: list[EventBatch] = []
        self.configured: list[tuple[str, Mapping[str, str] | None]] = []

    def append(self, batch: EventBatch) -> None:
        self.batches.append(batch)

    def configure(self, rm_id: str, settings: Mapping[str, str] | None) -> bool:
        self.configured.append((rm_id, settings))
        return not (self._obeys and settings == NO_EVENTS)

    @property
    def kinds(self) -> set[str]:
        return {event.type for batch in self.batches for event in batch}

    @property
    def sources(self) -> set[str]:
        return {batch.source[0] for batch in self.batches if batch}


def scheduler_of(*receivers: KeptEvents) -> Scheduler:
    class Broken(Predicate):
        name = "broken"

        def check(self, ask: Ask, node: Node) -> str | None:
            raise RuntimeError("broken")

    return Scheduler(
        with_plugins(predicates=[Broken]), ManualClock(7), event_receiver=JoinedReceivers(receivers)
    )


def run(scheduler: Scheduler, rm_id: str = "rm", settings: Mapping[str, str] | None = None) -> RM:
    rm = RM(CONFIG, scheduler=scheduler, rm_id=rm_id)
    scheduler.change_settings(rm_id, settings or {})
    rm.node("n", memory=10)
    rm.app("app", "root.a")
    rm.ask("app", "ask", memory=1)
    rm.schedule()
    return rm


def test_each_receiver_gets_the_events_that_it_wants() -> None:
    everything, applications = KeptEvents(), KeptEvents(read_wants(["APP"]))
    run(scheduler_of(everything, applications))
    assert {EventType.APP, EventType.NODE, EventType.QUEUE} <= everything.kinds
    assert applications.kinds == {EventType.APP}


def test_an_rm_keeps_its_events_from_the_receiver_that_obeys_its_settings_only() -> None:
    obeys, keeps = KeptEvents(), KeptEvents(obeys=False)
    scheduler = scheduler_of(obeys, keeps)
    run(scheduler, "silent", NO_EVENTS)
    run(scheduler, "open")
    assert obeys.sources - {""} == {"open"}
    assert keeps.sources - {""} == {"open", "silent"}
    scheduler.stop("silent")
    assert obeys.sources - {""} == {"open"}
    assert obeys.configured[-1] == keeps.configured[-1] == ("silent", None)
    run(scheduler, "silent")
    assert obeys.sources - {""} == {"open", "silent"}


def test_a_receiver_that_is_switched_off_before_the_first_registration_gets_nothing() -> None:
    off, nodes = KeptEvents(), KeptEvents(read_wants(["NODE"]))
    joined = JoinedReceivers([off, nodes])
    off.wanted = NOTHING_WANTED
    joined.configure("rm", {})
    assert joined.wanted == nodes.wanted


@pytest.mark.parametrize("number", [1, 2])
def test_a_failure_of_a_plugin_is_received_once(number: int) -> None:
    receivers = [KeptEvents(read_wants(["PLUGIN"])) for _ in range(number)]
    scheduler = scheduler_of(*receivers)
    run(scheduler, "first")
    run(scheduler, "second")
    assert [sum(map(len, one.batches)) for one in receivers] == [1] * number
