"""Measured schedulers make the same decisions, and their counts equal what has happened."""

from __future__ import annotations

import gzip
import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.kit import RM, configuration, queue, with_plugins
from tests.golden.record import RECORDINGS, recorders
from tests.service.recording.collecting_listener import CollectingListener
from yunikorn import api
from yunikorn.clock import SECOND, ManualClock
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import NodeAction
from yunikorn.interface.scheduler import Scheduler
from yunikorn_service.measurements import REMEMBERED, Measurements
from yunikorn_service.recording import replayer
from yunikorn_service.recording.recording_reader import parse_recording
from yunikorn_service.recording.replayer import Replay
from yunikorn_service.sampling import SAMPLED

REGISTRY = Registry.load(third_party=False)
TICK = 1000
"""Nanoseconds by which each reading of the test's stopwatch advances."""


def ticking() -> Callable[[], int]:
    """Return a stopwatch that advances by `TICK` with each reading."""
    return itertools.count(0, TICK).__next__


def live(scheduler: Scheduler) -> Counter[str]:
    """Return the number of allocations in the accounting, and of those not counted yet, by queue."""
    found: Counter[str] = Counter()
    for _, at in scheduler.all_partitions():
        for app in at.partition.applications.values():
            found.update(one.queue_name for one in app.allocations.values())
        found.subtract(one.queue_name for one in at.partition.changes.outbox.allocations)
    return found


def counted(measurements: Measurements) -> Counter[str]:
    """Return the number of allocations according to the counts, by queue."""
    return Counter({path: one.allocated - one.released for path, one in measurements.queues.items()})


@pytest.mark.parametrize("name", recorders())
def test_measured_schedulers_decide_as_recorded(
    name: str, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Scheduler] = []

    class Measured(Scheduler):
        """Scheduler that measures itself, with whatever other parts the replay gives it."""

        def __init__(self, *arguments: Any, **options: Any) -> None:
            options["measurements"] = Measurements(ticking())
            super().__init__(*arguments, **options)
            made.append(self)

    monkeypatch.setattr(replayer, "Scheduler", Measured)
    data = gzip.decompress((RECORDINGS / f"{name}.jsonl.gz").read_bytes())
    replay = Replay(parse_recording(data, name).lines, registry, CollectingListener())
    replay.run()
    assert str(replay.comparison.first or "") == ""
    for scheduler in made:  # one for each start of the process that was recorded
        measurements = scheduler.measurements
        assert isinstance(measurements, Measurements)
        assert +counted(measurements) == +live(scheduler)
        assert not measurements.sampling


# -- random histories ------------------------------------------------------------------------------------

APPS, NODES, KEYS = ["app1", "app2", "app3"], ["n1", "n2"], ["k1", "k2"]
LEAVES = ["root.a", "root.b", "root.missing"]
OPERATIONS = st.one_of(
    st.tuples(st.just("app"), st.sampled_from(APPS), st.sampled_from(LEAVES)),
    st.tuples(st.just("remove_app"), st.sampled_from(APPS)),
    st.tuples(
        st.just("ask"), st.sampled_from(APPS), st.sampled_from(KEYS), st.integers(1, 3), st.integers(0, 2)
    ),
    st.tuples(st.just("release"), st.sampled_from(APPS), st.just(""), st.sampled_from(KEYS)),
    st.tuples(st.just("node"), st.sampled_from(NODES)),
    st.tuples(st.just("drain"), st.sampled_from(NODES)),
    st.tuples(st.just("remove_node"), st.sampled_from(NODES)),
    st.tuples(st.just("schedule")),
)


