"""Workloads from the history of a scheduler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.simulation.history_rows import BEGIN, CORE, HistoryRows, history_of
from yunikorn.clock import MILLISECOND, SECOND
from yunikorn.framework.registry import Registry
from yunikorn.resources import Resource
from yunikorn_commands.input_source import InputError
from yunikorn_history.database import HistoryError
from yunikorn_history.history_filter import HistoryFilter
from yunikorn_history.history_tables import PLACEHOLDER, PREEMPTED
from yunikorn_lab.reporting.full_report import study
from yunikorn_lab.simulation.history_workload import CARRIED, CUT, NEVER_PLACED, OPEN, REPLACED, hold_history
from yunikorn_lab.simulation.reader import read_workload
from yunikorn_lab.simulation.workload import NodeEventKind, Workload, WorkloadApplication

CONFIG = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues: [{name: a}, {name: b}]
"""

Made = Callable[[HistoryRows], str]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """Return a function that writes a history."""
    return lambda rows: rows.write(tmp_path / "history.db")


def replay(location: str, until: int | None = None, **options: object) -> Workload:
    """Read the workload of a history; times are milliseconds after `BEGIN`."""
    given = {"since": BEGIN + since} if isinstance(since := options.pop("since", None), int) else {}
    held = hold_history(location, None if until is None else BEGIN + until)
    return read_workload(held, history=HistoryFilter(**given, **options))  # type: ignore[arg-type]


def tasks(application: WorkloadApplication) -> list[tuple[int, Resource, float, float]]:
    """Return count, size, delay (s) and run time (s) of the tasks."""
    return [
        (group.count, group.resources, group.delay / SECOND, group.runtime / SECOND)
        for group in application.tasks
    ]


SCENARIO = """
nodes:
  - {name: n, count: 3, resources: {vcore: 4, memory: 8Gi}, attributes: {rack: r1}}
  - {name: m, resources: {vcore: 4, memory: 8Gi}}
applications:
  - {id: wide, submit: 5, queue: root.a, user: ann, groups: [g, h], tags: {namespace: dev},
     tasks: [{count: 8, resources: {vcore: 1, memory: 1Gi}, runtime: 100},
             {count: 2, resources: {vcore: 2}, runtime: 30, priority: 7}]}
  - {id: atomic, submit: 20, queue: root.b, user: bob, gang: Atomic,
     tasks: [{name: w, count: 6, resources: {vcore: 1}, runtime: 50}]}
  - {id: hard, submit: 21, queue: root.b, user: bob, gang: Hard, gangtimeout: 5m,
     tasks: [{name: w, count: 4, resources: {vcore: 2}, runtime: 50}]}
  - {id: long, submit: 30, queue: root.a, user: ann,
     tasks: [{resources: {vcore: 1}, runtime: 1h}, {resources: {vcore: 1}, runtime: 60, delay: 1000}]}
events:
  - {at: 40, node: m, action: capacity, resources: {vcore: 6, memory: 8Gi}}
  - {at: 50, node: n-3, action: drain}
  - {at: 90, node: n-3, action: resume}
  - {at: 100, node: late, action: add, resources: {vcore: 4, memory: 8Gi}}
"""


def test_a_recorded_simulation_is_read_as_it_was(tmp_path: Path, registry: Registry) -> None:
    """Requests, sizes, times and nodes are those of the scenario; recorded waits equal simulated ones."""
    written = history_of(SCENARIO, CONFIG, registry, tmp_path / "h.db")
    found = replay(str(tmp_path / "h.db"), since=0)
    wanted = list(written.applications)
    assert len(found.applications) == len(wanted)
    for one, other in zip(found.applications, wanted, strict=True):
        assert (one.id, one.submit, one.queue, one.user, one.groups) == (
            *(other.id, other.submit, other.queue, other.user, other.groups),
        )
        assert (one.tags, one.gang, one.patience, one.partition) == (
            *(other.tags, other.gang, other.patience, "default"),
        )
        assert Counter(tasks(one)) == Counter(tasks(other))
        assert one.total == other.total
        assert {group.priority for group in one.tasks} == {group.priority for group in other.tasks}
    assert [(node.name, node.resources) for node in found.nodes] == [
        (node.name, node.resources) for node in written.nodes
    ]
    assert found.nodes[0].attributes == {"rack": "r1"}
    assert [(one.at, one.change, one.node.name, one.resources) for one in found.events] == [
        (one.at, one.change, one.node.name, one.resources) for one in written.events
    ]
    assert not found.counts

    result = study(CONFIG, found, registry)
    calibration = result.figures.calibration
    assert calibration is not None
    assert calibration.recorded == calibration.simulated
    assert [queue.name for queue in calibration.queues] == ["root.a", "root.b"]
    assert all(queue.recorded == queue.simulated for queue in calibration.queues)
    assert calibration.misplaced == 0
    for part in calibration.load:
        assert part.recorded_placements == part.simulated_placements
        assert part.recorded_use == pytest.approx(part.simulated_use, rel=1e-5)
    assert sum(part.recorded_placements for part in calibration.load) == 22


