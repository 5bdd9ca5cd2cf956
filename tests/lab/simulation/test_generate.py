"""Scenarios that generate their applications from distributions."""

from __future__ import annotations

import json
import re
import tracemalloc
from collections import Counter
from pathlib import Path
from statistics import fmean

import pytest

from tests.lab.simulation.test_replay import Replay, check, conserved, play
from yunikorn.clock import SECOND
from yunikorn.errors import UsageError
from yunikorn.framework.registry import Registry
from yunikorn_commands.input_source import InputError
from yunikorn_lab.simulation.scenario_reader import read_cluster, read_scenario
from yunikorn_lab.simulation.workload import FOREVER, NodeEventKind, Workload, WorkloadApplication

CONFIG = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues: [{name: a, resources: {max: {vcore: 30}}}, {name: b}]
"""
NODES = "nodes: [{name: n, count: 4, resources: {vcore: 16, memory: 64Gi}}]\n"
WEEK = (
    NODES
    + """
seed: 7
generate:
  - id: batch
    count: 300
    arrivals: {process: poisson, every: 20s}
    queue: {distribution: choice, values: {root.a: 3, root.b: 1}}
    user: {distribution: zipf, names: user, count: 5}
    groups: [science]
    tags: {namespace: dev}
    preempted: fail
    tasks:
      - name: main
        count: {distribution: choice, values: {1: 5, 3: 1}}
        resources:
          vcore: {distribution: uniform, low: 1, high: 4, step: 1}
          memory: {distribution: lognormal, median: 4Gi, sigma: 1, max: 16Gi, step: 1Gi}
        runtime: {distribution: exponential, mean: 2m, max: 10m}
        priority: {distribution: choice, values: [0, 5]}
  - id: gang
    submit: 10m
    during: 1h
    arrivals: {process: regular, every: 10m}
    queue: root.b
    gang: Atomic
    tasks:
      - {name: driver, resources: {vcore: 1}, runtime: 5m}
      - sizes: [{weight: 3, resources: {vcore: 1}}, {resources: {vcore: 2, memory: 1Gi}}]
        count: 4
        runtime: 60