class Counting(RM):
    """Resource manager that counts the entries of its responses."""

    def __init__(self, measurements: Measurements) -> None:
        self.seen: Counter[str] = Counter()
        scheduler = Scheduler(REGISTRY, ManualClock(), measurements=measurements)
        super().__init__(configuration(queue("a"), queue("b")), scheduler=scheduler)

    def apply(self, operation: tuple[Any, ...]) -> None:
        """Apply one drawn operation."""
        kind, *arguments = operation
        if kind == "node":
            self.node(arguments[0], vcore=4)
        elif kind == "drain":
            self.change_node(arguments[0], NodeAction.DRAIN_NODE)
        elif kind == "remove_node":
            self.change_node(arguments[0], NodeAction.DECOMMISSION)
        elif kind == "ask":
            app_id, key, count, vcore = arguments
            self.ask(app_id, key, count, vcore=vcore)
        else:
            getattr(self, kind)(*arguments)

    def count(self, kind: str) -> int:
        """Return the number of entries of a kind in all responses."""
        return len(self.entries(kind))


@given(st.lists(OPERATIONS, max_size=40))
def test_counts_equal_what_the_resource_manager_has_learned(operations: list[tuple[Any, ...]]) -> None:
    measurements = Measurements(ticking())
    rm = Counting(measurements)
    for operation in operations:
        rm.apply(operation)
        assert +counted(measurements) == +live(rm.scheduler)
    assert measurements.allocated == rm.count("new_allocations")
    assert measurements.allocated - measurements.released == len(rm.running)
    assert measurements.submitted == rm.count("accepted_applications")
    assert measurements.refused["application"] == rm.count("rejected_applications")
    assert measurements.refused["ask"] == rm.count("rejected_allocations")
    assert measurements.refused["node"] == rm.count("rejected_nodes")
    assert measurements.refused["node update"] == rm.count("failed_node_updates")
    states = Counter(entry.state for entry in rm.entries("updated_applications"))
    assert measurements.accepted == states["Accepted"]
    assert measurements.ended["Completed"] == states["Completed"]
    assert measurements.ended["Failed"] == states["Failed"]


# -- single changes --------------------------------------------------------------------------------------


def measured(config: str = "", registry: Registry = REGISTRY) -> tuple[RM, Measurements]:
    """Return a resource manager with a measured scheduler."""
    measurements = Measurements(ticking())
    scheduler = Scheduler(registry, ManualClock(), measurements=measurements)
    return RM(config, scheduler=scheduler), measurements


def test_wrong_requests_are_errors_and_other_refusals_are_not() -> None:
    rm, measurements = measured()
    rm.node(vcore=4)
    rm.ask("unknown", vcore=1)
    rm.app()
    rm.ask(vcore=0)
    rm.ask(vcore=-1)
    rm.ask(count=0, vcore=1)
    assert measurements.errors == 3
    assert measurements.refused["ask"] == 4


def test_an_application_that_resumes_is_accepted_once() -> None:
    rm, measurements = measured()
    rm.app()
    rm.app("other", "root.nowhere")
    rm.ask(vcore=1)
    rm.node(vcore=1)
    rm.schedule()
    assert (measurements.submitted, measurements.accepted, measurements.ended["Rejected"]) == (1, 1, 1)
    assert measurements.queues["root.a"].ended == {}, "the queue of the rejected application does not exist"


def test_rejections_count_in_the_queue_that_the_application_names() -> None:
    rm, measurements = measured(configuration(queue("a", submitacl="other"), queue("b")))
    rm.app("one", "root.b")
    rm.app("one", "root.b")
    assert measurements.queues["root.b"].ended == {"Rejected": 1}


def test_a_registration_that_replaces_another_fails_no_application_and_removes_no_node() -> None:
    rm, measurements = measured()
    rm.node(vcore=1)
    rm.app()
    rm.ask(vcore=1)
    rm.schedule()
    again = RM(scheduler=rm.scheduler)
    assert again.scheduler.measurements is measurements
    assert measurements.ended == {}
    assert measurements.removed_nodes == 0
    assert measurements.released == measurements.allocated == 1