def test_under_another_configuration_the_load_differs(tmp_path: Path, registry: Registry) -> None:
    history_of(SCENARIO, CONFIG, registry, tmp_path / "h.db")
    quota = CONFIG.replace("{name: a}", "{name: a, resources: {max: {vcore: 1}}}")
    found = study(quota, replay(str(tmp_path / "h.db")), registry).figures.calibration
    assert found is not None
    assert found.queues[0].simulated.max > found.queues[0].recorded.max
    assert found.load[0].simulated_use["vcore"] < found.load[0].recorded_use["vcore"]


def test_windows_begin_with_what_was_left(made: Made) -> None:
    rows = HistoryRows()
    rows.node("n1", 0)
    over, running, waiting, later = (
        rows.application(name, at, ended=None if end is None else BEGIN + end)
        for name, at, end in (
            ("over", 0, 10_000),
            ("running", 1000, None),
            ("waiting", 2000, None),
            ("in", 9000, None),
        )
    )
    rows.task(over, 0, 0, 10_000)
    rows.task(running, 1000, 1000, 5000)  # ended before
    rows.task(running, 1000, 4000, 16_000)
    rows.task(waiting, 2000, 12_000, 15_000)
    rows.task(later, 30_000, 31_000, 41_000)
    rows.application("never", 11_000)
    rows.seen(60_000)
    found = replay(made(rows), since=10_000, until=50_000)
    one, other, third = found.applications
    assert (one.id, one.submit, tasks(one)) == ("running", 0, [(1, Resource(CORE), 0, 6)])
    assert (other.id, other.submit, tasks(other)) == ("waiting", 0, [(1, Resource(CORE), 0, 3)])
    assert (third.id, third.submit, tasks(third)) == ("in", 20 * SECOND, [(1, Resource(CORE), 0, 10)])
    assert [each.recorded_wait for each in found.applications] == [None, None, None]
    assert found.counts == {CARRIED: 3, NEVER_PLACED: 1}


def test_tasks_that_are_cut_run_until_the_end_of_the_window(made: Made) -> None:
    rows = HistoryRows()
    rows.node("n1", 0)
    app = rows.application("a", 0)
    rows.task(app, 0, 1000, None)
    rows.task(app, 0, 1000, 50_000)
    rows.task(app, 40_000, 40_000, 50_000)  # behind the window
    rows.seen(60_000)
    location = made(rows)
    found = replay(location, until=21_000)
    assert [tasks(one) for one in found.applications] == [[(2, Resource(CORE), 0, 20)]]
    assert (found.counts, found.applications[0].recorded_wait) == ({OPEN: 2}, 1000 * MILLISECOND)
    [whole] = replay(location).applications
    assert sorted(tasks(whole), key=lambda task: task[3])[-1] == (1, Resource(CORE), 0, 59.001)


def test_requests_within_a_second_come_together_and_later_ones_later(made: Made) -> None:
    rows = HistoryRows()
    rows.node("n1", 0)
    app = rows.application("a", 0)
    for requested in (200, 700, 1200, 1201, 9000):
        rows.task(app, requested, 10_000, 11_000)
    [found] = replay(made(rows)).applications
    assert found.submit == 200 * MILLISECOND
    assert [(count, delay) for count, _, delay, _ in tasks(found)] == [(3, 0), (1, 1.001), (1, 8.8)]
    assert found.recorded_wait == 9800 * MILLISECOND


