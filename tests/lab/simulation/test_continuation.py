"""A scheduler that is restored and continued with the true run times decides as the original did."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.conftest import Run
from tests.lab.simulation.random_scenarios import Rng
from yunikorn.clock import SECOND
from yunikorn.errors import UsageError
from yunikorn.framework.registry import Registry
from yunikorn.interface.messages import Allocation
from yunikorn.interface.scheduler import Scheduler
from yunikorn.resources import Resource
from yunikorn_commands.config_source import LocatedText
from yunikorn_lab.simulation.continuation import FirstChanges, continued, restored
from yunikorn_lab.simulation.known_run_times import EstimatedRunTimes
from yunikorn_lab.simulation.reader import read_workload
from yunikorn_lab.simulation.recorder import Recorder
from yunikorn_lab.simulation.rm_state import PLACEHOLDER, Running, Submitted
from yunikorn_lab.simulation.run import simulate
from yunikorn_lab.simulation.workload import (
    ConfigEvent,
    WorkloadApplication,
    WorkloadNode,
    WorkloadTaskGroup,
)
from yunikorn_snapshots.snapshots import take_snapshot
from yunikorn_testing import Cluster, application, ask, node

SEEDS = range(int(os.environ.get("YUNIKORN_CONTINUATIONS", "5")))
_AGAIN = re.compile(r"~\d+\Z")


class Decisions(Recorder):
    """Placements and ends with their times, and the run times of tasks."""

    def __init__(self) -> None:
        self.lines: list[tuple[Any, ...]] = []
        self.held: set[str] = set()
        """Identifiers of all allocations that have not ended."""
        self.running: dict[str, Running] = {}
        self.runtimes: dict[tuple[str, str], int] = {}
        self.arrived: set[str] = set()

    def submitted(self, moment: int, record: Submitted) -> None:
        self.arrived.add(record.plan.id)
        for group in record.plan.tasks:
            self.runtimes[record.plan.id, group.name] = group.runtime

    def allocated(self, moment: int, allocation: Allocation) -> None:
        self.lines.append((moment, "+", *_named(allocation)))
        self.held.add(allocation.uuid)

    def started(self, moment: int, task: Running) -> None:
        self.running[task.allocation.uuid] = task

    def released(self, moment: int, allocation: Allocation, reason: str) -> None:
        self.lines.append((moment, "-", *_named(allocation), reason))
        self.running.pop(allocation.uuid, None)
        self.held.discard(allocation.uuid)

    def application_ended(self, moment: int, record: Submitted, outcome: str, reason: str) -> None:
        self.lines.append((moment, "=", record.plan.id, outcome, reason))


def _named(one: Allocation) -> tuple[Any, ...]:
    return one.application_id, _AGAIN.sub("", one.allocation_key), one.uuid.rpartition("#")[2], one.node_id


@attrs.define
class TrueRunTimes:
    """Run times as the original has them."""

    running: dict[str, int]
    """Ends (ns) by identifier."""
    groups: dict[tuple[str, str], int]
    now: int

    def left(self, at: Any, task: Any, age: int) -> int:
        if age or getattr(task, "uuid", "") in self.running:
            return self.running[task.uuid] - self.now
        name = _AGAIN.sub("", task.key).removesuffix(PLACEHOLDER)
        return self.groups[task.app.id, name]


def without_hidden_timeouts(text: str) -> str:
    """Return a workload whose placeholders show all that the tasks of their gangs have."""
    workload = json.loads(text)
    for entry in workload["generate"]:
        if entry.get("gang") in ("Soft", "Hard"):
            for group in entry["tasks"]:
                group.pop("timeout", None)
    return json.dumps(workload)


@pytest.mark.parametrize("seed", SEEDS)
def test_continued_scheduler_decides_as_the_original(seed: int, registry: Registry, tmp_path: Path) -> None:
    draw = Rng(seed, registry)
    file = tmp_path / "workload.yaml"
    file.write_text(without_hidden_timeouts(draw.workload))
    workload = read_workload(file)
    applications = list(workload.applications)
    moments = sorted({one.submit for one in applications})
    begin = moments[len(moments) // 2]
    path, kept = tmp_path / "state.snapshot", Decisions()
    cores: list[Scheduler] = []
    taken: list[Any] = []

    def look(moment: int) -> bool:
        if moment >= begin and not taken:
            take_snapshot(cores[0], path)
            ends = {name: one.end for name, one in kept.running.items()}
            run_times = TrueRunTimes(ends, dict(kept.runtimes), moment)
            taken.extend([moment, len(kept.lines), run_times, set(kept.arrived), len(kept.held)])
        return True

    simulate(draw.config, workload, registry, recorder=kept, meet=cores.append, before_decision=look)
    moment, known, run_times, arrived, held = taken
    rest = attrs.evolve(
        workload,
        applications=[
            attrs.evolve(one, submit=one.submit - moment) for one in applications if one.id not in arrived
        ],
        events=[attrs.evolve(one, at=one.at - moment) for one in workload.events if one.at > moment],
    )
    found = Decisions()
    continued(
        restored(path, registry), run_times, workload=rest, recorder=found, before_decision=lambda _: True
    )
    after = [(line[0] + moment, *line[1:]) for line in found.lines[held:]]
    assert after == kept.lines[known:]


QUEUES = """
partitions:
  - name: default
    queues: [{name: root, submitacl: "*", queues: [{name: team, resources: {max: {vcore: MAX}}}]}]
