"""Counts in the report of preemption, lost work, gangs, limits and timeouts, verified by hand.

All tests use the real core, because the simulated RM has to react to its requests.
"""

from __future__ import annotations

import attrs
import pytest

from yunikorn.clock import SECOND
from yunikorn.framework.registry import Registry
from yunikorn_commands.input_source import InputError
from yunikorn_lab.simulation.recorder import Recorder
from yunikorn_lab.simulation.report import Report
from yunikorn_lab.simulation.run import simulate
from yunikorn_lab.simulation.scenario_reader import read_scenario
from yunikorn_lab.simulation.statistics import Summary

CONFIG = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues: [%s]
"""
ONE_QUEUE = CONFIG % "{name: a}"
TEAMS = CONFIG % "{name: batch}, {name: web, resources: {guaranteed: {vcore: 2}}}"
BATCH = "{id: batch, queue: root.batch, tasks: [{count: 4, resources: {vcore: 1}, runtime: 100}]%s}"
WEB = "{id: web, queue: root.web, submit: 10, tasks: [{count: 2, resources: {vcore: 1}, runtime: 20}]}"


class Diary(Recorder):
    """Records (second, kind, application) of decisions with their counts, and the final states."""

    def __init__(self) -> None:
        self.lines: dict[tuple[float, str, str], int] = {}
        self.fates: list[tuple[float, str, str, str]] = []

    def _note(self, moment: int, what: str, application: str) -> None:
        line = (moment / SECOND, what, application)
        self.lines[line] = self.lines.get(line, 0) + 1

    def allocated(self, moment: int, allocation: object) -> None:
        kind = "place" if allocation.placeholder else "start"  # type: ignore[attr-defined]
        self._note(moment, kind, allocation.application_id)  # type: ignore[attr-defined]

    def released(self, moment: int, allocation: object, reason: str) -> None:
        self._note(moment, reason, allocation.application_id)  # type: ignore[attr-defined]

    def application_ended(self, moment: int, record: object, outcome: str, reason: str) -> None:
        self.fates.append((moment / SECOND, record.plan.id, outcome, reason))  # type: ignore[attr-defined]


def play(
    registry: Registry,
    config: str,
    *applications: str,
    nodes: str = "{name: n, resources: {vcore: 4}}",
    events: str = "",
    preempted: str = "restart",
) -> tuple[Report, Diary]:
    """Return the report of a scenario with these applications, and the diary; assert that counts add up."""
    text = f"nodes: [{nodes}]\nevents: [{events}]\napplications: [{', '.join(applications)}]"
    diary = Diary()
    workload = read_scenario(text, "file", "name")
    report = simulate(config, workload, registry, recorder=diary, preempted=preempted)
    counts, tasks = report.applications, report.tasks
    assert counts.submitted == counts.finished + counts.failed + counts.rejected + (
        counts.running + counts.waiting
    )
    assert tasks.asked == tasks.ended + tasks.failed + tasks.dropped + tasks.refused + (
        tasks.running + tasks.waiting
    )
    return report, diary


def figures(wait: Summary | None) -> tuple[float, ...] | None:
    """Return number, mean and maximum."""
    return None if wait is None else (wait.count, wait.mean, wait.max)


def lost(report: Report) -> list[tuple[str, int, float]]:
    """Return reason, tasks and seconds of lost work."""
    return [attrs.astuple(loss) for loss in report.lost_work]


def held(report: Report) -> list[tuple[str, float]]:
    """Return each limit with the seconds for which it blocked asks."""
    return [attrs.astuple(limit) for limit in report.limit_waits.limits]


# -- preemption and lost work ---------------------------------------------------------------------------


def test_preempted_tasks_restart_and_lose_their_work(registry: Registry) -> None:
    report, diary = play(registry, TEAMS, BATCH % "", WEB)
    assert diary.lines == {
        (0, "start", "batch"): 4,
        # The guarantee of web is 2, and it has waited for the preemption delay of 30 s.
        (40, "preempted", "batch"): 2,
        (40, "start", "web"): 2,
        (60, "ended", "web"): 2,
        (60, "start", "batch"): 2,
        (100, "ended", "batch"): 2,
        (160, "ended", "batch"): 2,
    }
    assert (report.preemptions, report.tasks.restarted, report.tasks.failed) == (2, 2, 0)
    assert lost(report) == [("preempted", 2, 80)]
    assert [(queue.queue, queue.preempted) for queue in report.queues] == [
        ("root.batch", 2),
        ("root.web", 0),
    ]
    # Of 8 starts four had no wait, two waited 30 s and two 20 s.
    assert figures(report.task_wait) == (8, 12.5, 30)
    assert report.times.makespan == 160


def test_preempted_tasks_fail_if_configured(registry: Registry) -> None:
    report, _ = play(registry, TEAMS, BATCH % "", WEB, preempted="fail")
    assert (report.preemptions, report.tasks.restarted, report.tasks.failed) == (2, 0, 2)
    assert (report.applications.finished, report.applications.failed) == (2, 0)
    assert lost(report) == [("preempted", 2, 80)]
    assert report.times.makespan == 100


def test_application_configures_the_fate_of_its_preempted_tasks(registry: Registry) -> None:
    report, _ = play(registry, TEAMS, BATCH % ", preempted: restart", WEB, preempted="fail")
    assert (report.tasks.restarted, report.tasks.failed) == (2, 0)
    report, _ = play(registry, TEAMS, BATCH % ", preempted: fail", WEB)
    assert (report.tasks.restarted, report.tasks.failed) == (0, 2)


def in_mode(mode: str, queues: str = TEAMS) -> str:
    """Return the configuration with a mode of preemption."""
    policy = f"preemption: {{policy: {{name: standard, mode: {mode}}}}}"
    return queues.replace("- name: default", f"- name: default\n    {policy}")


def test_requeued_tasks_start_again_and_never_fail(registry: Registry) -> None:
    ended, _ = play(registry, TEAMS, BATCH % "", WEB)
    for preempted in ("restart", "fail"):
        report, diary = play(registry, in_mode("requeue"), BATCH % "", WEB, preempted=preempted)
        assert diary.lines[40, "requeued", "batch"] == 2
        assert lost(report) == [("requeued", 2, 80)]
        assert (report.preemptions, report.tasks.restarted, report.tasks.failed) == (2, 2, 0)
        assert report.times == ended.times


def test_suspended_tasks_continue_and_lose_no_work(registry: Registry) -> None:
    for preempted in ("restart", "fail"):
        report, diary = play(registry, in_mode("suspend"), BATCH % "", WEB, preempted=preempted)
        assert diary.lines == {
            (0, "start", "batch"): 4,
            (40, "suspended", "batch"): 2,
            (40, "start", "web"): 2,
            (60, "ended", "web"): 2,
            (60, "start", "batch"): 2,
            (100, "ended", "batch"): 2,
            # The other two had run for 40 of 100 seconds.
            (120, "ended", "batch"): 2,
        }
        assert lost(report) == [("suspended", 2, 0)]
        assert (report.preemptions, report.tasks.restarted, report.tasks.failed) == (2, 2, 0)


def test_task_that_is_suspended_twice_continues_where_it_stopped_last(registry: Registry) -> None:
    again = WEB.replace("id: web", "id: more").replace("submit: 10", "submit: 61")
    report, diary = play(registry, in_mode("suspend"), BATCH % "", WEB, again)
    # Two tasks ran from 0 to 40 and from 60 to 91; the end of the others makes room for them at 100.
    assert diary.lines[91, "suspended", "batch"] == 2
    assert diary.lines[100, "ended", "batch"] == 2
    assert diary.lines[129, "ended", "batch"] == 2
    assert lost(report) == [("suspended", 4, 0)]


def test_suspended_task_has_done_more_on_a_faster_node(registry: Registry) -> None:
    fast = "{name: n, resources: {vcore: 4}, speed: 2}"
    long = BATCH.replace("runtime: 100", "runtime: 200")
    _, diary = play(registry, in_mode("suspend"), long % "", WEB, nodes=fast)
    # 80 of 200 seconds were done at 40; web takes 10.
    assert {moment for moment, what, app in diary.lines if (what, app) == ("ended", "batch")} == {100, 110}


def test_time_limit_of_a_suspended_task_counts_the_time_that_it_ran(registry: Registry) -> None:
    limited = BATCH.replace("runtime: 100", "runtime: 200, timeout: 90s")
    report, diary = play(registry, in_mode("suspend"), limited % "", WEB)
    assert {moment for moment, what, _ in diary.lines if what == "timed out"} == {90, 110}
    assert report.tasks.timed_out == 4
    _, requeued = play(registry, in_mode("requeue"), limited % "", WEB)
    assert {moment for moment, what, _ in requeued.lines if what == "timed out"} == {90, 150}


def test_suspended_task_without_an_end_goes_on(registry: Registry) -> None:
    service = BATCH.replace("runtime: 100", "runtime: forever")
    report, diary = play(registry, in_mode("suspend"), service % "", WEB)
    assert diary.lines[60, "start", "batch"] == 2
    assert report.tasks.running == 4


def test_application_with_all_tasks_preempted_fails(registry: Registry) -> None:
    one = "{id: one, queue: root.batch, tasks: [{resources: {vcore: 4}, runtime: 100}], preempted: fail}"
    report, diary = play(registry, TEAMS, one, WEB)
    assert (40, "one", "failed", "all its tasks were preempted") in diary.fates
    assert (report.applications.finished, report.applications.failed) == (1, 1)
    assert lost(report) == [("preempted", 1, 40)]


def test_higher_priority_preempts_lower_priority_of_its_queue(registry: Registry) -> None:
    config = CONFIG % "{name: a, properties: {preemption.within.queue: enabled, preemption.delay: 5s}}"
    task = "{resources: {vcore: 4}, runtime: 50, priority: %d}"
    report, diary = play(
        registry,
        config,
        f"{{id: low, queue: root.a, tasks: [{task % 1}]}}",
        f"{{id: high, queue: root.a, submit: 10, tasks: [{task % 2}]}}",
    )
    assert list(diary.lines) == [
        (0, "start", "low"),
        (15, "preempted", "low"),
        (15, "start", "high"),
        (65, "ended", "high"),
        (65, "start", "low"),
        (115, "ended", "low"),
    ]
    assert lost(report) == [("preempted", 1, 15)]


def test_work_on_a_lost_node_is_lost(registry: Registry) -> None:
    report, _ = play(
        registry,
        ONE_QUEUE,
        "{id: one, queue: root.a, tasks: [{count: 3, resources: {vcore: 1}, runtime: 100}]}",
        events="{at: 25, node: n, action: remove}, {at: 30, node: m, action: add, resources: {vcore: 4}}",
    )
    assert lost(report) == [("node left", 3, 75)]
    assert (report.preemptions, report.tasks.restarted, report.times.makespan) == (0, 3, 130)


# -- time limits ----------------------------------------------------------------------------------------


def test_task_that_times_out_ends(registry: Registry) -> None:
    report, diary = play(
        registry,
        ONE_QUEUE,
        "{id: one, queue: root.a, tasks: [{count: 2, resources: {vcore: 4}, runtime: 100, timeout: 30},"
        " {resources: {vcore: 4}, runtime: 10, timeout: 30}]}",
    )
    assert diary.lines == {
        (0, "start", "one"): 1,
        (30, "timed out", "one"): 1,
        (30, "start", "one"): 1,
        (60, "timed out", "one"): 1,
        (60, "start", "one"): 1,
        (70, "ended", "one"): 1,
    }
    assert (report.tasks.ended, report.tasks.timed_out, report.applications.finished) == (3, 2, 1)
    assert lost(report) == []


def test_application_that_times_out_fails(registry: Registry) -> None:
    report, diary = play(
        registry,
        ONE_QUEUE,
        "{id: one, queue: root.a, timeout: 30, tasks: ["
        "{count: 2, resources: {vcore: 2}, runtime: 100}, {count: 5, resources: {vcore: 2}, runtime: 1}]}",
    )
    assert (30, "timed out", "one") in diary.lines
    assert [fate[:3] for fate in diary.fates] == [(30, "one", "failed")]
    assert (report.tasks.dropped, report.tasks.ended, report.tasks.timed_out) == (7, 0, 0)
    assert lost(report) == [("application failed", 2, 60)]


def test_invalid_times_are_problems_of_the_scenario() -> None:
    task = "tasks: [{resources: {vcore: 1}, runtime: 1}]"
    text = f"""
    nodes: [{{name: n, resources: {{vcore: 4}}}}]
    applications:
      - {{id: a, gang: Atomic, gangtimeout: 5m, {task}}}
      - {{id: b, gang: Hard, timeout: 5m, {task}}}
      - {{id: c, preempted: retry, {task}}}
    """
    with pytest.raises(InputError) as error:
        read_scenario(text, "file", "name")
    assert [f"{one.path}: {one.message}" for one in error.value.problems] == [
        "applications[0].gangtimeout: applies only to a gang with placeholders: set gang: Soft or gang: "
        "Hard, or remove gangtimeout",
        "applications[1].timeout: does not apply to a gang with placeholders: set gangtimeout, or a timeout "
        "for each of its tasks",
        "applications[2].preempted: expected restart or fail, got 'retry'",
    ]


# -- gangs ----------------------------------------------------------------------------------------------

ONE = "{id: one, queue: root.a, tasks: [{count: 3, resources: {vcore: 1}, runtime: 50}]}"
GANG = (
    "{id: gang, queue: root.a, submit: 10, gang: %s,"
    " tasks: [{count: 2, resources: {vcore: 1}, runtime: 10}, {resources: {vcore: 1}, runtime: 10}]}"
)


@pytest.mark.parametrize("style", ["Atomic", "Soft", "Hard"])
def test_gang_waits_until_all_members_are_placed(registry: Registry, style: str) -> None:
    report, diary = play(registry, ONE_QUEUE, ONE, GANG % style)
    gangs = report.gangs
    assert gangs is not None
    assert (gangs.submitted, gangs.whole, gangs.given_up, gangs.waiting) == (1, 1, 0, 0)
    assert figures(gangs.wait) == (1, 40, 40)
    assert diary.lines[50, "start", "gang"] == 3
    placeholders = {} if style == "Atomic" else {(10, "place", "gang"): 1, (50, "place", "gang"): 2}
    assert {line: count for line, count in diary.lines.items() if line[1] == "place"} == placeholders
    assert diary.lines.get((50, "replaced", "gang"), 0) == sum(placeholders.values())
    assert report.applications.finished == 2


@pytest.mark.parametrize("style", ["Soft", "Hard"])
def test_wait_of_an_abandoned_gang_is_counted_as_abandoned(registry: Registry, style: str) -> None:
    gang = GANG.replace("gang: %s", f"gang: {style}, gangtimeout: 20")
    report, diary = play(registry, ONE_QUEUE, ONE, gang)
    gangs = report.gangs
    assert gangs is not None
    assert (gangs.submitted, gangs.whole, gangs.given_up, gangs.wait) == (1, 0, 1, None)
    assert diary.lines[30, "timed out", "gang"] == 1
    if style == "Soft":
        # Its tasks start one by one.
        assert (diary.lines[30, "start", "gang"], diary.lines[40, "start", "gang"]) == (1, 1)
        assert report.applications.finished == 2
    else:
        assert (report.applications.failed, report.tasks.dropped) == (1, 3)


def test_gang_waiting_at_the_end_is_counted(registry: Registry) -> None:
    large = "{id: large, queue: root.a, gang: Atomic, tasks: [{count: 9, resources: {vcore: 1}, runtime: 1}]}"
    report, _ = play(registry, ONE_QUEUE, ONE, large)
    gangs = report.gangs
    assert gangs is not None
    assert (gangs.submitted, gangs.whole, gangs.given_up, gangs.waiting) == (1, 0, 0, 1)


def test_placeholder_that_loses_its_node_is_requested_again(registry: Registry) -> None:
    report, diary = play(
        registry,
        ONE_QUEUE,
        "{id: gang, queue: root.a, gang: Hard, tasks: [{count: 3, resources: {vcore: 4}, runtime: 10}]}",
        nodes="{name: n, count: 2, resources: {vcore: 4}}",
        events="{at: 5, node: n-1, action: remove}, {at: 20, node: m, action: add, resources: {vcore: 8}}",
    )
    assert diary.lines == {
        (0, "place", "gang"): 2,
        (5, "node left", "gang"): 1,
        (20, "place", "gang"): 2,
        (20, "replaced", "gang"): 3,
        (20, "start", "gang"): 3,
        (30, "ended", "gang"): 3,
    }
    assert report.gangs is not None
    assert figures(report.gangs.wait) == (1, 20, 20)
    # A placeholder does no work that could be lost.
    assert (lost(report), report.tasks.restarted, report.applications.finished) == ([], 0, 1)


def test_preempted_placeholders_are_counted_and_requested_again(registry: Registry) -> None:
    gang = (
        "{id: gang, queue: root.batch, gang: Soft, tasks: [{count: 5, resources: {vcore: 1}, runtime: 10}]}"
    )
    report, diary = play(
        registry, TEAMS, gang, WEB, events="{at: 90, node: m, action: add, resources: {vcore: 1}}"
    )
    assert diary.lines == {
        (0, "place", "gang"): 4,
        (40, "preempted", "gang"): 2,
        (40, "start", "web"): 2,
        (60, "ended", "web"): 2,
        (60, "place", "gang"): 2,
        (90, "place", "gang"): 1,
        (90, "replaced", "gang"): 5,
        (90, "start", "gang"): 5,
        (100, "ended", "gang"): 5,
    }
    assert (report.preemptions, report.preempted_placeholders, lost(report)) == (0, 2, [])
    assert report.gangs is not None
    assert figures(report.gangs.wait) == (1, 90, 90)


# -- limits ---------------------------------------------------------------------------------------------


def test_quota_blocks_asks_above_it(registry: Registry) -> None:
    config = CONFIG % "{name: a, resources: {max: {vcore: 2}}}, {name: b}"
    report, _ = play(
        registry,
        config,
        "{id: one, queue: root.a, tasks: [{count: 6, resources: {vcore: 1}, runtime: 10}]}",
        # From 25 on it waits for room on the node only: no limit blocks it.
        "{id: two, queue: root.b, submit: 25, tasks: [{resources: {vcore: 3}, runtime: 10}]}",
    )
    # Two tasks are blocked for 10 s, two for 20 s.
    limits = report.limit_waits
    assert figures(limits.tasks) == (4, 15, 20)
    assert limits.applications is None
    assert held(report) == [("over the quota of queue root.a", 60)]


def test_maxapplications_blocks_other_applications(registry: Registry) -> None:
    app = "{id: %s, queue: root.a, submit: %d, tasks: [{count: 2, resources: {vcore: 1}, runtime: 10}]}"
    config = CONFIG % "{name: a, maxapplications: 1}"
    report, diary = play(registry, config, app % ("one", 0), app % ("two", 4), app % ("three", 7))
    assert [(second, who) for second, what, who in diary.lines if what == "start"] == [
        (0, "one"),
        (10, "two"),
        (20, "three"),
    ]
    assert figures(report.limit_waits.applications) == (2, 9.5, 13)
    assert figures(report.limit_waits.tasks) == (4, 9.5, 13)
    assert held(report) == [("no more applications may run: queue root.a", 38)]


def test_user_limit_blocks_asks_of_that_user_only(registry: Registry) -> None:
    config = CONFIG % "{name: a, limits: [{limit: one, users: [ann], maxresources: {vcore: 1}}]}"
    app = "{id: %s, user: %s, queue: root.a, tasks: [{count: %d, resources: {vcore: 1}, runtime: 10}]}"
    report, _ = play(registry, config, app % ("one", "ann", 3), app % ("two", "bob", 3))
    assert figures(report.limit_waits.tasks) == (2, 15, 20)
    assert held(report) == [("over the limit of user ann in queue root.a", 30)]


def test_gang_is_blocked_as_a_whole(registry: Registry) -> None:
    config = CONFIG % "{name: a, resources: {max: {vcore: 3}}}"
    app = "{id: %s, queue: root.a, %stasks: [{count: %d, resources: {vcore: 1}, runtime: 10}]}"
    report, _ = play(registry, config, app % ("one", "", 1), app % ("gang", "gang: Atomic, ", 3))
    # One of them would fit at once. All three do when the first application has ended.
    assert figures(report.limit_waits.tasks) == (3, 10, 10)
    report, _ = play(registry, config, app % ("one", "", 1), app % ("gang", "gang: Hard, ", 3))
    # Two placeholders are placed at once, the third is blocked.
    assert figures(report.limit_waits.tasks) == (1, 10, 10)
    assert report.gangs is not None
    assert figures(report.gangs.wait) == (1, 10, 10)


def test_time_blocked_counts_until_the_end(registry: Registry) -> None:
    config = CONFIG % "{name: a, resources: {max: {vcore: 2}}}"
    report, _ = play(
        registry,
        config,
        "{id: one, queue: root.a, tasks: ["
        "{resources: {vcore: 3}, runtime: 1}, {resources: {vcore: 1}, runtime: 30}]}",
    )
    assert (report.tasks.waiting, report.times.stopped) == (1, 30)
    assert held(report) == [("over the quota of queue root.a", 30)]
    assert figures(report.limit_waits.tasks) == (1, 30, 30)


def test_nothing_is_blocked_without_limits(registry: Registry) -> None:
    report, _ = play(registry, ONE_QUEUE, ONE, GANG % "Atomic")
    limits = report.limit_waits
    assert (limits.applications, limits.tasks, limits.limits) == (None, None, [])