class Doorkeeper(api.PermitPolicy):
    """Holds placements for ten seconds, and then refuses those whose key begins with `no`."""

    name = "doorkeeper"
    timeout = 60.0

    def opened(self, context: api.Context) -> None:
        self.now = context.now

    def permit(self, allocation: api.Allocation) -> str | api.Wait | None:
        if self.now() < 10 * SECOND:
            return api.Wait(10, "not yet")
        return "never" if allocation.key.startswith("no") else None


def test_placements_that_are_held_count_when_they_are_permitted() -> None:
    registry = with_plugins(permit_policies=[Doorkeeper])
    rm, measurements = measured(configuration(permits=[{"name": "doorkeeper"}]), registry)
    rm.node(vcore=4)
    rm.app()
    rm.ask(key="yes", vcore=1)
    rm.ask(key="no", vcore=1)
    rm.schedule()
    assert measurements.allocated == 0
    rm.clock.advance(11 * SECOND)
    rm.scheduler.fire_timers()
    rm.schedule()
    assert [one.allocation_key for one in rm.running.values()] == ["yes"]
    assert (measurements.allocated, measurements.released) == (1, 0)
    rm.remove_app("app")
    assert counted(measurements) == {"root.a": 0}


def test_only_the_last_removed_queues_are_remembered() -> None:
    measurements = Measurements(ticking())
    for number in range(REMEMBERED + 5):
        measurements.of_queue(f"root.q{number}").released += 1
    measurements.forget_queues({"root.q0": None})
    assert len(measurements.queues) == REMEMBERED + 1
    assert "root.q0" in measurements.queues
    assert "root.q4" not in measurements.queues


# -- durations -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 7, 64, 65, 256, None])
def test_one_decision_of_some_is_measured_whatever_the_size_of_a_round(batch: int | None) -> None:
    rm, measurements = measured()
    rm.node(vcore=1000)
    rm.app()
    rm.ask(count=4 * SAMPLED, vcore=1)
    while rm.scheduler.schedule(batch):
        pass
    assert len(rm.running) == 4 * SAMPLED
    assert measurements.durations.decision.count == 4
    assert measurements.durations.fit.count == 4
    assert measurements.durations.fit.total < measurements.durations.decision.total


def test_partitions_that_take_turns_are_measured_alike() -> None:
    first, measurements = measured()
    second = RM(rm_id="second", scheduler=first.scheduler)
    for rm in (first, second):
        rm.node(vcore=1000)
        rm.app()
        rm.ask(count=2 * SAMPLED, vcore=1)
    first.scheduler.schedule()
    assert len(first.running) == len(second.running) == 2 * SAMPLED
    assert measurements.durations.decision.count == 4


def test_a_search_without_result_is_measured_as_a_search_only() -> None:
    rm, measurements = measured()
    rm.node("n1", vcore=1)
    rm.node("n2", vcore=1)
    rm.app()
    rm.ask(vcore=2)
    rm.schedule()
    durations = measurements.durations
    assert (durations.search.count, durations.fit.count, durations.decision.count) == (1, 0, 0)
    assert durations.turn.count > 0


def test_searches_for_victims_are_measured() -> None:
    guarantee = {"guaranteed": {"vcore": "1"}}
    rm, measurements = measured(
        configuration(
            queue("a", properties={"preemption.delay": "1s"}),
            queue("b", resources=guarantee, properties={"preemption.delay": "1s"}),
        )
    )
    rm.node(vcore=1000)
    rm.app("low", "root.a")
    rm.ask("low", vcore=1000)
    rm.schedule()
    rm.app("high", "root.b")
    rm.ask("high", vcore=1000)
    rm.clock.advance(60 * SECOND)
    rm.scheduler.fire_timers()
    rm.schedule()
    assert rm.evicted
    assert measurements.durations.preemption.count == 1


def test_schedulers_without_measurements_use_the_plain_classes() -> None:
    at = RM().scheduler.partition("rm")
    assert at is not None
    assert [type(at.cycle).__name__, type(at.orders).__name__] == ["Cycle", "NodeOrders"]
