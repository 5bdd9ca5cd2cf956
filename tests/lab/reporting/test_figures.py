"""The full report of small cases, with results calculated by hand."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from yunikorn.framework.registry import Registry
from yunikorn_lab.reporting.full_report import FullReport, study
from yunikorn_lab.reporting.group_counts import GroupReport
from yunikorn_lab.reporting.observations import ApplicationRow
from yunikorn_lab.reporting.queue_observation import Guarantee
from yunikorn_lab.simulation.reader import read_workload

Observe = Callable[..., FullReport]
QUICKSTART = Path(__file__).parents[3] / "examples" / "quickstart"

# Two vcores. Ann's three tasks take both until 20 and one until 40; Bob's task can start at 20.
TWO_USERS = """
nodes: [{name: n, resources: {vcore: 2}}]
applications:
  - {id: x, queue: root.a, user: ann, tasks: [{count: 3, resources: {vcore: 1}, runtime: 20}]}
  - {id: y, queue: root.a, user: bob, submit: 10, tasks: [{resources: {vcore: 1}, runtime: 5}]}
"""


def by_name(groups: list[GroupReport]) -> dict[str, GroupReport]:
    """Return reports of groups by name."""
    return {group.name: group for group in groups}


def test_waits_are_measured_to_the_first_and_last_task(observe: Observe) -> None:
    figures = observe(TWO_USERS).figures
    assert figures.wait is not None and figures.whole_wait is not None  # noqa: PT018
    assert (figures.wait.count, figures.wait.mean, figures.wait.max) == (2, 5, 10)
    assert (figures.whole_wait.mean, figures.whole_wait.max) == (15, 20)


def test_slowdown_is_measured_against_the_longest_task_and_ten_seconds(observe: Observe) -> None:
    users = by_name(observe(TWO_USERS).figures.users)
    ann, bob = users["ann"].slowdown, users["bob"].slowdown
    assert ann is not None and bob is not None  # noqa: PT018
    assert ann.mean == 2  # 40 s instead of 20
    assert bob.mean == 1.5  # 15 s instead of 5, which count as 10


def test_slowdown_of_a_short_job_without_wait_is_one(observe: Observe) -> None:
    figures = observe(
        """
        nodes: [{name: n, resources: {vcore: 1}}]
        applications: [{id: x, queue: root.a, tasks: [{resources: {vcore: 1}, runtime: 1}]}]
        """
    ).figures
    assert figures.slowdown is not None
    assert figures.slowdown.mean == 1


def test_utilisation_is_the_dominant_share_over_time(observe: Observe) -> None:
    figures = observe(TWO_USERS).figures
    users = by_name(figures.users)
    # Of 2 vcores for 40 s Ann had 60 core-seconds and Bob 5.
    assert (users["ann"].use, users["bob"].use) == (0.75, 0.0625)
    assert [queue.use for queue in figures.queues] == [0.8125]


def test_jains_index_of_slowdown_and_use(observe: Observe) -> None:
    fairness = observe(TWO_USERS).figures.fairness
    assert fairness.slowdown_of_users == 0.98  # (2 + 1.5)² / 2 (4 + 2.25)
    assert fairness.use_of_users == 0.582759  # (0.75 + 0.0625)² / 2 (0.75² + 0.0625²)
    assert (fairness.slowdown_of_queues, fairness.use_of_queues) == (1, 1)


def test_size_classes_are_shares_of_the_cluster(observe: Observe) -> None:
    sizes = observe(TWO_USERS).figures.sizes
    assert [(size.name, size.applications) for size in sizes] == [("10 to 100 %", 1), ("over 100 %", 1)]


def test_size_of_applications_submitted_with_the_nodes_is_relative_to_them(observe: Observe) -> None:
    # One message has the nodes and all applications of the start, one of which is rejected.
    rows: list[ApplicationRow] = []
    report = observe(
        """
        nodes: [{name: n, count: 2, resources: {vcore: 4}}]
        applications:
          - {id: x, queue: root.a, tasks: [{count: 2, resources: {vcore: 3}, runtime: 10}]}
          - {id: y, queue: nowhere, tasks: [{resources: {vcore: 4}, runtime: 10}]}
          - {id: z, queue: root.a, submit: 20, tasks: [{count: 3, resources: {vcore: 3}, runtime: 10}]}
        events:
          - {at: 20, node: n-2, action: capacity, resources: {vcore: 8}}
        """,
        rows=rows.append,
    )
    sizes = [(size.name, size.applications) for size in report.figures.sizes]
    assert sizes == [("10 to 100 %", 3)]
    assert [(row.application, row.size, row.outcome) for row in rows] == [
        ("y", "10 to 100 %", "rejected"),
        ("x", "10 to 100 %", "finished"),
        ("z", "10 to 100 %", "finished"),
    ]


def test_rows_describe_applications(observe: Observe) -> None:
    rows: list[ApplicationRow] = []
    observe(TWO_USERS, rows=rows.append, until=30)
    bob, ann = rows
    assert (bob.application, bob.queue, bob.outcome, bob.started, bob.whole, bob.ended) == (
        "y",
        "root.a",
        "finished",
        20,
        20,
        25,
    )
    assert (bob.wait, bob.whole_wait, bob.slowdown) == (10, 10, 1.5)
    assert (ann.outcome, ann.started, ann.whole, ann.ended, ann.slowdown) == ("running", 0, 20, None, None)


def test_restarted_task_counts_once_and_increases_the_slowdown(observe: Observe) -> None:
    rows: list[ApplicationRow] = []
    figures = observe(
        """
        nodes: [{name: n, resources: {vcore: 1}}, {name: m, resources: {vcore: 1}}]
        applications: [{id: x, queue: root.a, tasks: [{count: 2, resources: {vcore: 1}, runtime: 20}]}]
        events: [{at: 10, node: m, action: remove}]
        """,
        rows=rows.append,
    ).figures
    # The lost task starts again at 20, when the other has ended, and ends at 40.
    (row,) = rows
    assert (row.whole, row.restarts, row.ended, row.slowdown) == (0, 1, 40, 2)
    assert figures.whole_wait is not None
    assert figures.whole_wait.count == 1


def test_rejected_applications_count_but_have_no_slowdown(observe: Observe) -> None:
    figures = observe(TWO_USERS.replace("y, queue: root.a", "y, queue: root.none")).figures
    bob = by_name(figures.users)["bob"]
    assert (bob.applications, bob.finished, bob.wait, bob.slowdown) == (1, 0, None, None)
    assert [queue.name for queue in figures.queues] == ["root.a"]


# -- guarantees -----------------------------------------------------------------------------------------

GUARANTEED = """
          - {name: a, resources: {guaranteed: {vcore: 1}}}
          - {name: b}"""
LATE = """
nodes: [{name: n, resources: {vcore: 2}}]
applications:
  - {id: x, queue: root.b, tasks: [{count: 2, resources: {vcore: 1}, runtime: 100}]}
  - {id: y, queue: root.a, submit: 20, tasks: [{resources: {vcore: 1}, runtime: 10}]}