"""


def waiting_cluster(registry: Registry) -> Cluster:
    """Return a cluster at 100 s with a queue whose quota two of four tasks use since 40 s."""
    cluster = Cluster(QUEUES.replace("MAX", "2"), registry)
    cluster.clock.set(40 * SECOND)
    cluster.add(node("n1", vcore=4))
    cluster.submit(application("old", "root.team"), ask("worker", 4, vcore=1))
    cluster.run()
    cluster.clock.set(100 * SECOND)
    return cluster


def new(name: str) -> WorkloadApplication:
    group = WorkloadTaskGroup("task", 1, Resource(vcore=1000), 5 * SECOND)
    return WorkloadApplication(name, 77 * SECOND, (group,), "root.team", "ann")


def test_changes_come_before_the_first_decision(registry: Registry) -> None:
    scheduler, found = waiting_cluster(registry).scheduler, Decisions()
    changes = FirstChanges(
        config=ConfigEvent(0, "other.yaml", LocatedText(QUEUES.replace("MAX", "7"))),
        remove=("n1",),
        add=(WorkloadNode("n2", Resource(vcore=8000)), WorkloadNode("n3", Resource(vcore=1000))),
        submit=(new("late"),),
    )
    run_times = EstimatedRunTimes(90 * SECOND)
    report = continued(scheduler, run_times, changes=changes, recorder=found)
    assert [(line[0] // SECOND, *line[1:3]) for line in found.lines] == [
        *[(0, "+", "old")] * 2,
        *[(0, "-", "old")] * 2,
        *[(0, "+", "old")] * 4,
        (0, "+", "late"),
        (5, "-", "late"),
        (5, "=", "late"),
        # Tasks of the node that left start again with the whole time that they were to have.
        *[(90, "-", "old")] * 4,
        (90, "=", "old"),
    ]
    assert (report.applications.submitted, report.applications.finished) == (2, 2)
    assert report.utilisation["default"]["vcore"] > 0
    assert run_times.remark() == (
        "no estimator knows the run times of 2 of 2 requests and tasks, which are taken to run for 1m30s"
    )


def test_all_changes_that_do_not_apply_are_named(registry: Registry) -> None:
    changes = FirstChanges(
        drain=("n7",), remove=("m1",), add=(WorkloadNode("n1", Resource(vcore=1)),), submit=(new("old"),)
    )
    with pytest.raises(UsageError) as caught:
        continued(waiting_cluster(registry).scheduler, EstimatedRunTimes(), changes=changes)
    assert str(caught.value).splitlines() == [
        "there is no node 'm1'",
        "there is no node 'n7'",
        "node n1 is there already: give the new one another name",
        "application old is there already: rename the new one",
    ]


def test_without_run_times_nothing_ends(registry: Registry) -> None:
    run_times = EstimatedRunTimes()
    report = continued(waiting_cluster(registry).scheduler, run_times)
    assert (report.tasks.running, report.tasks.waiting, report.tasks.ended) == (2, 2, 0)
    assert "taken never to end: give --assume-runtime" in run_times.remark()


def test_command_begins_with_a_snapshot(registry: Registry, tmp_path: Path, run: Run) -> None:
    file, config = tmp_path / "state.snapshot", tmp_path / "other.yaml"
    take_snapshot(waiting_cluster(registry).scheduler, file)
    config.write_text(QUEUES.replace("MAX", "3"))
    arguments = ("simulate", "--snapshot", str(file), "--config", str(config), "--assume-runtime", "90s")
    status, out, err = run(*arguments, "--json")
    assert status == 0
    report = json.loads(out)
    assert (report["times"]["stopped"], report["tasks"]["ended"]) == (120, 4)
    assert [one["taken"] for one in report["reloads"]] == [True]
    assert "taken to run for 1m30s" in err
    assert run("simulate", "--assume-runtime", "90s")[2] == (
        "Error: --assume-runtime applies to a snapshot: give --snapshot\n"
    )
    config.write_text("no snapshot")
    assert run("simulate", "--snapshot", str(config))[2] == (
        f"Error: snapshot {config} cannot be used: it is truncated\n"
    )
