"""The simulated resource manager and its virtual clock, with the fake core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yunikorn.clock import SECOND, ManualClock
from yunikorn.interface.messages import Allocation, UpdateResponse
from yunikorn_lab.simulation.engine import PATIENCE, Progress, Simulation
from yunikorn_lab.simulation.recorder import Recorder
from yunikorn_lab.simulation.report import Report
from yunikorn_lab.simulation.rm_state import ProtocolError
from yunikorn_lab.simulation.survey import survey
from yunikorn_lab.simulation.workload import NodeEvent, NodeEventKind, Workload

Play = Callable[..., Report]


class Diary(Recorder):
    """Records decisions as (second, kind, application, node)."""

    def __init__(self) -> None:
        self.lines: list[tuple[float, str, str, str]] = []
        self.ends: list[tuple[float, str, str]] = []

    def allocated(self, moment: int, allocation: Allocation) -> None:
        self.lines.append((moment / SECOND, "start", allocation.application_id, allocation.node_id))

    def released(self, moment: int, allocation: Allocation, reason: str) -> None:
        self.lines.append((moment / SECOND, reason, allocation.application_id, allocation.node_id))

    def application_ended(self, moment: int, record: Any, outcome: str, reason: str) -> None:
        self.ends.append((moment / SECOND, record.plan.id, outcome))


def conserved(report: Report) -> bool:
    """Assert that the numbers of applications and tasks add up."""
    counts, tasks = report.applications, report.tasks
    return (
        counts.submitted
        == counts.finished + counts.failed + counts.rejected + counts.running + counts.waiting
        and tasks.asked
        == tasks.ended + tasks.failed + tasks.dropped + tasks.refused + tasks.running + tasks.waiting
        and report.allocations == report.releases + tasks.running
    )


def test_tasks_run_for_their_run_time_and_free_their_resources(make: Any, play: Play, core: Any) -> None:
    diary = Diary()
    workload = make.workload([make.node("n", 1)], [make.app("one"), make.app("two", submit=3)])
    report = play(workload, core, recorder=diary)
    assert diary.lines == [
        (0, "start", "one", "n"),
        (10, "ended", "one", "n"),
        (10, "start", "two", "n"),
        (20, "ended", "two", "n"),
    ]
    assert diary.ends == [(10, "one", "finished"), (20, "two", "finished")]
    assert report.outcome == "complete"
    assert report.application_wait is not None
    assert (report.application_wait.mean, report.application_wait.max) == (3.5, 7)
    assert (report.times.makespan, report.times.stopped) == (20, 20)
    assert report.utilisation == {"default": {"vcore": 1.0}}
    assert conserved(report)


def test_all_events_of_one_instant_are_one_update(make: Any, play: Play, core: Any) -> None:
    nodes, late = [make.node("n", 2)], make.node("late")
    applications = [make.app("a", count=2), make.app("b", submit=10), make.app("c", submit=10)]
    events = [NodeEvent(10 * SECOND, NodeEventKind.ADD, late)]
    play(make.workload(nodes, applications, events), core)
    request = core.requests[1]
    assert len(request.releases.allocations_to_release) == 2
    assert [application.application_id for application in request.new_applications] == ["b", "c"]
    assert [node.node_id for node in request.new_schedulable_nodes] == ["late"]
    assert len(core.requests) == 3


def test_a_task_without_run_time_ends_in_the_instant_it_starts(make: Any, play: Play, core: Any) -> None:
    diary = Diary()
    applications = [make.app("quick", count=3, runtime=0), make.app("next", submit=0)]
    report = play(make.workload([make.node("n", 1)], applications), core, recorder=diary)
    assert [line[:3] for line in diary.lines[:6]] == [
        (0, "start", "quick"),
        (0, "ended", "quick"),
        (0, "start", "quick"),
        (0, "ended", "quick"),
        (0, "start", "quick"),
        (0, "ended", "quick"),
    ]
    assert report.applications.finished == 2


def test_a_rejected_application_is_counted_with_its_reason(make: Any, play: Play, core: Any) -> None:
    applications = [make.app(name, count=2) for name in ("bad", "good", "worse")]
    report = play(make.workload([make.node("n")], applications), core, reject="bad worse")
    assert (report.applications.finished, report.applications.rejected) == (1, 2)
    assert [attrs.astuple(reason) for reason in report.rejections] == [
        ("no queue for <application>", 2, "bad")
    ]
    assert report.tasks.dropped == 4
    assert conserved(report)


def test_rejected_asks_are_counted_and_the_rest_runs(make: Any, play: Play, core: Any) -> None:
    core.reject_asks = {"task"}
    other = attrs.evolve(make.app("b").tasks[0], name="other")
    mixed = make.app("mixed", count=3)
    mixed = attrs.evolve(mixed, tasks=(*mixed.tasks, other))
    report = play(make.workload([make.node("n")], [make.app("none"), mixed]), core)
    assert (report.applications.finished, report.applications.rejected) == (1, 1)
    assert report.rejections[0].reason == "all its tasks were refused: refused"
    assert report.tasks.refused == 4
    assert conserved(report)


def test_a_draining_node_finishes_what_it_has_and_gets_nothing_new(make: Any, play: Play, core: Any) -> None:
    node = make.node("n", 1)
    events = [
        NodeEvent(5 * SECOND, NodeEventKind.DRAIN, node),
        NodeEvent(60 * SECOND, NodeEventKind.RESUME, node),
    ]
    diary = Diary()
    play(make.workload([node], [make.app("a", count=2)], events), core, recorder=diary)
    assert [line[0] for line in diary.lines] == [0, 10, 60, 70]


def test_a_task_that_loses_its_node_starts_again_elsewhere(make: Any, play: Play, core: Any) -> None:
    first, second = make.node("first", 1), make.node("second", 1)
    events = [
        NodeEvent(4 * SECOND, NodeEventKind.REMOVE, first),
        NodeEvent(6 * SECOND, NodeEventKind.ADD, second),
    ]
    diary = Diary()
    report = play(make.workload([first], [make.app("a")], events), core, recorder=diary)
    assert diary.lines == [
        (0, "start", "a", "first"),
        (4, "node left", "a", "first"),
        (6, "start", "a", "second"),
        (16, "ended", "a", "second"),
    ]
    assert report.tasks.restarted == 1
    assert report.utilisation == {"default": {"vcore": 1.0}}
    assert conserved(report)


def test_a_task_that_ends_when_its_node_leaves_has_ended(make: Any, play: Play, core: Any) -> None:
    node = make.node("n")
    events = [NodeEvent(10 * SECOND, NodeEventKind.REMOVE, node)]
    report = play(make.workload([node], [make.app("a")], events), core)
    assert (report.applications.finished, report.tasks.restarted) == (1, 0)


def test_node_may_leave_and_return_in_one_instant(make: Any, play: Play, core: Any) -> None:
    node = make.node("n", 1)
    events = [
        NodeEvent(4 * SECOND, NodeEventKind.REMOVE, node),
        NodeEvent(4 * SECOND, NodeEventKind.ADD, node),
    ]
    diary = Diary()
    report = play(make.workload([node], [make.app("a")], events), core, recorder=diary)
    assert [line[0] for line in diary.lines] == [0, 4, 4, 14]
    assert (report.nodes, report.node_troubles) == (2, [])


def test_less_capacity_counts_as_less_from_then_on(make: Any, play: Play, core: Any) -> None:
    node = make.node("n", 4)
    events = [NodeEvent(10 * SECOND, NodeEventKind.CAPACITY, node, make.node("n", 1).resources)]
    report = play(make.workload([node], [make.app("a", count=4), make.app("b", count=2)], events), core)
    assert report.times.makespan == 30
    assert report.utilisation == {"default": {"vcore": 1.0}}


def test_preempted_tasks_are_confirmed_and_requested_again(make: Any, play: Play, core: Any) -> None:
    core.timers, core.preempt = [5 * SECOND], ["a"]
    diary = Diary()
    report = play(make.workload([make.node("n", 2)], [make.app("a", count=2)]), core, recorder=diary)
    assert [line[:2] for line in diary.lines] == [
        (0, "start"),
        (0, "start"),
        (5, "preempted"),
        (5, "preempted"),
        (5, "start"),
        (5, "start"),
        (15, "ended"),
        (15, "ended"),
    ]
    confirmed = core.requests[1].releases.allocations_to_release
    assert [release.termination_type.name for release in confirmed] == ["PREEMPTED_BY_SCHEDULER"] * 2
    assert report.tasks.restarted == 2
    assert conserved(report)


def test_application_failed_by_the_core_is_counted(make: Any, play: Play, core: Any) -> None:
    core.timers, core.fail = [5 * SECOND], ["a"]
    applications = [make.app("a", count=3), make.app("b", submit=1)]
    report = play(make.workload([make.node("n", 2)], applications), core)
    assert (report.applications.failed, report.applications.finished) == (1, 1)
    assert conserved(report)


def test_until_ends_a_simulation_early(make: Any, play: Play, core: Any) -> None:
    applications = [make.app("a", count=3), make.app("b", submit=5), make.app("c", submit=16)]
    report = play(make.workload([make.node("n", 2)], applications), core, until=15)
    counts = report.applications
    assert report.outcome == "until"
    assert (counts.submitted, counts.running, counts.not_submitted) == (2, 2, 1)
    assert report.times.stopped == 15
    assert report.utilisation == {"default": {"vcore": 1.0}}
    assert conserved(report)


def test_events_at_until_are_simulated(make: Any, play: Play, core: Any) -> None:
    report = play(make.workload([make.node("n")], [make.app("a")]), core, until=10)
    assert (report.outcome, report.applications.finished) == ("complete", 1)


def test_watcher_ends_the_simulation_early_with_a_report(make: Any, play: Play, core: Any) -> None:
    seen: list[Progress] = []

    def watch(progress: Progress) -> bool:
        seen.append(progress)
        return progress.ended < 2

    applications = [make.app(f"a{index}", submit=20 * index) for index in range(5)]
    report = play(make.workload([make.node("n")], applications), core, watch=watch)
    assert report.outcome == "interrupted"
    assert (report.applications.finished, report.applications.not_submitted) == (2, 3)
    assert seen[-1].applications == 5
    assert conserved(report)


def test_oversized_tasks_are_reported_and_stay_pending(make: Any, play: Play, core: Any) -> None:
    applications = [make.app("huge", cores=99, count=2), make.app("small")]
    report = play(make.workload([make.node("n")], applications), core)
    assert report.tasks.too_large == 2
    assert report.remarks[0] == (
        "2 tasks of 1 application fit on no node and will never be allocated: huge asks for vcore 99"
    )
    assert (report.applications.finished, report.applications.waiting) == (1, 1)
    assert conserved(report)


def test_later_or_growing_nodes_count_for_oversized_tasks(make: Any, play: Play, core: Any) -> None:
    node = make.node("n", 1)
    events = [
        NodeEvent(5 * SECOND, NodeEventKind.CAPACITY, node, make.node("n", 3).resources),
        NodeEvent(5 * SECOND, NodeEventKind.ADD, make.node("big", 9)),
    ]
    applications = [make.app("three", cores=3), make.app("nine", cores=9)]
    report = play(make.workload([node], applications, events), core)
    assert (report.tasks.too_large, report.applications.finished) == (0, 2)


def test_timers_of_the_core_fire_at_their_time(make: Any, play: Play, core: Any) -> None:
    core.timers = [3 * SECOND, 12 * SECOND, 100 * SECOND]
    play(make.workload([make.node("n")], [make.app("a"), make.app("b", submit=20)]), core)
    assert core.fired == 2


def test_timers_are_run_for_a_limited_time_while_tasks_are_pending(make: Any, play: Play, core: Any) -> None:
    core.timers = [PATIENCE // 2, PATIENCE, 2 * PATIENCE + 1]
    report = play(make.workload([make.node("n")], [make.app("huge", cores=99)]), core)
    assert core.fired == 2
    assert report.applications.waiting == 1


@pytest.mark.parametrize("known", [True, False])
def test_an_allocation_without_an_ask_is_an_error(make: Any, core_class: Any, known: bool) -> None:
    class Liar(core_class):  # type: ignore[misc]
        def schedule(self, max_decisions: int | None = None) -> int:
            decided = int(super().schedule(max_decisions))
            strange = Allocation("task", "a" if known else "b", "strange", "n")
            self._callback.recv_update_response(UpdateResponse(new_allocations=[strange]))
            return decided

    workload = make.workload([make.node("n")], [make.app("a")])
    with pytest.raises(ProtocolError, match="which is not pending"):
        Simulation(workload, Liar(), ManualClock(), config="").run()


def draw_workload(draw: Any, make: Any) -> Workload:
    """Draw a small workload with drains, resized and removed nodes, and run times of zero."""
    nodes = [make.node(f"n{index}", draw(st.integers(1, 3))) for index in range(draw(st.integers(1, 3)))]
    applications = [
        make.app(
            f"a{index}",
            draw(st.integers(0, 20)),
            draw(st.integers(1, 4)),
            draw(st.integers(0, 9)),
            draw(st.integers(1, 4)),
        )
        for index in range(draw(st.integers(1, 8)))
    ]
    changes = (NodeEventKind.DRAIN, NodeEventKind.RESUME, NodeEventKind.CAPACITY)
    events = [
        NodeEvent(
            draw(st.integers(0, 25)) * SECOND,
            draw(st.sampled_from(changes)),
            draw(st.sampled_from(nodes)),
            make.node("", draw(st.integers(1, 4))).resources,
        )
        for _ in range(draw(st.integers(0, 4)))
    ]
    if draw(st.booleans()):
        events.append(NodeEvent(30 * SECOND, NodeEventKind.REMOVE, nodes[0]))
    return cast("Workload", make.workload(nodes, applications, sorted(events, key=lambda event: event.at)))


@given(data=st.data(), until=st.one_of(st.none(), st.integers(0, 40)))
def test_all_tasks_are_accounted_for(
    data: st.DataObject, until: int | None, make: Any, core_class: Any
) -> None:
    workload = draw_workload(data.draw, make)
    moment = None if until is None else until * SECOND
    report = Simulation(workload, core_class(), ManualClock(), config="a1 a3", until=moment).run()
    assert conserved(report)
    counts = report.applications
    assert counts.submitted + counts.not_submitted == len(workload.applications)
    for shares in [*report.utilisation.values(), *(queue.utilisation for queue in report.queues)]:
        assert all(share >= 0 for share in shares.values())


def test_run_times_are_divided_by_the_speed_of_the_node(make: Any, play: Play, core: Any) -> None:
    nodes = [attrs.evolve(make.node("fast", 1), speed=2.0), attrs.evolve(make.node("slow", 1), speed=0.5)]
    report = play(make.workload(nodes, [make.app("first"), make.app("second")]), core)
    assert report.times.last_end == 20
    assert report.utilisation == {"default": {"vcore": 0.625}}
    # Two tasks of 10 s, on nodes that do the work of 2.5 nodes.
    assert report.offered_load.partitions == {"default": {"vcore": 0.8}}


def test_one_long_task_does_not_hide_the_offered_load(make: Any) -> None:
    """A job of 40 s arrives every 10 s on 3 nodes; one task runs 100 times as long as jobs arrive."""
    nodes = [make.node(f"n{place}", 1) for place in range(3)]
    jobs = [make.app(f"j{place}", submit=10 * place, runtime=40) for place in range(101)]
    load = survey(make.workload(nodes, jobs)).offered_load
    assert load.partitions == {"default": {"vcore": pytest.approx(101 * 40 / 3000)}}
    long = make.app("long", runtime=100_000)
    load = survey(make.workload(nodes, [long, *jobs])).offered_load
    assert load.span == 1000
    assert load.partitions == {"default": {"vcore": pytest.approx((101 * 40 + 1000) / 3000)}}
    assert load.warning()


def test_applications_that_arrive_together_have_an_offered_load(make: Any) -> None:
    jobs = [make.app(f"j{place}", runtime=runtime) for place, runtime in enumerate((10, 20, 30, 5000))]
    load = survey(make.workload([make.node("n", 2)], jobs)).offered_load
    assert load.span == 20
    assert load.partitions == {"default": {"vcore": pytest.approx(70 / 40)}}


def test_a_rigid_job_has_the_speed_of_its_slowest_node(make: Any, play: Play, core: Any) -> None:
    nodes = [attrs.evolve(make.node("fast", 1), speed=2.0), attrs.evolve(make.node("slow", 2), speed=0.5)]
    applications = [make.app("rigid", count=2, gang="Atomic"), make.app("single", submit=1)]
    report = play(make.workload(nodes, applications), core)
    assert report.times.last_end == 21
    assert report.utilisation["default"]["vcore"] == pytest.approx(60 / 63, abs=1e-6)