"""


def test_guarantee_satisfaction_is_the_share_of_the_entitlement(observe: Observe) -> None:
    queues = by_name(observe(LATE, GUARANTEED).figures.queues)
    # Entitled to a vcore from 20, when it is requested, to 110, when it ended; it had one from 100 on.
    assert queues["root.a"].guarantees == {"vcore": Guarantee(1000, used=0.090909, kept=0.111111)}
    assert queues["root.b"].guarantees == {}


def test_a_queue_without_demand_is_entitled_to_nothing(observe: Observe) -> None:
    queues = by_name(observe(LATE, GUARANTEED, until=10).figures.queues)
    assert list(queues) == ["root.b"]
    lent = observe(LATE.replace("root.b", "root.a").replace("submit: 20, ", ""), GUARANTEED).figures.queues
    # Two vcores for 100 s and one for 10: 1.909 times the guarantee, which was always met.
    assert lent[0].guarantees == {"vcore": Guarantee(1000, used=1.909091, kept=1)}


# -- fragmentation --------------------------------------------------------------------------------------

SPLIT = """
nodes: [{name: n, count: 2, resources: {vcore: 4}}]
applications:
  - {id: x, queue: root.a, tasks: [{count: 2, resources: {vcore: 3}, runtime: 100}]}
  - {id: y, queue: root.a, submit: 50, tasks: [{resources: {vcore: 2}, runtime: 50}]}