def test_a_lost_task_and_its_replacement_are_one(made: Made) -> None:
    rows = HistoryRows()
    rows.node("n1", 0, 30_000)
    rows.node("n2", 0)
    app = rows.application("a", 0)
    rows.task(app, 0, 1000, 5000, flags=PREEMPTED, node="n2")
    rows.task(app, 5000, 8000, 30_200)  # ended with its node
    rows.task(app, 30_100, 31_000, 41_000, node="n2")
    rows.task(app, 0, 0, 7000, flags=PREEMPTED, node="n2", priority=3)  # nothing alike follows
    rows.task(app, 0, 0, 7000, flags=PREEMPTED, node="n2", shape={"vcore": 2000})
    rows.task(app, 700_000, 700_000, 701_000, node="n2", shape={"vcore": 2000})  # too late
    found = replay(made(rows))
    [application] = found.applications
    assert Counter(tasks(application)) == Counter(
        [
            *((1, Resource(CORE), 0, 10), (1, Resource(CORE), 0, 7)),
            *((1, Resource({"vcore": 2000}), 0, 7), (1, Resource({"vcore": 2000}), 700, 1)),
        ]
    )
    assert found.counts == {REPLACED: 2, CUT: 2}
    assert application.recorded_wait == 1000 * MILLISECOND