"""
)


def read(text: str, seed: int | None = None) -> Workload:
    """Return the workload of a scenario."""
    return read_scenario(text, "file", "file", seed=seed)


def of(workload: Workload, stem: str) -> list[WorkloadApplication]:
    """Return the applications of one entry."""
    return [app for app in workload.applications if app.id.startswith(f"{stem}-")]


def test_description_generates_applications_in_order_of_time() -> None:
    workload = read(WEEK)
    applications = list(workload.applications)
    assert len(applications) == len(workload.applications) == 307
    assert [app.submit for app in applications] == sorted(app.submit for app in applications)
    assert len({app.id for app in applications}) == 307
    batch, gangs = of(workload, "batch"), of(workload, "gang")
    assert (batch[0].id, batch[-1].id) == ("batch-001", "batch-300")
    assert [(app.id, app.submit // SECOND) for app in gangs[:2]] == [("gang-1", 600), ("gang-2", 1200)]
    assert gangs[-1].submit == 4200 * SECOND
    first = batch[0]
    assert (first.groups, first.tags, first.preempted) == (("science",), {"namespace": "dev"}, "fail")
    assert {group.name for app in gangs for group in app.tasks} == {"driver", "task-2"}
    assert {app.gang for app in gangs} == {"Atomic"}


def test_generated_workload_follows_the_description() -> None:
    batch = of(read(WEEK), "batch")
    tasks = [app.tasks[0] for app in batch]
    assert {group.resources["vcore"] for group in tasks} == {1000, 2000, 3000, 4000}
    memory = {group.resources["memory"] for group in tasks}
    assert all(amount % 2**30 == 0 and 2**30 <= amount <= 16 * 2**30 for amount in memory)
    assert len(memory) > 8
    assert fmean(group.runtime for group in tasks) == pytest.approx(118 * SECOND, rel=0.15)
    assert max(group.runtime for group in tasks) <= 600 * SECOND
    assert all(group.runtime % 1_000_000 == 0 for group in tasks)
    assert {group.priority for group in tasks} == {0, 5}
    assert {group.count for group in tasks} == {1, 3}
    users = Counter(app.user for app in batch).most_common()
    assert [users[0][0], len(users)] == ["user-1", 5]
    queues = Counter(app.queue for app in batch)
    assert queues["root.a"] / queues["root.b"] == pytest.approx(3, rel=0.3)


def test_equal_seeds_give_equal_applications_and_others_do_not() -> None:
    workload = read(WEEK)
    assert list(workload.applications) == list(workload.applications) == list(read(WEEK).applications)
    assert (workload.seed, read(WEEK, seed=8).seed) == (7, 8)
    assert list(read(WEEK, seed=7).applications) == list(workload.applications)
    assert list(read(WEEK, seed=8).applications) != list(workload.applications)


def test_distributions_are_independent() -> None:
    longer = read(WEEK.replace("mean: 2m, max: 10m", "mean: 4m"))
    more = read(
        WEEK + "  - {id: z, count: 2, arrivals: {process: regular, every: 1}, queue: root.a, "
        "tasks: [{resources: {vcore: 1}, runtime: 1}]}\n"
    )
    usual = of(read(WEEK), "batch")
    assert of(more, "batch") == usual
    for before, after in zip(usual, of(longer, "batch"), strict=True):
        assert (before.submit, before.queue, before.user) == (after.submit, after.queue, after.user)
        assert before.tasks[0].resources == after.tasks[0].resources
        assert before.tasks[0].runtime != after.tasks[0].runtime


def test_listed_applications_are_merged_with_generated_ones(tmp_path: Path, registry: Registry) -> None:
    mine = "  - {id: mine, submit: 15m, queue: root.b, tasks: [{resources: {vcore: 1}, runtime: 1}]}\n"
    workload = read(WEEK + "applications:\n" + mine)
    names = [app.id for app in workload.applications]
    assert len(names) == 308
    assert 0 < names.index("mine") < 307
    report = play(tmp_path, CONFIG, workload, registry)
    check(tmp_path, CONFIG, report)
    assert report.applications.finished == 308


def test_equal_seeds_give_equal_files(tmp_path: Path, registry: Registry) -> None:
    for name in ("one", "two"):
        play(tmp_path / name, CONFIG, read(WEEK), registry)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


@pytest.mark.parametrize(
    ("process", "count"),
    [
        ("{process: regular, every: 0}", 40),
        ("{process: poisson, every: 30s}", 40),
        ("{process: uniform}", 40),
        ("{process: gaps, gap: {distribution: weibull, scale: 30s, shape: 0.5}}", 40),
        ("{process: bursts, every: 5m, size: {distribution: uniform, low: 1, high: 9}, gap: 1s}", 40),
        ("{process: daily, every: 1m, peak: 9h, swing: 1, weekend: 0}", 40),
    ],
)
def test_every_kind_of_arrivals(process: str, count: int) -> None:
    entry = (
        f"generate: [{{id: x, count: {count}, during: 7h, submit: 1h, arrivals: {process}, "
        "tasks: [{resources: {vcore: 1}, runtime: {distribution: pareto, low: 1s, shape: 2}}]}]"
    )
    applications = read(NODES + entry).applications
    assert len(applications) == len(list(applications)) > 5
    assert all(3600 * SECOND <= app.submit <= 8 * 3600 * SECOND for app in applications)


def test_tasks_may_run_forever() -> None:
    text = WEEK.replace("runtime: {distribution: exponential, mean: 2m, max: 10m}", "runtime: forever")
    assert {app.tasks[0].runtime for app in of(read(text), "batch")} == {FOREVER}


def test_seed_without_a_distribution_is_rejected() -> None:
    plain = NODES + "applications: [{id: a, tasks: [{resources: {vcore: 1}, runtime: 1}]}]"
    with pytest.raises(UsageError, match="a seed has no effect: file contains no random values"):
        read(plain, seed=1)
    assert read(plain).seed is None


ENTRY = "generate: [{id: x, count: 3, arrivals: {process: regular, every: 1}, tasks: [TASK]}]"
TASK = "{resources: {vcore: 1}, runtime: RUN}"
RUN = ENTRY.replace("TASK", TASK)
NO_ARRIVALS = "generate: [{id: x, tasks: [{resources: {vcore: 1}, runtime: 1}]}]"


def run(runtime: str) -> str:
    """Return an entry with this run time."""
    return RUN.replace("RUN", runtime)


def arriving(process: str) -> str:
    """Return an entry with this arrival process."""
    return RUN.replace("process: regular, every: 1", f"process: {process}")


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        (NO_ARRIVALS, "generate[0].arrivals: required"),
        (NO_ARRIVALS, "generate[0].count: required"),
        (ENTRY.replace("[TASK]", "[]"), "generate[0].tasks: an application needs tasks"),
        (ENTRY.replace("TASK", "{runtime: 1}"), "generate[0].tasks[0].resources: required"),
        (ENTRY.replace("TASK", "{sizes: [], runtime: 1}"), "tasks[0].sizes: expected a list of sizes"),
        (RUN.replace("regular", "poison"), "unknown process 'poison', did you mean 'poisson'?; known"),
        (arriving("poisson, every: 0"), "expected a time above 0"),
        (arriving("uniform"), "generate[0].during: required"),
        (arriving("daily, every: 1, swing: 2"), "a number from 0 to 1"),
        (arriving("regular, each: 1"), "each: unknown key"),
        (RUN.replace("count: 3", "count: 3, every: 3s"), "generate[0].every: unknown key"),
        (run("{distribution: lognormall}"), "did you mean 'lognormal'?; known: constant, uniform"),
        (run("{median: 3}"), "runtime.distribution: required, but missing: one of constant"),
        (run("{distribution: lognormal, median: 3}"), "runtime.sigma: required, but missing"),
        (run("{distribution: pareto, low: 1, shape: 0}"), "runtime.shape: expected more than 0"),
        (run("{distribution: uniform, low: 3, high: 2}"), "runtime.high: expected a value of at least low"),
        (run("{distribution: uniform, low: x, high: 2}"), "runtime.low: expected seconds or a"),
        (run("{distribution: uniform, low: 1, high: 2, min: 9, max: 3}"), "max: expected a value of at"),
        (run("{distribution: exponential, mean: 2, meen: 3}"), "runtime.meen: unknown key"),
        (run("{distribution: choice, values: {}}"), "runtime.values: expected a list of values"),
        (run("{distribution: choice, values: {1m: -1}}"), "values.1m: expected a weight of at least 0"),
        (run("[1]"), "runtime: expected a mapping, got a list"),
        (RUN.replace("vcore: 1", "vcore: {distribution: uniform, low: 1, high: 4x}"), "unknown suffix 'x'"),
        (RUN.replace("count: 3", "count: 3, user: {distribution: normal}"), "unknown distribution"),
        (run("1, priority: {distribution: choice, values: [a]}"), "priority.values"),
        (RUN + "\napplications: [{id: x-2, tasks: [{resources: {vcore: 1}, runtime: 1}]}]", "the id 'x-2'"),
        (RUN.replace("[{id", "[{id: x, count: 1, arrivals: {process: regular, every: 1}, tasks: []}, {id"),
         "duplicate id 'x' in generate"),
        ("seed: -1\n" + RUN, "seed: expected a whole number from 0"),
    ],
)  # fmt: skip
def test_errors_are_reported_with_their_position(text: str, reported: str) -> None:
    with pytest.raises(InputError) as caught:
        read(NODES + text.replace("RUN", "1"))
    assert reported in re.sub(r" \(line \d+, column \d+\)", "", str(caught.value))
    assert "line " in str(caught.value)


# -- failures -----------------------------------------------------------------------------------------

FAILURES = (
    NODES
    + """