"""


def test_free_resources_that_fit_no_pending_size_are_unusable(observe: Observe) -> None:
    (found,) = observe(SPLIT).figures.fragmentation["default"].values()
    # From 50 to 100 a vcore is free on each node, and an ask needs 2 on one: of 8 vcores for 150 s.
    assert (found.of_free, found.of_capacity, found.at_end) == (1, 0.083333, None)


def test_fragmentation_is_weighted_by_pending_tasks_and_excludes_quotas(observe: Observe) -> None:
    queues = """
          - {name: a}
          - {name: b, resources: {max: {vcore: 0, memory: 1}}}"""
    held = "  - {id: z, queue: root.b, submit: 50, tasks: [{count: 3, resources: {vcore: 1}, runtime: 1}]}"
    report = observe(SPLIT + held, queues, until=60)
    (found,) = report.figures.fragmentation["default"].values()
    # Both free vcores serve three of the four pending asks.
    assert (found.of_free, found.at_end) == (0.25, 0.25)


def test_capacity_of_drained_nodes_is_not_free(observe: Observe) -> None:
    events = "events: [{at: 50, node: n-1, action: drain}, {at: 50, node: n-2, action: drain}]"
    (found,) = observe(SPLIT + events, until=60).figures.fragmentation["default"].values()
    assert (found.of_free, found.at_end) == (None, None)


# -- over time ------------------------------------------------------------------------------------------


def test_history_of_a_queue(observe: Observe) -> None:
    history = observe(LATE, GUARANTEED).history
    assert (history.start, history.width, history.end, history.count) == (0, 1, 110, 110)
    a = next(queue for queue in history.queues if queue.queue == "root.a")
    assert a.waiting == [0] * 20 + [1] * 80 + [0] * 10
    assert a.wanted["vcore"] == [1000 * tasks for tasks in a.waiting]
    assert a.used["vcore"] == [0] * 100 + [1000] * 10
    assert [step.guaranteed for step in a.quotas] == [{"vcore": 1000}]
    (partition,) = history.partitions
    assert partition.capacity["vcore"] == [2000] * 110
    assert partition.used["vcore"] == [2000] * 100 + [1000] * 10
    assert partition.running == [2] * 100 + [1] * 10
    assert history.nodes.shares["vcore"] == [[1] * 100 + [0.5] * 10]


def test_usage_of_a_parent_is_the_sum_of_its_children(observe: Observe) -> None:
    queues = """
          - name: all
            queues: [{name: a}, {name: b}]"""
    history = observe(LATE.replace("root.", "root.all."), queues).history
    parent, a, b = history.queues
    assert [queue.queue for queue in history.queues] == ["root.all", "root.all.a", "root.all.b"]
    assert [queue.is_leaf for queue in history.queues] == [False, True, True]
    assert parent.running == [one + other for one, other in zip(a.running, b.running, strict=True)]


def test_intervals_sum_up_to_the_utilisation_of_the_report(registry: Registry) -> None:
    config = (QUICKSTART / "queues.yaml").read_text("utf-8")
    result = study(config, read_workload(QUICKSTART / "workload.yaml"), registry)
    history, (partition,) = result.history, result.history.partitions
    edges = history.edges
    widths = [after - before for before, after in itertools.pairwise(edges)]
    assert 1024 < history.count <= 2048
    for name, share in result.report.utilisation["default"].items():
        used = sum(one * width for one, width in zip(partition.used[name], widths, strict=True))
        had = sum(one * width for one, width in zip(partition.capacity[name], widths, strict=True))
        assert used / had == pytest.approx(share, abs=1e-6)
        queues = [queue.used[name] for queue in history.queues if queue.is_leaf]
        assert [sum(parts) for parts in zip(*queues, strict=True)] == pytest.approx(partition.used[name])


def test_report_of_an_empty_simulation(observe: Observe) -> None:
    result = observe(TWO_USERS.replace("id: x,", "id: x, submit: 20,"), until=5)
    assert (result.figures.wait, result.figures.queues, result.history.count) == (None, [], 0)
    assert result.figures.fairness.use_of_users is None


def test_returning_node_continues_its_row(observe: Observe) -> None:
    report = observe(
        """
        nodes: [{name: n, count: 2, resources: {vcore: 1}}]
        applications: [{id: x, queue: root.a, tasks: [{count: 2, resources: {vcore: 1}, runtime: 40}]}]
        events:
          - {at: 10, node: n-1, action: remove}
          - {at: 20, node: n-1, action: add}
          - {at: 30, node: n-2, action: remove}
          - {at: 50, node: n-2, action: add}
        """
    )
    nodes = report.history.nodes
    assert nodes.nodes == 2
    rows = nodes.shares["vcore"]
    assert [[row[moment] for moment in (5, 15, 25, 35, 55)] for row in rows] == [
        [1, None, 1, 1, 1],
        [1, 1, 1, None, 1],
    ]