def test_members_of_gangs_are_those_with_placeholders_or_placed_first(made: Made) -> None:
    rows = HistoryRows()
    rows.node("n1", 0)
    soft = rows.application("soft", 0, gang="Soft", gang_timeout=300_000)
    for number in range(2):
        rows.task(soft, 0, 100, 5000, task_group="w", key=f"p{number}", flags=PLACEHOLDER)
    for _ in range(3):
        rows.task(soft, 4000, 5000, 9000, task_group="w")
    rows.task(soft, 2000, 2000, 9000)
    atomic = rows.application("atomic", 0, gang="Atomic")
    for placed in (3000, 3000, 8000):
        rows.task(atomic, 0, placed, 10_000, task_group="w")
    without = rows.application("without", 0, gang="Soft")
    rows.task(without, 500, 500, 1000, task_group="w")
    first, second, third = replay(made(rows)).applications
    assert [(group.task_group, group.count, group.delay // MILLISECOND) for group in first.tasks] == [
        *(("", 1, 2000), ("w", 2, 0), ("w", 1, 4000)),
    ]
    assert (first.gang, first.least, first.patience) == ("Soft", 2, 300 * SECOND)
    assert [(group.count, group.delay // MILLISECOND) for group in second.tasks] == [(2, 0), (1, 1)]
    assert (second.gang, second.recorded_wait) == ("Atomic", 3 * SECOND)
    assert (third.gang, third.submit) == ("", 500 * MILLISECOND)


def test_filters_choose_queues_with_those_below_and_users(made: Made) -> None:
    rows = HistoryRows()
    rows.node("n1", 0)
    queues = ("root.a", "root.a.b", "root.ab", "root.A", "root.a_b")
    for number, queue in enumerate(queues):
        app = rows.application(queue, number, queue=queue, user="ann" if number % 2 else "ANN")
        rows.task(app, number, number, 1000)
    location = made(rows)
    assert [one.id for one in replay(location, queue="root.a").applications] == ["root.a", "root.a.b"]
    assert [one.id for one in replay(location, user="ann").applications] == ["root.a.b", "root.A"]
    with pytest.raises(InputError, match="no applications in this window"):
        replay(location, queue="root.ab", user="ann")
    with pytest.raises(InputError) as caught:
        replay(location, queue="root.aa.b", user="bob")
    assert [problem.message for problem in caught.value.problems] == [
        "the history has no queue 'root.aa.b', did you mean 'root.a.b'?",
        "the history has no user 'bob'",
    ]


def test_an_id_that_comes_again_is_another_application(made: Made) -> None:
    rows = HistoryRows()
    rows.node("n1", 0)
    for at in (0, 1000, 2000):
        rows.task(rows.application("job", at), at, at, at + 500)
    assert [one.id for one in replay(made(rows)).applications] == ["job", "job~run-2", "job~run-3"]


def test_hostile_names_are_names(made: Made, registry: Registry) -> None:
    names = ["", "a'b\"c", "%_;--", "{x}", "ünï\u202e", "task.1", "task", "x" * 5000]
    rows = HistoryRows()
    rows.node("n1", 0)
    app = rows.application(
        "; DROP TABLE applications", 0, user="", queue="root.a", groups='["x\'y"]', gang="Atomic"
    )
    for name in names:
        rows.task(app, 0, 0, 1000, task_group=name)
    workload = replay(made(rows))
    [found] = workload.applications
    assert len({group.name for group in found.tasks}) == len(names)
    assert [group.task_group for group in found.tasks][1:4] == names[1:4]
    assert (found.user, found.groups) == ("nobody", ("x'y",))
    assert study(CONFIG, workload, registry).report.applications.submitted == 1


def test_nodes_of_a_window(made: Made) -> None:
    rows = HistoryRows()
    rows.node("gone", 0, 5000)
    rows.node("left", 0, 20_000)
    rows.node("left", 30_000)
    drained = [[BEGIN + 2000, "drain", ""], [BEGIN + 40_000, "resume", ""], [BEGIN + 41_000, "other", ""]]
    rows.node("drained", 0, changes=drained)
    grown = [[BEGIN + time, "capacity", f'{{"vcore": {cores}}}'] for time, cores in ((3000, 1), (40_000, 2))]
    grown.insert(1, [BEGIN + 4000, "capacity", "node drained by an operator"])  # of an older version
    rows.node("grown", 0, changes=grown)
    rows.node("again", 0)
    rows.node("again", 7000)  # the same registration
    rows.task(rows.application("a", 11_000), 11_000, 11_000, 50_000)
    found = replay(made(rows), since=10_000)
    assert [(node.name, node.resources["vcore"]) for node in found.nodes] == [
        *(("left", 4000), ("drained", 4000), ("grown", 2), ("again", 4000)),
    ]
    assert [(one.at // SECOND, one.change, one.node.name) for one in found.events] == [
        (0, NodeEventKind.DRAIN, "drained"),
        (10, NodeEventKind.REMOVE, "left"),
        (20, NodeEventKind.ADD, "left"),
        (30, NodeEventKind.RESUME, "drained"),
        (30, NodeEventKind.CAPACITY, "grown"),
    ]
    assert found.events[-1].resources == {"vcore": 4000}


def test_nodes_of_several_resource_managers_are_all_there_under_names_of_their_own(made: Made) -> None:
    rows = HistoryRows()
    rows.node("n", 0, 20_000, rm="a")
    rows.node("n", 0, rm="b")
    rows.node("n", 25_000, rm="c")
    app = rows.application("app", 0, rm="b")
    rows.task(app, 0, 0, 20_000, node="n")  # not lost with the node of another resource manager
    rows.task(app, 20_000, 20_000, 50_000, node="n")
    found = replay(made(rows))
    assert [node.name for node in found.nodes] == ["n", "n~b"]
    assert [(one.at // SECOND, one.change, one.node.name) for one in found.events] == [
        (20, NodeEventKind.REMOVE, "n"),
        (25, NodeEventKind.ADD, "n"),
    ]
    assert sum(group.count for group in found.applications[0].tasks) == 2


def test_a_replay_is_the_same_while_a_scheduler_writes(made: Made) -> None:
    rows = HistoryRows()
    rows.node("n1", 0)
    app = rows.application("a", 0)
    task = rows.task(app, 0, 0, None, key="k")
    rows.seen(10_000)
    location = made(rows)
    held = hold_history(location, None)
    before = read_workload(held)
    more = HistoryRows()
    more.names, more.shapes = rows.names, rows.shapes
    more.task(app, 0, 0, 20_000, key="k", id=task)
    more.task(app, 15_000, 15_000, 20_000, id=task + 1)
    more.application("b", 15_000, id=app + 1)
    more.seen(30_000)
    more.write(location)
    after = read_workload(held)
    assert list(after.applications) == list(before.applications)
    assert after.counts == before.counts
    assert len(replay(location).applications[0].tasks) == 2


def test_empty_histories_and_windows_are_refused(made: Made, tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="no such file"):
        replay(str(tmp_path / "missing.db"))
    HistoryRows().write(tmp_path / "empty.db")
    with pytest.raises(InputError, match="no applications yet"):
        replay(str(tmp_path / "empty.db"))
    rows = HistoryRows()
    app = rows.application("a", 0)
    rows.task(app, 0, 0, 1000)
    location = made(rows)
    with pytest.raises(InputError, match="has no nodes in this window: specify them with --nodes FILE"):
        replay(location)
    with pytest.raises(InputError, match="the window is empty"):
        replay(location, since=2000)
