"""Random workloads with every feature of a scenario: counts add up, and equal input gives equal bytes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lab.simulation.test_replay import Replay
from yunikorn.clock import SECOND
from yunikorn.framework.registry import Registry
from yunikorn.resources import Resource
from yunikorn_lab.simulation.out_folder import REPORT, FolderRecorder, OutFolder
from yunikorn_lab.simulation.report import Report
from yunikorn_lab.simulation.rm_state import PREEMPTIONS, SUSPENDED
from yunikorn_lab.simulation.run import simulate
from yunikorn_lab.simulation.workload import (
    NodeEvent,
    NodeEventKind,
    Workload,
    WorkloadApplication,
    WorkloadNode,
    WorkloadTaskGroup,
)

CONFIG = """
partitions:
  - name: default
    preemption: {policy: {name: standard, mode: MODE}}
    queues:
      - name: root
        submitacl: "*"
        properties: {preemption.delay: 3s}
        queues:
          - name: batch
            maxapplications: 3
            properties: {preemption.within.queue: enabled}
          - name: web
            resources: {guaranteed: {vcore: 3}, max: {vcore: 5}}
            limits: [{limit: some, users: ["*"], maxresources: {vcore: 4}, maxapplications: 2}]
"""


def times(most: int) -> st.SearchStrategy[int]:
    """Draw whole seconds up to `most`."""
    return st.integers(0, most).map(lambda seconds: seconds * SECOND)


groups = st.builds(
    WorkloadTaskGroup,
    name=st.sampled_from(["x", "y"]),
    count=st.integers(1, 4),
    resources=st.integers(1, 3).map(lambda vcore: Resource(vcore=1000 * vcore)),
    runtime=times(15),
    priority=st.sampled_from([None, 0, 5]),
    timeout=st.sampled_from([0, 0, 4 * SECOND]),
)
tasks = st.lists(groups, min_size=1, max_size=2, unique_by=lambda group: group.name).map(tuple)


@st.composite
def applications(draw: st.DrawFn, number: int) -> WorkloadApplication:
    """Draw an application, perhaps with a gang, an execution timeout, or an end on preemption."""
    gang = draw(st.sampled_from(["", "", "Atomic", "Soft", "Hard"]))
    held = gang in ("Soft", "Hard")
    return WorkloadApplication(
        id=f"app-{number}",
        submit=draw(times(20)),
        tasks=draw(tasks),
        queue=draw(st.sampled_from(["root.batch", "root.web"])),
        user=draw(st.sampled_from(["ann", "bob"])),
        gang=gang,
        patience=draw(times(20)) if held else 0,
        timeout=0 if held else draw(st.sampled_from([0, 0, 12 * SECOND])),
        preempted=draw(st.sampled_from(["", "restart", "fail"])),
        recorded_wait=draw(st.none() | times(20)),
    )


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    """Draw many applications for a few nodes, one of which may be removed."""
    nodes = [
        WorkloadNode(f"n{number}", Resource(vcore=draw(st.integers(2, 4)) * 1000)) for number in range(2)
    ]
    crowd = [draw(applications(number)) for number in range(draw(st.integers(2, 10)))]
    events = []
    if draw(st.booleans()):
        events.append(NodeEvent(draw(times(30)), NodeEventKind.REMOVE, nodes[0]))
        late = WorkloadNode("late", Resource(vcore=4000))
        events.append(NodeEvent(events[0].at + draw(times(5)), NodeEventKind.ADD, late))
    ordered = sorted(crowd, key=lambda application: application.submit)
    return Workload("generated", "scenario", nodes, ordered, events)


def check(report: Report) -> None:
    """Assert that everything is counted once."""
    counts, of, gangs, held = report.applications, report.tasks, report.gangs, report.limit_waits
    ended = counts.finished + counts.failed + counts.rejected
    assert counts.submitted == ended + counts.running + counts.waiting
    assert of.asked == of.ended + of.failed + of.dropped + of.refused + of.running + of.waiting
    assert report.allocations == report.releases + of.running
    assert report.releases == of.ended + sum(loss.tasks for loss in report.lost_work)
    lost = {loss.reason: loss.tasks for loss in report.lost_work}
    preempted = sum(lost.get(reason, 0) for reason in PREEMPTIONS)
    assert of.restarted + of.failed == preempted + lost.get("node left", 0)
    assert report.preemptions == preempted == sum(queue.preempted for queue in report.queues)
    assert all(loss.seconds == 0 for loss in report.lost_work if loss.reason == SUSPENDED)
    if gangs is not None:
        assert gangs.submitted == gangs.whole + gangs.given_up + gangs.waiting
        assert gangs.waiting <= counts.waiting + counts.running
    spent = 0.0 if held.tasks is None else held.tasks.count * held.tasks.mean
    assert sum(limit.seconds for limit in held.limits) == pytest.approx(spent, abs=1e-3)


@given(
    workload=workloads(),
    preempted=st.sampled_from(["restart", "fail"]),
    until=st.sampled_from([None, 25]),
    mode=st.sampled_from(["end", "requeue", "suspend"]),
)
def test_everything_is_counted_once(
    workload: Workload,
    preempted: str,
    until: int | None,
    mode: str,
    registry: Registry,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    moment = None if until is None else until * SECOND
    config = CONFIG.replace("MODE", mode)
    folders = [tmp_path_factory.mktemp("out") for _ in range(2)]
    for folder in folders:
        with OutFolder(folder) as out:
            report = simulate(
                config, workload, registry, until=moment, recorder=FolderRecorder(out), preempted=preempted
            )
            out.open(REPORT).write(report.to_json())
    check(report)
    assert report.plugin_faults == []
    assert Replay(folders[0], config).failures == []
    for path in folders[0].iterdir():
        assert path.read_bytes() == (folders[1] / path.name).read_bytes()
    assert fates(folders[0]) == report.applications.submitted - (
        report.applications.running + report.applications.waiting
    )


def fates(folder: Path) -> int:
    """Return the number of applications that ended, each counted once."""
    lines = (folder / "applications.jsonl").read_text("utf-8").splitlines()
    names = [json.loads(line)["application"] for line in lines]
    assert len(names) == len(set(names))
    return len(names)