failures:
  - nodes: n-[12]
    every: {distribution: exponential, mean: 10m}
    down: {distribution: uniform, low: 1m, high: 5m}
    until: 2h
applications:
  - {id: a, count: 20, every: 5m, queue: root.a, tasks: [{count: 3, resources: {vcore: 2}, runtime: 8m}]}
"""
)


MANY_EACH = "{id: ID, count: 10000000, arrivals: {process: poisson, every: 1s}, tasks: [TASK]}"


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("generate: [<a>, <b>]", "generate[1].count (line 2, column 141): expected at most 10,000,000"),
        ("generate: [<a>, <b>]", "there are 20,000,000 or more"),
        (
            "generate: [{id: a, during: 100h, arrivals: {process: regular, every: 1ms}, tasks: [TASK]}]",
            "there are 360,000,000 or more",
        ),
        ("applications: [{id: x, count: 3, tasks: [TASK]}]\ngenerate: [<a>]", "there are 10,000,003 or more"),
        (
            "applications: [{id: x, tasks: [TASK]}, {id: y, count: 10000000, tasks: [TASK]}]",
            "applications[1].count (line 2, column 87): expected at most 10,000,000",
        ),
        (
            "applications: [{id: x, count: 9000000, tasks: [TASK]},"
            " {id: y, count: 9000000, after: [x-77], tasks: [TASK]}]",
            "there are 18,000,000 or more",
        ),
        (
            "applications: [{id: x, count: 9000000, tasks: [TASK]}, {id: z, after: [x-77], tasks: [TASK]}]\n"
            "generate: [{id: y, count: 9000000, after: [x-77],"
            " arrivals: {process: regular, every: 1s}, tasks: [TASK]}]",
            "generate[0].count (line 3, column 27): expected at most 10,000,000",
        ),
    ],
)
def test_too_many_applications_in_all_are_refused_before_they_are_made(text: str, reported: str) -> None:
    for name in "ab":
        text = text.replace(f"<{name}>", MANY_EACH.replace("ID", name))
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=re.escape(reported)) as caught:
            read(NODES + text.replace("TASK", "{resources: {vcore: 1}, runtime: 5s}"))
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
    assert len(caught.value.problems) == 1


def test_too_many_nodes_in_all_are_refused_without_problems_of_their_events() -> None:
    a, b = (f"{{name: {name}, count: 900000, resources: {{vcore: 1}}}}" for name in "ab")
    text = f"nodes: [{a}, {b}]\nevents: [{{at: 1, node: a-000007, action: remove}}]"
    with pytest.raises(InputError) as caught:
        read_cluster(text, "file")
    (found,) = caught.value.problems
    assert str(found).startswith("nodes[1].count (line 1, column 75): expected at most 1,000,000 nodes")


def test_nodes_fail_and_come_back(tmp_path: Path, registry: Registry) -> None:
    workload = read(FAILURES, seed=3)
    assert {event.node.name for event in workload.events} == {"n-1", "n-2"}
    assert [event.at for event in workload.events] == sorted(event.at for event in workload.events)
    for name in ("n-1", "n-2"):
        mine = [event for event in workload.events if event.node.name == name]
        assert [event.change for event in mine] == [NodeEventKind.REMOVE, NodeEventKind.ADD] * (
            len(mine) // 2
        )
        for lost, back in zip(mine[::2], mine[1::2], strict=True):
            assert 60 * SECOND <= back.at - lost.at <= 300 * SECOND
            assert lost.at <= 7200 * SECOND
    assert 8 < len(workload.events) < 60
    report = play(tmp_path, CONFIG, workload, registry)
    assert conserved(report)
    assert Replay(tmp_path, CONFIG).failures == []
    assert report.tasks.restarted > 0
    assert report.tasks.ended == 60
    lines = (tmp_path / "nodes.jsonl").read_text("utf-8").splitlines()
    assert Counter(json.loads(line)["event"] for line in lines)["remove"] == len(workload.events) // 2


def test_nodes_of_a_separate_file_may_fail() -> None:
    text = FAILURES.partition("applications")[0]
    assert read_cluster(text, "file").events == read_cluster("seed: 0\n" + text, "file").events
    assert read_cluster("seed: 1\n" + text, "file").events != read_cluster(text, "file").events


@pytest.mark.parametrize(
    ("before", "after", "reported"),
    [
        ("n-[12]", "m-*", "failures[0].nodes (line 4, column 12): no initial node matches 'm-*'"),
        ("until: 2h", "", "failures[0].until (line 4, column 5): required"),
        ("mean: 10m", "mean: 0", "failures[0].every.mean (line 5, column 46): expected more than 0"),
        (
            "applications:",
            "  - {nodes: n-1, every: 1h, down: 1, until: 1h}\napplications:",
            "failures from an",
        ),
        (
            "applications:",
            "events: [{at: 1, node: n-2, action: drain}]\napplications:",
            "has entries in events",
        ),
        (
            FAILURES[FAILURES.index("every:") : FAILURES.index("    until")],
            "every: 1ns\n    down: 0\n",
            "creates more than 200,000 events",
        ),
    ],
)
def test_invalid_node_failures(before: str, after: str, reported: str) -> None:
    assert before in FAILURES
    with pytest.raises(InputError) as caught:
        read(FAILURES.replace(before, after))
    assert reported in str(caught.value)
